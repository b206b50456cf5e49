"""Why a statement got its verdict: which sentences of the context it hangs on, found by leaving them out.

Every number is a binary read on the canonical path, of a context with something left out. It says what
this judge looked at, which is not always what a person would point to.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence

from anvil_local.assess import cut_context
from anvil_local.errors import NothingToJudge
from anvil_local.judge import Judge
from anvil_local.language import (
    Span,
    content_words,
    detect_language,
    load_language,
    matches,
    split_sentences,
)
from anvil_local.records import Reason, Record, Verdict

__all__ = ["ContextSentence", "Explanation", "explain_statement"]

_ONE_BY_ONE = 16
"""Sentences up to which each is left out on its own; of longer contexts, blocks first."""

_BLOCKS, _BEST_BLOCKS = 12, 3
"""How many blocks a longer context is cut into, and how many of them are looked into."""

_TOGETHER = 5
"""Sentences left out together, at most, in search of a flip."""


class ContextSentence(Record):
    """A sentence of the context and what it does to the verdict."""

    number: int
    """Its number in the context, from 1."""
    start: int
    """Where it begins in the context, in characters."""
    end: int
    """Where it ends, in characters (exclusive)."""
    text: str
    """The sentence."""
    overlap: float
    """The share of the statement's content words that it has."""
    without: Verdict | None = None
    """The verdict when it alone is left out; None when that was not asked."""
    alone: Verdict | None = None
    """The verdict when it is the whole context; None when that was not asked."""


class Explanation(Record):
    """What a verdict hangs on."""

    statement: str
    """The statement."""
    verdict: Verdict
    """The verdict on the whole context, asked anew."""
    sentences: tuple[ContextSentence, ...]
    """The sentences of the window that decided, in the order of the context."""
    flips_without: tuple[int, ...]
    """The sentences that flip the verdict when they are left out together, the strongest first: a supported
    statement loses its evidence, a refused one what speaks against it. Empty when few do not flip it."""
    strongest: int | None
    """The sentence whose absence moves the margin most towards the other verdict."""
    nearest: int | None
    """The sentence that shares most content words with the statement; None when none shares any."""
    foreign: tuple[str, ...]
    """The content words of the statement that the context does not have."""
    questions: int
    """Questions asked."""

    def sentence(self, number: int) -> ContextSentence:
        """The sentence with this number."""
        return next(item for item in self.sentences if item.number == number)


class _Reader:
    """Asks about what is left of a window."""

    def __init__(self, judge: Judge, statement: str, context: str) -> None:
        self._judge, self._statement, self._context = judge, statement, context
        self.questions = 0

    def read(self, spans: Iterable[Span]) -> Verdict:
        """The verdict on these stretches of the context."""
        text = "".join(self._context[span.start : span.end] for span in spans).strip()
        if not text:
            return Verdict(value=0, reason=Reason.EMPTY_CONTEXT, windows=0)
        self.questions += 1
        return self._judge.ask("support", {"context": text, "statement": self._statement})


