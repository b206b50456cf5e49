"""Long texts cut to the judge's window: contexts into overlapping windows, traces by leaving out blocks."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from anvil_local.language import split_sentences
from anvil_local.records import Role

_OVERLAP = 0.15
"""The share of a window that is repeated from the one before it, in whole sentences."""

_CUT = "[...]"
"""Stands for what is left out of a trace."""

_LONGEST_GOAL, _LONGEST_BLOCK = 0.2, 0.3
"""The shares of the room that the goal's block and any other may have in a trace that is cut."""

_LAST = 4
"""Blocks at the end of a trace that `compact_trace` leaves whole while anything else can go."""

_CAPS = (0.3, 0.2, 0.13, 0.08, 0.05, 0.03)
"""The shares of the room that a block may have, one after the other, until all fits."""

_ROOM_FOR_SHORTENING = 100
"""Tokens of a room below which blocks are not shortened: their halves would say nothing."""

_WORTH_SHOWING = 24
"""Characters of a block below which its beginning says nothing."""


def cut_windows(
    text: str, room: int, *, count_tokens: Callable[[str], int], language: str = "en"
) -> list[str]:
    """Overlapping windows of whole sentences that together hold all of the text.

    Args:
        text: the context.
        room: tokens that one window may have; at least 8.
        count_tokens: tokens of a piece of text.
        language: for the sentence splitter.

    Returns:
        `[text]` if it fits. A sentence longer than the window is cut between characters.
    """
    # A byte is at most one token, so a short text need not be tokenised to know that it fits.
    if len(text.encode("utf-8")) <= room or count_tokens(text) <= room:
        return [text]
    stretches = _stretches(text, room, count_tokens, language)
    sizes = [count_tokens(stretch) for stretch in stretches]
    windows: list[str] = []
    first = done = 0
    while done < len(stretches):
        last, size = first, 0
        while last < len(stretches) and size + sizes[last] <= room:
            size += sizes[last]
            last += 1
        last = max(last, first + 1)
        # Pieces tokenised together can need a token more than apart.
        while last > first + 1 and count_tokens("".join(stretches[first:last])) > room:
            last -= 1
        if last <= done:  # the overlap leaves no room for anything new
            first = done
            continue
        windows.append("".join(stretches[first:last]))
        overlap, back = 0, last
        while back > first + 1 and overlap + sizes[back - 1] <= room * _OVERLAP:
            back -= 1
            overlap += sizes[back]
        first, done = back, last
    return windows


def _stretches(text: str, room: int, count_tokens: Callable[[str], int], language: str) -> list[str]:
    """The text in sentences, each with what follows it up to the next, none longer than the room."""
    spans = split_sentences(text, language)
    starts = [0, *(span.start for span in spans[1:]), len(text)]
    found = []
    for start, end in itertools.pairwise(starts):
        stretch = text[start:end]
        while count_tokens(stretch) > room:
            fits = _longest_prefix(stretch, room, count_tokens)
            found.append(stretch[:fits])
            stretch = stretch[fits:]
        if stretch:
            found.append(stretch)
    return found


