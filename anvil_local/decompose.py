"""A response cut into standalone statements, each with its place in the response.

The model rewrites one sentence at a time, with the question and the whole response before it; so an
answer with forty claims works as one with two, and a statement knows where it comes from. What the
model writes is checked against the response: a statement is kept only if its words are there. A
sentence whose words the statements do not cover stands for itself, so no claim gets lost. Pronouns and
list items are put together with what they lean on first, by rules (`coreference`, `lists`).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from anvil_local.coreference import resolve_sentences
from anvil_local.errors import EngineError, PromptTooLong
from anvil_local.judge import Judge
from anvil_local.language import (
    Language,
    Span,
    asks,
    content_words,
    count_listed,
    count_negations,
    detect_language,
    has_address,
    is_assent,
    is_polar,
    is_simple,
    load_language,
    makes_claim,
    matches,
    split_sentences,
    words,
)
from anvil_local.lists import find_openings, is_heading, join_item
from anvil_local.records import Decomposition, DroppedStatement, DropReason, Statement

Origin = Literal["model", "sentence", "resolved", "template"]

Mode = Literal["llm", "sentence"]
"""`llm`: the model rewrites every sentence that is not simple; `sentence`: the sentences as they are."""

COVERED = 0.8
"""The share of a sentence's content words that its statements must hold between them."""

FROM_ANSWER = 0.5
"""The share of a statement's content words that must come from the response, not from the question, if
its sentence leans on other words; a sentence that stands alone needs none of the question's."""

FROM_SENTENCE, FROM_SENTENCE_LEANING = 0.6, 0.3
"""The share of a statement's content words that must come from its own sentence, which stands alone or
leans on other words."""

_NAMES = 4
"""Words that a statement may put in the place of its sentence's pronouns if it holds all the rest of it."""

_SHORT_ANSWER = 3
"""Words of a response that is judged together with its question."""


@dataclass
class _Draft:
    """A decomposition in the making."""

    response: str
    question: str
    language: Language
    statements: list[Statement] = field(default_factory=list)
    dropped: list[DroppedStatement] = field(default_factory=list)
    seen: set[tuple[str, ...]] = field(default_factory=set)
    without_claim: int = 0
    fallbacks: int = 0

    @cached_property
    def answer_words(self) -> frozenset[str]:
        return frozenset(content_words(self.response, self.language))

    @cached_property
    def question_words(self) -> frozenset[str]:
        return frozenset(content_words(self.question, self.language))

    def keep(self, statement: Statement) -> bool:
        """Add the statement unless the same words are there already."""
        key = _key(statement.text)
        if key in self.seen:
            self.drop(statement.text, statement.sentence, DropReason.DUPLICATE)
            return False
        self.seen.add(key)
        self.statements.append(statement)
        return True

    def drop(self, text: str, sentence: int, reason: DropReason) -> None:
        self.dropped.append(DroppedStatement(text=text, sentence=sentence, reason=reason))


def split_statements(
    response: str,
    *,
    question: str | None = None,
    judge: Judge | None = None,
    mode: Mode = "llm",
    language: str | None = None,
    seed: int | None = None,
) -> Decomposition:
    """Cut a response into statements.

    Args:
        response: the response.
        question: the question it answers, if there was one.
        judge: writes the statements; not needed in `sentence` mode.
        mode: see `Mode`.
        language: ISO 639-1; detected from the response when None.
        seed: None decodes greedily; a number draws from the model's distribution, repeatably.

    Returns:
        Statements in the order of the response. `response[s.start:s.end]` is the sentence that the
        statement `s` comes from.
    """
    code = language or _detect_language(response, question or "")
    draft = _Draft(response, (question or "").strip(), load_language(code))
    spans = split_sentences(response, code)
    sentences = [response[span.start : span.end] for span in spans]
    resolved = resolve_sentences(sentences, draft.question, draft.language)
    openings = find_openings(response, spans, resolved, draft.language)
    for number, (span, sentence, alone) in enumerate(zip(spans, sentences, resolved, strict=True)):
        if number in openings:
            alone = join_item(resolved[openings[number]], alone)
        text = _with_question(draft, spans, sentence)
        if text is not None:
            draft.keep(_statement(text, span, number, "template"))
        elif not makes_claim(sentence, draft.language) or _names_only(draft, spans, sentence):
            draft.without_claim += 1
        elif number in openings.values() or is_heading(response, span, alone, draft.language):
            draft.without_claim += 1  # what opens a list is said again with each of its items
        elif mode == "sentence" or judge is None or is_simple(alone, draft.language):
            draft.keep(_own_words(draft, alone, span, number))
        else:
            _write_statements(draft, spans, number, alone, judge, seed)
    return Decomposition(
        statements=tuple(draft.statements),
        dropped=tuple(draft.dropped),
        sentences=len(spans),
        without_claim=draft.without_claim,
        fallbacks=draft.fallbacks,
    )


