"""Padding: supported statements that buy score and say nothing that was asked.

Statements that repeat an earlier one or only restate the question are found by their words, always. With
`--padding` the judge is asked two questions more: whether it supports a statement without the context, and
whether a statement bears on the question. Nothing here changes a verdict or the score; `scoring` counts
the supported statements that are padding, and what the score is without them.
"""

from __future__ import annotations

from collections.abc import Sequence

from anvil_local.errors import EngineError, PromptTooLong, UsageError
from anvil_local.judge import Judge
from anvil_local.language import (
    Language,
    content_words,
    count_negations,
    detect_language,
    load_language,
    matches,
    seeks,
)
from anvil_local.records import JudgedStatement, Padding, Reason, Verdict

__all__ = ["NEUTRAL", "ask_padding", "check_padding", "mark_padding"]

NEUTRAL = "-"
"""The context that says nothing. An empty one is answered without the model; any word would be evidence."""

_PREFIX = 4
"""Words that match share so many letters (see `language.matches`)."""


def check_padding(judge: Judge) -> None:
    """Refuse a judge that has no question for what bears on a question, before the first verdict."""
    try:
        judge.room("bears", {})
    except UsageError as error:
        raise UsageError(
            "this judge cannot tell what bears on a question",
            where=error.where,
            hint="leave --padding out, or choose another prompt profile: smollm2, chat and plain can ask it",
        ) from error


def ask_padding(
    judged: Sequence[JudgedStatement], question: str | None, judge: Judge
) -> tuple[JudgedStatement, ...]:
    """Ask of supported statements whether they are known without the context, and of all whether they bear
    on the question; the answers stand in the records, `mark_padding` draws the conclusion."""
    return tuple(
        item.model_copy(
            update={
                "unaided": _ask(judge, "support", {"context": NEUTRAL, "statement": item.statement.text})
                if item.verdict.value == 1
                else None,
                "bears": _ask(judge, "bears", {"question": question, "statement": item.statement.text})
                if question and question.strip()
                else None,
            }
        )
        for item in judged
    )


def _ask(judge: Judge, task: str, fields: dict[str, str]) -> Verdict:
    try:
        return judge.ask(task, fields)
    except PromptTooLong:
        return Verdict(value=None, reason=Reason.PROMPT_TOO_LONG)
    except EngineError:
        return Verdict(value=None, reason=Reason.ENGINE_ERROR)


def mark_padding(
    judged: Sequence[JudgedStatement], question: str | None, *, language: str | None = None
) -> tuple[JudgedStatement, ...]:
    """Say of each statement in what way it is padding; most are in none.

    Args:
        judged: the statements of one response, in its order.
        question: what was asked, if it is known.
        language: ISO 639-1 code; detected by default.
    """
    if not judged:
        return ()
    rules = load_language(language or detect_language(" ".join(item.statement.text for item in judged)))
    repeated = _repeated(judged, rules)
    asked = frozenset(content_words(question, rules)) if question and seeks(question, rules) else frozenset()
    turned = count_negations(question, rules) if question else 0
    # Where no statement bears on the question, the question was not understood, or nothing answers it:
    # then nobody stands out for being beside it.
    answered = any(item.bears is not None and item.bears.value == 1 for item in judged)
    marked = []
    for number, item in enumerate(judged):
        found = [Padding.DUPLICATE] if number in repeated else []
        said = content_words(item.statement.text, rules)
        if (
            said
            and all(matches(word, asked) for word in said)
            and count_negations(item.statement.text, rules) == turned
        ):
            found.append(Padding.RESTATES_QUESTION)
        if item.unaided is not None and item.unaided.value == 1:
            found.append(Padding.KNOWN)
        if answered and item.bears is not None and item.bears.value == 0:
            found.append(Padding.ASIDE)
        marked.append(item.model_copy(update={"padding": tuple(found)}))
    return tuple(marked)


def _repeated(judged: Sequence[JudgedStatement], rules: Language) -> set[int]:
    """Statements with the content words, the negations and the verdict of an earlier one."""
    found: set[int] = set()
    # Words that match begin alike, so only statements with the same beginnings are compared.
    alike: dict[object, list[frozenset[str]]] = {}
    for number, item in enumerate(judged):
        said = frozenset(content_words(item.statement.text, rules))
        if not said or item.verdict.value is None:
            continue
        key = (
            frozenset(word[:_PREFIX] for word in said),
            count_negations(item.statement.text, rules),
            item.verdict.value,
        )
        earlier = alike.setdefault(key, [])
        if any(
            all(matches(word, other) for word in said) and all(matches(word, said) for word in other)
            for other in earlier
        ):
            found.add(number)
        else:
            earlier.append(said)
    return found