def _longest_prefix(text: str, room: int, count_tokens: Callable[[str], int]) -> int:
    """Characters of the longest beginning that fits, at least 1; cut at white space if there is some."""
    low, high = 1, min(len(text), room * 16)
    while low < high:
        middle = (low + high + 1) // 2
        if count_tokens(text[:middle]) <= room:
            low = middle
        else:
            high = middle - 1
    space = max(text.rfind(mark, low // 2, low) for mark in " \n\t")
    if low < len(text) and space > 0 and count_tokens(text[: space + 1]) <= room:
        return space + 1
    return low


def _without_middle(text: str, room: int, count_tokens: Callable[[str], int]) -> str:
    """The text, or its beginning and its end with a mark between them, in at most `room` tokens."""
    while (size := count_tokens(text)) > room:
        half = max(8, int(len(text) * room / size * 0.9) // 2)
        if 2 * half + len(_CUT) + 2 >= len(text):
            break
        text = f"{text[:half]} {_CUT} {text[-half:]}"
    return text


def cut_trace(
    blocks: Sequence[str], room: int, *, count_tokens: Callable[[str], int], goal: int = 0
) -> tuple[str, int]:
    """A trace as one text of at most `room` tokens: what was wanted, then the last blocks that fit.

    Before a block is left out, long ones lose their middle: a tool's listing of everything would push
    out what was done.

    Args:
        blocks: the trace, a block a message.
        room: tokens that the text may have; under about 16 there is little left to read.
        count_tokens: tokens of a piece of text.
        goal: the number of the block that says what was wanted; those before it are the first to go.

    Returns:
        The text and the number of tokens left out (0 when all fits). What is left out is marked.
    """
    text = "\n".join(blocks)
    if len(text.encode("utf-8")) <= room:
        return text, 0
    total = count_tokens(text)
    if total <= room:
        return text, 0

    def fits(parts: Sequence[str]) -> bool:
        return count_tokens("\n".join(parts)) <= room

    def begin(block: str, limit: int, before: Sequence[str]) -> str:
        left = min(limit, room - count_tokens("\n".join([*before, "", _CUT])) - 1)
        return block[: _longest_prefix(block, left, count_tokens)] if left > 0 else ""

    opening = [_CUT] if goal else []
    wanted, rest = blocks[goal], list(blocks[goal + 1 :])
    if rest and room >= _ROOM_FOR_SHORTENING:
        wanted = _without_middle(wanted, int(room * _LONGEST_GOAL), count_tokens)
        rest = [_without_middle(block, int(room * _LONGEST_BLOCK), count_tokens) for block in rest]
    half = room // 2 if rest else room
    if count_tokens(wanted) > half or not rest:
        opening += [begin(wanted, half, opening), _CUT]
    elif fits([*opening, wanted, *rest]):
        opening.append(wanted)
    else:
        opening += [wanted, _CUT]
    kept: list[str] = []
    while rest and fits([*opening, rest[-1], *kept]):
        kept.insert(0, rest.pop())
    if rest and not kept:
        begun = begin(rest[-1], room, opening)
        if len(begun) >= _WORTH_SHOWING and fits([*opening, begun, _CUT]):
            kept = [begun, _CUT]
    text = "\n".join([*opening, *kept])
    if count_tokens(text) > room:  # a room too small for the marks
        text = text[: _longest_prefix(text, room, count_tokens)] if room > 0 else ""
    return text, max(1, total - count_tokens(text))


def compact_trace(
    blocks: Sequence[str],
    roles: Sequence[Role],
    room: int,
    *,
    count_tokens: Callable[[str], int],
    goal: int = 0,
) -> tuple[str, int]:
    """A trace as one text of at most `room` tokens: what tells least goes first.

    1. Tool results before the last messages lose their middle, more and more of it.
    2. So do words of the system and of the agent before the last messages.
    3. Messages before the last ones are left out, the oldest first, tool results before others.
    4. Tool results among the last messages lose their middle.

    Turns of the user are never touched, nor is what the agent said last. What still does not fit goes
    through `cut_trace`. What is left out is marked.

    Args:
        blocks: the trace, a block a message.
        roles: who speaks in each block.
        room: tokens that the text may have.
        count_tokens: tokens of a piece of text.
        goal: the number of the block that says what was wanted.

    Returns:
        The text and the number of tokens left out (0 when all fits).
    """
    text = "\n".join(blocks)
    if len(text.encode("utf-8")) <= room:
        return text, 0
    total = count_tokens(text)
    if total <= room:
        return text, 0
    parts: list[str | None] = list(blocks)

    def joined() -> str:
        shown: list[str] = []
        for part in parts:
            if part is not None:
                shown.append(part)
            elif not shown or shown[-1] != _CUT:
                shown.append(_CUT)
        return "\n".join(shown)

    def fits() -> bool:
        return count_tokens(joined()) <= room

    early = range(max(0, len(blocks) - _LAST))
    late = range(len(early), len(blocks))
    tools = [n for n in early if roles[n] is Role.TOOL]
    others = [n for n in early if roles[n] not in (Role.TOOL, Role.HUMAN)]

    def shorten(numbers: Sequence[int]) -> bool:
        for cap in _CAPS:
            for n in numbers:
                parts[n] = _without_middle(blocks[n], max(8, int(room * cap)), count_tokens)
            if fits():
                return True
        return False

    def leave_out(numbers: Sequence[int]) -> bool:
        for n in numbers:
            parts[n] = None
            if fits():
                return True
        return False

    done = (
        shorten(tools)
        or shorten(others)
        or leave_out(tools)
        or leave_out(others)
        or shorten([n for n in late if roles[n] is Role.TOOL])
    )
    if not done:
        return cut_trace(blocks, room, count_tokens=count_tokens, goal=goal)
    text = joined()
    return text, max(1, total - count_tokens(text))