def _detect_language(response: str, question: str) -> str:
    """The response's language; a short one ("1967") is in the language of its question."""
    code = detect_language(response)
    undecided = code == "en" and len(words(response)) <= _SHORT_ANSWER
    return detect_language(f"{question} {response}") if undecided else code


def _statement(text: str, span: Span, number: int, origin: Origin) -> Statement:
    return Statement(
        text=" ".join(text.split()), start=span.start, end=span.end, sentence=number, origin=origin
    )


def _own_words(draft: _Draft, text: str, span: Span, number: int) -> Statement:
    """The sentence as a statement: as it stands, or as the rules put it."""
    as_it_stands = text.split() == draft.response[span.start : span.end].split()
    return _statement(text, span, number, "sentence" if as_it_stands else "resolved")


def _key(text: str) -> tuple[str, ...]:
    """What makes two statements the same: words, and the marks that carry meaning (5 % is not 5 °)."""
    return (
        *words(text),
        "",
        *(
            mark
            for mark in text
            if unicodedata.category(mark) in ("Sm", "Sc", "So", "Sk") or mark in "%‰°#&@*/\\"
        ),
    )


def _with_question(draft: _Draft, spans: list[Span], sentence: str) -> str | None:
    """A yes or no, or a bare short answer, put together with its question; else None.

    The model must not do this: asked about a false premise, it asserts the premise.
    """
    if not draft.question:
        return None
    if not is_polar(sentence, draft.language):
        if len(spans) != 1 or not asks(draft.question, draft.language):
            return None
        short = len(words(sentence)) <= _SHORT_ANSWER and makes_claim(sentence, draft.language)
        if not (short or is_assent(sentence, draft.language)):
            return None
    question = " ".join(draft.question.split())
    answer = " ".join(sentence.split()).strip("*_ ") or sentence
    return draft.language.short.format(question=question, answer=answer)


def _names_only(draft: _Draft, spans: list[Span], sentence: str) -> bool:
    """A bare name or number that answers no question says nothing that could be true or false."""
    if len(spans) != 1 or asks(draft.question, draft.language) or is_polar(sentence, draft.language):
        return False
    tokens = sentence.split()
    return (
        len(tokens) <= _SHORT_ANSWER
        and sentence[-1].isalnum()
        and sentence.isascii()
        and all(token[0].isupper() or token[0].isdigit() for token in tokens)
    )


def _write_statements(
    draft: _Draft, spans: list[Span], number: int, sentence: str, judge: Judge, seed: int | None
) -> None:
    """Let the model rewrite one sentence; keep what holds, fall back on the sentence where it does not."""
    span = spans[number]
    try:
        lines, claimless = _ask(draft, spans, number, sentence, judge, seed)
    except EngineError:  # the sentence can still be judged as it stands
        lines, claimless = [], False
    # The model's word is not enough: what it calls claimless must at least look like talk.
    if claimless and has_address(sentence, draft.language) and not any(map(str.isdigit, sentence)):
        draft.without_claim += 1
        return
    written = []
    for text, finished in lines:
        reason = DropReason.CUT if not finished else _fault(draft, text, sentence)
        if reason is None:
            written.append(text)
        else:
            draft.drop(text, number, reason)
    missing = _missing(written, sentence, draft.language)
    if missing is None:
        for text in written:
            draft.drop(text, number, DropReason.INCOMPLETE)
    else:
        kept = [draft.keep(_statement(text, span, number, "model")) for text in written]
        # A model that repeats an earlier statement in place of a sentence with more to say loses a claim.
        if any(kept) or not missing or _key(sentence) in draft.seen:
            return
    draft.fallbacks += 1
    draft.keep(_own_words(draft, sentence, span, number))


def _ask(
    draft: _Draft, spans: list[Span], number: int, sentence: str, judge: Judge, seed: int | None
) -> tuple[list[tuple[str, bool]], bool]:
    """What the model wrote: lines with whether each is finished, and whether it saw no claim."""
    sentence = " ".join(sentence.split())
    limit = 48 + 3 * judge.count_tokens(sentence)
    room = judge.room("decompose", {"question": draft.question, "sentence": sentence}) - limit
    answer = _surroundings(draft.response, spans, number, room, judge)
    if answer is None:
        raise PromptTooLong("the sentence does not fit into the window")
    fields = {"question": draft.question, "answer": answer, "sentence": sentence}
    writing = judge.write("decompose", fields, limit=limit, seed=seed)
    if writing.text.strip() == "none":
        return [], True
    *whole, rest = writing.text.split("\n")
    lines = [(line.removeprefix("- ").strip(), True) for line in whole]
    if rest:
        lines.append((rest.removeprefix("- ").strip(), writing.complete))
    return lines, False


