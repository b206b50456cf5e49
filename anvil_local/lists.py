"""Lists: which line opens a list, and which lines are its items.

An item that is only a phrase says nothing without the line that opens the list: "The colours are:" makes a
claim of "red".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from anvil_local.coreference import find_subject, starts_with_pronoun
from anvil_local.language import Language, Span, content_words, makes_claim

_LONGEST = 30
"""Words of the longest line that opens a list."""

_HEADING = 6
"""Words of the longest heading."""

_NUMBER = re.compile(r"\(?\d{1,3}[.)]\s*(?=\D)")
_CLOSED = re.compile(r"[.!?]['\"”’)*_]*$")


def find_openings(
    response: str, spans: Sequence[Span], sentences: Sequence[str], language: Language
) -> dict[int, int]:
    """The number of each item that needs its opening line, with the number of that line.

    Args:
        response: the text.
        spans: its sentences.
        sentences: what they say once pronouns are resolved.
        language: of the text. Only English is looked at: whether a line is a whole sentence is known there.

    Returns:
        Numbers of spans. A line opens a list if it ends in a colon, claims something once completed, and
        whole lines that are no sentences follow it.
    """
    found: dict[int, int] = {}
    if language.code != "en":
        return found
    opening = None
    marked = False
    for number, (span, sentence) in enumerate(zip(spans, sentences, strict=True)):
        if sentence.endswith(":") and not found.get(number):
            opening = number if _can_open(sentence, language) else None
            continue
        if opening is None:
            continue
        before = response[spans[number - 1].end : span.start]
        if "\n" not in before:
            continue  # the rest of an item
        has_mark = bool(before.rpartition("\n")[2].strip()) or bool(_NUMBER.match(sentence))
        first = number == opening + 1
        marked = has_mark if first else marked
        left = (marked and not has_mark) or (not marked and not first and "\n" in before.replace("\n", "", 1))
        if left or _is_sentence(sentence):
            opening = None if left or first else opening
            continue
        found[number] = opening
    return found


def join_item(opening: str, item: str) -> str:
    """The item as the end of the line that opens its list."""
    return f"{opening} {_NUMBER.sub('', item, count=1)}" if _NUMBER.match(item) else f"{opening} {item}"


def is_heading(response: str, span: Span, text: str, language: Language) -> bool:
    """Whether a line of its own only names what follows ("## Results", "**Summary**", "Notes:").

    A heading with a number in it, and an English one with a subject and a verb, claims something.
    """
    start = response.rfind("\n", 0, span.start) + 1
    end = response.find("\n", span.end)
    line = response[start : len(response) if end < 0 else end].strip()
    bare = line.strip("#*_: ")
    if bare != text.strip("#*_: ") or any(map(str.isdigit, bare)) or len(bare.split()) > _HEADING:
        return False
    colon = line.rstrip("*_").endswith(":")
    if not (line.startswith("#") or colon or (line.startswith("**") and line.endswith("**"))):
        return False
    if colon and not content_words(bare, language):
        return True
    closed = bool(_CLOSED.search(bare))
    return not closed and (language.code != "en" or find_subject(bare) is None) and language.spaced


def _can_open(sentence: str, language: Language) -> bool:
    return (
        len(sentence.split()) <= _LONGEST
        and makes_claim(sentence, language)
        and bool(content_words(sentence, language))
        and not starts_with_pronoun(sentence)
    )


def _is_sentence(text: str) -> bool:
    """Whether an item says something by itself."""
    return starts_with_pronoun(text) or (bool(_CLOSED.search(text)) and find_subject(text) is not None)
