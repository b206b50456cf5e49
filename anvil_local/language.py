"""What decomposition knows of languages: sentences, content words, claims.

Sentence boundaries come from sentencex. The word lists are data (`language.toml`); they decide
nothing about truth, only whether a stretch of text claims something and which words carry it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

__all__ = [
    "Language",
    "Span",
    "content_words",
    "detect_language",
    "load_language",
    "split_sentences",
    "words",
]

_DEFAULT = "en"

# Scripts written without spaces: every letter counts as a word.
_UNSPACED = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f\U00020000-\U0003ffff"
_WORD = re.compile(
    rf"\d+(?:[.,:/]\d+)*|[{_UNSPACED}]|[^\W\d_{_UNSPACED}]+(?:['’][^\W\d_]+)?|[\u0300-\u036f]+"
)
_BULLET = re.compile(r"(?:[-*+•‣◦▪–—>#]+|\(?\d{1,3}[.)]|\(?[a-zA-Z][.)])(?=\s)\s*|[#>]+\s+")
_QUESTION = re.compile(r"[?？؟\u037e]['\"”’»)\]]*\s*$")
_CLOSED = re.compile(r"[.!?:;。！？…।؟؛]['\"”’»)\]*_]*\s*$")


@dataclass(frozen=True)
class Span:
    """A stretch of a text, in characters."""

    start: int
    end: int


@dataclass(frozen=True)
class Language:
    """One table of `language.toml`, ready for use."""

    code: str
    function: frozenset[str]
    pronouns: frozenset[str]
    address: frozenset[str]
    polar: frozenset[str]
    short: str
    no_claim: re.Pattern[str]


@cache
def _tables() -> Mapping[str, Any]:
    import tomllib

    text = resources.files("anvil_local").joinpath("language.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def load_language(code: str) -> Language:
    """A language's word lists; those of English for one that has none."""
    table = _tables().get(code) or _tables()[_DEFAULT]

    def listed(key: str) -> frozenset[str]:
        return frozenset(table[key].split())

    pattern = "|".join(f"(?:{part})" for part in table["no_claim"])
    return Language(
        code=code,
        function=listed("function"),
        pronouns=listed("pronouns"),
        address=listed("address"),
        polar=listed("polar"),
        short=table["short"],
        no_claim=re.compile(pattern, re.IGNORECASE),
    )


def detect_language(text: str) -> str:
    """The language whose script or function words fit best; English when nothing does.

    Enough to choose a word list and abbreviations; `--language` overrules it.
    """
    if re.search(r"[\u3040-\u30ff]", text):
        return "ja"
    counts = {
        "zh": len(re.findall(r"[\u4e00-\u9fff]", text)),
        "ar": len(re.findall(r"[\u0600-\u06ff]", text)),
        "hi": len(re.findall(r"[\u0900-\u097f]", text)),
    }
    script, count = max(counts.items(), key=lambda item: item[1])
    if count * 3 > len(text.strip()):
        return script
    tokens = words(text)
    votes = {
        code: sum(token in load_language(code).function for token in tokens)
        for code in _tables()
        if code not in ("ja", *counts)
    }
    best = max(votes.values(), default=0)
    if votes[_DEFAULT] == best:
        return _DEFAULT
    return max(votes, key=lambda code: votes[code])


def words(text: str) -> list[str]:
    """The words of a text, lower case, numbers whole (`1,5`), letters of unspaced scripts one by one."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def content_words(text: str, language: Language) -> list[str]:
    """The words that carry a claim: all but function words."""
    found = []
    for word in words(text):
        stem = re.split(r"['’]", word)[0] if word not in language.function else word
        if word not in language.function and stem not in language.function:
            found.append(stem)
    return found


def split_sentences(text: str, language: str) -> list[Span]:
    """The sentences of a text, in order, without the white space and list marks around them.

    A line break ends a sentence, unless the line is visibly wrapped (it is long, does not end in
    punctuation, and the next line begins in lower case). A stretch without a letter or a digit is
    no sentence. No letter or digit of the text is outside all spans, but for list numbers.
    """
    import sentencex

    spans = []
    for block in _blocks(text):
        for boundary in sentencex.get_sentence_boundaries(language, text[block.start : block.end]):
            span = _trim(text, block.start + boundary["start_index"], block.start + boundary["end_index"])
            if any(character.isalnum() for character in text[span.start : span.end]):
                spans.append(span)
    return spans


def _blocks(text: str) -> Iterator[Span]:
    """Lines, with visibly wrapped ones put together."""
    start = position = 0
    for line in text.split("\n"):
        end = position + len(line)
        following = text[end + 1 :].split("\n", 1)[0].strip()
        wrapped = (
            len(line.strip()) > 40 and following[:1].islower() and not _CLOSED.search(line)
            and not _BULLET.match(following)
        )  # fmt: skip
        position = end + 1
        if not wrapped:
            if text[start:end].strip():
                yield Span(start, end)
            start = position


def _trim(text: str, start: int, end: int) -> Span:
    while end > start and text[end - 1].isspace():
        end -= 1
    while start < end and text[start].isspace():
        start += 1
    bullet = _BULLET.match(text, start, end)
    if bullet and bullet.end() < end:
        start = bullet.end()
    return Span(start, end)


def is_question(text: str) -> bool:
    """Whether the text ends as a question does."""
    return bool(_QUESTION.search(text))


def has_address(text: str, language: Language) -> bool:
    """Whether somebody says I, we or you."""
    tokens = words(text)
    return any(token in language.address for token in tokens) or any(
        word in text for word in language.address if not word.isascii() and len(word) > 1
    )


def makes_claim(sentence: str, language: Language) -> bool:
    """False for questions, greetings, thanks, offers of help, refusals and text without words."""
    text = sentence.strip().strip("*_\"'“”«»„").strip()
    if not any(character.isalnum() for character in text):
        return False
    if is_question(text):
        return False
    return not language.no_claim.match(text)


def is_polar(text: str, language: Language) -> bool:
    """Whether the text only says yes or no."""
    tokens = words(text)
    if not tokens or len(text) > 20:
        return False
    return all(token in language.polar for token in tokens) or text.strip(" .!。！") in language.polar


def matches(word: str, others: frozenset[str]) -> bool:
    """Whether a word is among others, endings aside.

    Two words are the same when they share their first 70 %, at least four letters. Numbers must be equal.
    """
    if word in others:
        return True
    if word[:1].isdigit() or len(word) < 4:
        return False
    for other in others:
        length = max(4, -(-7 * max(len(word), len(other)) // 10))
        if len(other) >= 4 and word[:length] == other[:length]:
            return True
    return False