def _surroundings(response: str, spans: list[Span], number: int, room: int, judge: Judge) -> str | None:
    """The whole response if it fits, else as many sentences before and after as do; None if none does."""
    if judge.count_tokens(response) <= room:
        return response
    first = last = number
    if judge.count_tokens(response[spans[number].start : spans[number].end]) > room:
        return None
    for first_try, last_try in _growing(number, len(spans)):
        text = response[spans[first_try].start : spans[last_try].end]
        if judge.count_tokens(text) > room:
            break
        first, last = first_try, last_try
    return response[spans[first].start : spans[last].end]


def _growing(number: int, count: int) -> Iterator[tuple[int, int]]:
    """Ranges around a sentence, each one sentence longer: names stand before it, so that side first."""
    first = last = number
    while first > 0 or last < count - 1:
        if first > 0:
            first -= 1
            yield first, last
        if last < count - 1:
            last += 1
            yield first, last


def _fault(draft: _Draft, text: str, sentence: str) -> DropReason | None:
    """Why the statement does not say what the sentence says, if so."""
    claimed = dict.fromkeys(content_words(text, draft.language))
    if not claimed:
        return DropReason.EMPTY if not words(text) else DropReason.FOREIGN
    answer, question = draft.answer_words, draft.question_words
    here = frozenset(content_words(sentence, draft.language))
    if any(not matches(word, answer | question) for word in claimed):
        return DropReason.FOREIGN
    leans = _leans(sentence, draft.language)
    if count_negations(text, draft.language) and not (
        _negations(sentence, draft.language) or _denies(sentence, draft.language)
    ):
        return DropReason.FOREIGN
    if _denies(sentence, draft.language) and all(matches(word, question) for word in claimed):
        return DropReason.COPIES_QUESTION
    from_answer = sum(matches(word, answer) for word in claimed)
    if from_answer < len(claimed) * (FROM_ANSWER if leans else 1):
        return DropReason.COPIES_QUESTION
    extra = [word for word in claimed if not matches(word, here)]
    from_here = len(claimed) - len(extra)
    if leans:
        names_it = len(extra) <= _NAMES and all(matches(word, frozenset(claimed)) for word in here)
        elsewhere = from_here < len(claimed) * FROM_SENTENCE_LEANING and not names_it
    else:
        elsewhere = from_here < len(claimed) * FROM_SENTENCE or any(word[-1].isdigit() for word in extra)
    return DropReason.ELSEWHERE if elsewhere else None


def _leans(sentence: str, language: Language) -> bool:
    """Whether the sentence needs other words to stand alone: it has a pronoun, or says yes or no."""
    tokens = words(sentence)
    return count_listed(sentence, language.pronouns, language) > 0 or (
        bool(tokens) and tokens[0] in language.polar
    )


def _denies(sentence: str, language: Language) -> bool:
    """Whether the sentence begins with a no, so that its question's words are not its own."""
    if language.spaced:
        return words(sentence)[:1] != [] and words(sentence)[0] in language.denial
    return any(sentence.startswith(word) for word in language.denial)


def _negations(sentence: str, language: Language) -> int:
    """Negations of the sentence, without the no that it begins with."""
    first = words(sentence)[:1]
    leading = bool(first) and first[0] in language.denial & language.negation
    return count_negations(sentence, language) - leading


def _missing(statements: list[str], sentence: str, language: Language) -> list[str] | None:
    """The content words of the sentence that the statements leave out; None if that is too much.

    Numbers, names and negations may not be left out. Statements that leave out some words and bring others
    may have put another sentence's words in their place: that is too much as well.
    """
    if not statements:
        return None
    wanted = content_words(sentence, language)
    held = [word for text in statements for word in content_words(text, language)]
    missing = [word for word in wanted if not matches(word, frozenset(held))]
    names = _names(sentence)
    if any(word[-1].isdigit() or word in names for word in missing):
        return None
    if sum(count_negations(text, language) for text in statements) < _negations(sentence, language):
        return None
    swapped = missing and any(not matches(word, frozenset(wanted)) for word in held)
    return None if swapped or len(missing) > (1 - COVERED) * len(wanted) else missing


def _names(sentence: str) -> frozenset[str]:
    """The words with a capital letter, but for the first."""
    _, _, rest = sentence.partition(" ")
    return frozenset(word for token in rest.split() if token != token.lower() for word in words(token))