def explain_statement(
    statement: str, context: str, judge: Judge, *, language: str | None = None
) -> Explanation:
    """Find what a verdict hangs on.

    Of a context longer than the judge's window, the window that decided is looked at. In a window of more
    than 16 sentences, blocks of sentences are left out first, and only the sentences of the three blocks
    that matter most on their own: about thirty questions, however long the window.

    Args:
        statement: the statement.
        context: what it was judged against.
        judge: the judge.
        language: of the context; detected by default.

    Raises:
        NothingToJudge: the context is empty, or the statement leaves no room for it.
        EngineError: the model failed.
    """
    windows = cut_context(statement, context, judge, language=language)
    if not context.strip() or not windows:
        what = "the context is empty" if windows else "the statement leaves no room for a context"
        raise NothingToJudge(f"nothing to explain: {what}", value=statement)
    code = language or detect_language(context[:2000])
    verdicts = [judge.ask("support", {"context": window, "statement": statement}) for window in windows]
    best = max(range(len(windows)), key=lambda number: (_margin(verdicts[number]), -number))
    verdict = verdicts[best].model_copy(update={"windows": len(windows), "window": best})
    bounds = _place(windows, best, context)
    spans = split_sentences(context, code)
    inside = [
        (number, span)
        for number, span in enumerate(spans, 1)
        if span.start < bounds.end and span.end > bounds.start
    ]
    reader = _Reader(judge, statement, context)
    pieces = _pieces([span for _, span in inside], bounds)
    # Leaving out what speaks for the verdict moves the margin the other way.
    sign = 1 if verdict.value else -1
    fine = _worth_asking(reader, pieces, sign)
    without = {place: reader.read(_left(pieces, {place})) for place in fine}
    overlaps = _overlaps(statement, [context[span.start : span.end] for _, span in inside], code)
    nearest = max(range(len(inside)), key=lambda place: (overlaps[place], -place), default=None)
    if nearest is not None and not overlaps[nearest]:
        nearest = None
    asked_alone = {*fine} | ({nearest} if nearest is not None else set())
    alone = {place: reader.read([pieces[place]]) for place in sorted(asked_alone)}
    order = sorted(fine, key=lambda place: sign * _margin(without[place]))
    flips = _flip_together(reader, pieces, order, without, verdict)
    known = frozenset(content_words(context, load_language(code)))
    foreign = [word for word in _claimed(statement, code) if not matches(word, known)]
    moved = bool(order) and sign * _margin(without[order[0]]) < sign * _margin(verdict)
    return Explanation(
        statement=statement,
        verdict=verdict,
        sentences=tuple(
            ContextSentence(
                number=number,
                start=span.start,
                end=span.end,
                text=context[span.start : span.end],
                overlap=overlaps[place],
                without=without.get(place),
                alone=alone.get(place),
            )
            for place, (number, span) in enumerate(inside)
        ),
        flips_without=tuple(inside[place][0] for place in flips),
        strongest=inside[order[0]][0] if moved else None,
        nearest=None if nearest is None else inside[nearest][0],
        foreign=tuple(foreign),
        questions=reader.questions + len(windows),
    )


def _margin(verdict: Verdict) -> float:
    """The margin; minus infinity for a 0 that needed no model."""
    return verdict.margin if verdict.margin is not None else -math.inf


def _place(windows: Sequence[str], best: int, context: str) -> Span:
    """Where a window lies: windows follow each other, so each begins behind the beginning of the last."""
    start = -1
    for window in windows[: best + 1]:
        start = context.index(window, start + 1)
    return Span(start, start + len(windows[best]))


def _pieces(sentences: Sequence[Span], bounds: Span) -> list[Span]:
    """The window cut at the beginnings of its sentences: together they are the window, to the letter."""
    starts = [bounds.start, *(span.start for span in sentences[1:]), bounds.end]
    return [Span(start, end) for start, end in itertools.pairwise(starts)] if sentences else []


def _left(pieces: Sequence[Span], out: set[int]) -> list[Span]:
    return [piece for place, piece in enumerate(pieces) if place not in out]


def _worth_asking(reader: _Reader, pieces: Sequence[Span], sign: int) -> list[int]:
    """The sentences to leave out one by one: all, or those of the blocks whose absence matters most."""
    if len(pieces) <= _ONE_BY_ONE:
        return list(range(len(pieces)))
    size = math.ceil(len(pieces) / _BLOCKS)
    blocks = [range(first, min(first + size, len(pieces))) for first in range(0, len(pieces), size)]
    best = sorted(blocks, key=lambda block: sign * _margin(reader.read(_left(pieces, set(block)))))
    return sorted(place for block in best[:_BEST_BLOCKS] for place in block)


def _flip_together(
    reader: _Reader,
    pieces: Sequence[Span],
    order: Sequence[int],
    without: Mapping[int, Verdict],
    verdict: Verdict,
) -> list[int]:
    """The shortest beginning of `order` whose absence flips the verdict; empty if five do not."""
    for count in range(1, min(_TOGETHER, len(order)) + 1):
        left_out = order[:count]
        found = without[left_out[0]] if count == 1 else reader.read(_left(pieces, set(left_out)))
        if found.value != verdict.value:
            return list(left_out)
    return []


def _claimed(statement: str, code: str) -> list[str]:
    return list(dict.fromkeys(content_words(statement, load_language(code))))


def _overlaps(statement: str, sentences: Sequence[str], code: str) -> list[float]:
    language, claimed = load_language(code), _claimed(statement, code)
    found = []
    for sentence in sentences:
        known = frozenset(content_words(sentence, language))
        held = sum(matches(word, known) for word in claimed)
        found.append(held / len(claimed) if claimed else 0.0)
    return found
