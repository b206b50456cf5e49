"""Long texts cut to the window: nothing is lost, nothing is too long."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil_local.records import Role
from anvil_local.windows import compact_trace, cut_trace, cut_windows


def count_words(text: str) -> int:
    return len(text.split())


def count_bytes(text: str) -> int:
    return len(text.encode())


def count_pieces(text: str) -> int:
    """Like a real vocabulary: short words whole, long ones and other scripts in pieces."""
    return sum(-(-len(piece.encode()) // 4) for piece in re.findall(r" ?\w+|\s|[^\w\s]", text))


COUNTS = pytest.mark.parametrize("count", [count_words, count_bytes, count_pieces])
TEXTS = st.lists(
    st.one_of(
        st.sampled_from(
            ["The pump runs. ", "It stopped at noon.\n", "橋は古い。", "🙂", "word " * 40, "x" * 90, " \n"]
        ),
        st.text(max_size=12),
    ),
    max_size=30,
).map("".join)


def joined(text: str, windows: list[str]) -> None:
    """Windows follow each other in the text, overlap or touch, and together are all of it."""
    covered = 0
    for window in windows:
        # The place that takes in the most new text: repeated sentences are found more than once.
        start = max(place for place in range(covered + 1) if text.startswith(window, place))
        assert start <= covered < start + len(window)
        covered = start + len(window)
    assert covered == len(text)


@COUNTS
@given(text=TEXTS, room=st.integers(8, 60))
def test_windows_hold_all_of_the_text_in_order_and_each_fits(count, text: str, room: int) -> None:  # type: ignore[no-untyped-def]
    windows = cut_windows(text, room, count_tokens=count)
    if count(text) <= room:
        assert windows == [text]
        return
    joined(text, windows)
    for window in windows:
        assert count(window) <= room
        assert window


def test_a_text_that_fits_is_one_window_and_is_not_even_counted_when_its_bytes_fit() -> None:
    def fail(text: str) -> int:
        raise AssertionError(text)

    assert cut_windows("short", 8, count_tokens=fail) == ["short"]
    assert cut_windows("", 8, count_tokens=fail) == [""]
    assert cut_windows("one two three", 8, count_tokens=count_words) == ["one two three"]


def test_sentences_are_whole_and_neighbours_overlap() -> None:
    sentences = [f"Pump {number} runs. " for number in range(40)]
    windows = cut_windows("".join(sentences), 30, count_tokens=count_words)
    for window in windows:
        assert re.fullmatch(r"(Pump \d+ runs\. )+", window)
    for before, after in pairwise(windows):
        assert before.endswith(after[: after.index(".") + 2])


def test_no_window_holds_only_what_another_holds() -> None:
    text = "One two. Three four. " + "five " * 28 + "six. Seven eight. " + "nine " * 29 + "ten."
    windows = cut_windows(text, 30, count_tokens=count_words)
    for number, window in enumerate(windows):
        assert not any(window in other for other in windows[:number] + windows[number + 1 :])


def test_a_sentence_longer_than_the_window_is_cut_at_white_space() -> None:
    windows = cut_windows("word " * 50, 8, count_tokens=count_words)
    assert all(set(window.split()) == {"word"} for window in windows)
    assert sum(map(count_words, windows)) >= 50


# Traces


BLOCKS = st.lists(
    st.one_of(st.text(max_size=80), st.sampled_from(["word " * 30, "[1] user: x", ""])), max_size=10
)


@COUNTS
@given(blocks=BLOCKS, room=st.integers(0, 120), data=st.data())
def test_a_cut_trace_is_never_longer_than_the_room_and_says_what_it_left_out(  # type: ignore[no-untyped-def]
    count, blocks: list[str], room: int, data: st.DataObject
) -> None:
    goal = data.draw(st.integers(0, max(0, len(blocks) - 1)))
    text, left_out = cut_trace(blocks, room, count_tokens=count, goal=goal)
    whole = "\n".join(blocks)
    assert count(text) <= room
    if count(whole) <= room:
        assert (text, left_out) == (whole, 0)
    else:
        assert left_out >= 1


NUMBERED = [f"[{number}] " + f"word{number} " * 9 for number in range(30)]


@pytest.mark.parametrize("room", [30, 60, 120, 299])
def test_what_was_wanted_and_the_end_stay(room: int) -> None:
    text, left_out = cut_trace(NUMBERED, room, count_tokens=count_words)
    lines = text.split("\n")
    assert lines[0] == NUMBERED[0]
    assert lines[1] == "[...]"
    assert lines[2:] == NUMBERED[-len(lines[2:]) :]
    assert lines[-1] == NUMBERED[-1]
    assert left_out == 300 - count_words(text)


def test_what_stands_before_the_goal_is_the_first_to_go() -> None:
    blocks = [
        "[1] system: " + "rule " * 100,
        "[2] user: Cancel order 17.",
        "[3] tool: done",
        "[4] assistant: Done.",
    ]
    text, _ = cut_trace(blocks, 30, count_tokens=count_words, goal=1)
    assert text == "\n".join(["[...]", *blocks[1:]])


def test_a_goal_too_long_for_half_of_the_room_is_shortened_and_marked() -> None:
    blocks = ["[1] user: " + "word " * 100, "[2] assistant: Done."]
    text, _ = cut_trace(blocks, 40, count_tokens=count_words)
    assert text.startswith("[1] user: word word")
    assert text.endswith("\n[...]\n[2] assistant: Done.")
    assert count_words(text) > 20


def test_a_last_block_too_long_is_begun_and_marked() -> None:
    blocks = ["[1] user: Read it.", "[2] tool: " + "word " * 100]
    text, _ = cut_trace(blocks, 40, count_tokens=count_words)
    assert text.startswith("[1] user: Read it.\n[...]\n[2] tool: word")
    assert text.endswith("\n[...]")
    assert count_words(text) > 30


def test_a_single_block_uses_the_whole_room() -> None:
    text, left_out = cut_trace(["word " * 100], 40, count_tokens=count_words)
    assert 36 <= count_words(text) <= 40
    assert text.endswith("[...]")
    assert left_out == 100 - count_words(text)


def test_an_empty_trace_is_an_empty_text() -> None:
    assert cut_trace([], 10, count_tokens=count_words) == ("", 0)


def test_a_long_listing_loses_its_middle_before_what_was_done_is_left_out() -> None:
    blocks = [
        "[1] user: Cancel order 17.",
        '[2] assistant calls cancel {"order": 17}',
        "[3] tool: cancelled " + "detail " * 400 + "at noon",
        "[4] assistant: Order 17 is cancelled.",
    ]
    text, left_out = cut_trace(blocks, 200, count_tokens=count_words)
    lines = text.split("\n")
    assert lines[:2] == blocks[:2]
    assert lines[-1] == blocks[-1]
    assert "[3] tool: cancelled" in text
    assert "[...]" in text
    assert "at noon" in text
    assert count_words(text) <= 200
    assert left_out > 200


# Compaction


def words(label: str, count: int) -> str:
    return " ".join([label, *(f"{label}{n}" for n in range(count))])


TRACE = [
    (Role.SYSTEM, words("policy", 40)),
    (Role.HUMAN, words("wish", 10)),
    (Role.AI, words("plan", 30)),
    (Role.TOOL, words("listing", 200)),
    (Role.HUMAN, words("more", 10)),
    (Role.TOOL, words("table", 100)),
    (Role.AI, words("step", 5)),
    (Role.TOOL, words("result", 20)),
    (Role.HUMAN, words("thanks", 3)),
    (Role.AI, words("done", 5)),
]


def compact(room: int) -> tuple[str, int]:
    return compact_trace(
        [text for _, text in TRACE], [role for role, _ in TRACE], room, count_tokens=count_words, goal=1
    )


def whole(text: str) -> set[str]:
    """The first words of the blocks that are there in full."""
    return {block.split()[0] for _, block in TRACE if block in text}


EVERYTHING = {block.split()[0] for _, block in TRACE}


def test_a_trace_that_fits_is_not_compacted() -> None:
    assert compact(1000) == ("\n".join(text for _, text in TRACE), 0)


def test_tool_results_go_first_then_other_words_and_never_those_of_the_user() -> None:
    text, cut = compact(240)
    assert whole(text) == EVERYTHING - {"listing", "table"}
    assert text.count("[...]") == 2
    assert "listing0" in text
    assert "listing199" in text
    assert cut > 0
    text, _ = compact(120)
    assert whole(text) == EVERYTHING - {"listing", "table", "policy", "plan"}
    text, _ = compact(75)
    assert whole(text) >= {"wish", "more", "step", "result", "thanks", "done"}
    text, _ = compact(62)
    assert whole(text) >= {"wish", "more", "step", "thanks", "done"}


@given(st.integers(8, 500), st.lists(st.tuples(st.sampled_from(list(Role)), st.integers(0, 60)), max_size=12))
def test_a_compacted_trace_fits_and_keeps_what_the_user_said_while_it_can(
    room: int, shape: list[tuple[Role, int]]
) -> None:
    blocks = [words(f"b{n}x", size) for n, (_, size) in enumerate(shape)]
    roles = [role for role, _ in shape]
    goal = roles.index(Role.HUMAN) if Role.HUMAN in roles else 0
    text, cut = compact_trace(blocks, roles, room, count_tokens=count_words, goal=goal)
    assert count_words(text) <= room
    assert (cut == 0) == (text == "\n".join(blocks))
    kept = [n for n, role in enumerate(roles) if role is Role.HUMAN or n >= len(blocks) - 4]
    # A mark for what is left out between two of them.
    if sum(count_words(blocks[n]) for n in kept) + len(kept) + 1 <= room:
        assert all(blocks[n] in text for n in kept)
