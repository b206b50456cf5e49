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
    "asks",
    "base_code",
    "content_words",
    "count_listed",
    "count_negations",
    "detect_language",
    "has_address",
    "is_assent",
    "is_polar",
    "is_question",
    "load_language",
    "makes_claim",
    "matches",
    "seeks",
    "split_sentences",
    "words",
]

_DEFAULT = "en"

# Scripts written without spaces: every letter counts as a word.
_UNSPACED = (
    r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Japanese, Chinese
    r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
)
# Vowel signs and other marks, which Python does not count as word characters: Hebrew, Arabic, and the
# scripts of India without their full stops and digits.
_MARK = (
    r"\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    r"\u0900-\u0963\u0971-\u09e5\u09f0-\u0a65\u0a70-\u0ae5\u0af0-\u0b65\u0b70-\u0be5\u0bf0-\u0c65\u0c70-\u0ce5"
    r"\u0cf0-\u0d65\u0d70-\u0de5\u200c\u200d"
)
_LETTER = rf"(?:[^\W\d_{_UNSPACED}]|[{_MARK}])"
_WORD = re.compile(rf"(?:(?<![\w)])[-+±])?\d+(?:[.,:/]\d+)*|[{_UNSPACED}]|{_LETTER}+(?:'{_LETTER}+)?")
_NUMBER = re.compile(r"\(?(\d{1,3})[.)]")
_LIST_NUMBER = re.compile(r"(?:^[ \t>*_]*|(?<=[.!?:;。！？…।؟]) +)\(?(\d{1,3})[.)](?=\s)", re.MULTILINE)
_BULLET = re.compile(r"(?:[-*+•‣◦▪–—>#]+|\(?\d{1,3}[.)]|\(?[a-zA-Z]\))(?=\s)\s*")
# Marks that can join claims; not the comma or the dot inside a number.
_INNER_MARK = re.compile(r"[;:()\[\]{}\"“”«»„‘—–、；：（）]|,(?!\d)|，|، |…|\s-\s")
_SIMPLE = 14  # words of the longest sentence that is taken to be one claim without asking
_QUESTION = re.compile(r"[?？؟\u037e]['\"”’»）)\]*_]*\s*$")
_CLOSED = re.compile(r"[.!?:;。！？…।؟؛]['\"”’»)\]*_]*\s*$")
_FENCE = re.compile(r"(?:`{3,}|~{3,})[\w+.#-]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
# Words are cut out of a text by their letters only where there are spaces to say where they end.
_BY_LETTERS = frozenset({"ja", "zh"})
_AROUND = {
    "(": ")",
    "[": "]",
    '"': '"',
    "'": "'",
    "“": "”",
    "„": "“",
    "«": "»",
    "‘": "’",
    "「": "」",
    "（": "）",
}


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
    assent: frozenset[str]
    negation: frozenset[str]
    denial: frozenset[str]
    asks: frozenset[str]
    seeks: frozenset[str]
    joins: frozenset[str]
    short: str
    no_claim: re.Pattern[str]
    but: re.Pattern[str]

    @property
    def spaced(self) -> bool:
        """Whether spaces part its words."""
        return self.code not in _BY_LETTERS


@cache
def _tables() -> Mapping[str, Any]:
    import tomllib

    text = resources.files("anvil_local").joinpath("language.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def load_language(code: str) -> Language:
    """A language's word lists; those of English for one that has none. `de-AT` is `de`."""
    table = _tables().get(base_code(code)) or _tables()[_DEFAULT]
    code = base_code(code) if base_code(code) in _tables() else _DEFAULT

    def listed(key: str) -> frozenset[str]:
        return frozenset(unicodedata.normalize("NFKC", table[key]).casefold().split())

    def any_of(patterns: list[str]) -> str:
        return "|".join(f"(?:{pattern})" for pattern in patterns)

    edge = "" if code in _BY_LETTERS else r"\b"
    but = any_of([re.escape(word) for word in table["but"].split()])
    return Language(
        code=code,
        function=listed("function"),
        pronouns=listed("pronouns"),
        address=listed("address"),
        polar=listed("polar"),
        assent=listed("assent"),
        negation=listed("negation"),
        denial=listed("denial"),
        asks=listed("asks"),
        seeks=listed("seeks"),
        joins=listed("joins"),
        short=table["short"],
        no_claim=re.compile(
            f"(?:{table['lead']})(?:{any_of(table['refusal'])})|{any_of(table['phrase'])}", re.IGNORECASE
        ),
        but=re.compile(rf"{edge}(?:{but}){edge}|[;；:–—]", re.IGNORECASE),
    )


def base_code(code: str) -> str:
    """The language of a code that may name a region or a script as well."""
    return re.split("[-_]", code.strip().lower())[0]


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
    """The words of a text, lower case, numbers whole (`1,5`), letters of unspaced scripts one by one.

    A sign belongs to its number: -5 is not 5.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return _WORD.findall(folded.replace("’", "'").replace("\u2212", "-"))


def content_words(text: str, language: Language) -> list[str]:
    """The words that carry a claim: all but function words."""
    found = []
    for word in words(text):
        stem = word.split("'")[0]
        if word not in language.function and stem not in language.function and not word.endswith("n't"):
            found.append(stem)
    return found


def split_sentences(text: str, language: str) -> list[Span]:
    """The sentences of a text, in order, without the white space and list marks around them.

    A line break ends a sentence, unless the line is visibly wrapped (it is long, does not end in
    punctuation, and the next line begins in lower case). A stretch without a letter or a digit is
    no sentence. No letter or digit of the text is outside all spans, but for list numbers.
    """
    import sentencex

    code = base_code(language)
    numbers = {int(number) for number in _LIST_NUMBER.findall(text)}
    spans = []
    for block in _blocks(text):
        # Rust has no strings with lone surrogates; the stand-in is as long.
        known = _SURROGATE.sub("\ufffd", text[block.start : block.end])
        first = None
        for boundary in sentencex.get_sentence_boundaries(code, known):
            start, end = block.start + boundary["start_index"], block.start + boundary["end_index"]
            start = start if first is None else first
            # A list number is cut off as a sentence of its own; it belongs to what it numbers.
            # So is the dot of ".NET" from its name.
            within = (
                text[end - 1 : end] == "."
                and text[end : end + 1].isalnum()
                and text[end - 2 : end - 1].isspace()
            )
            if end < block.end and (within or _NUMBER.fullmatch(text[start:end].strip())):
                first = start
                continue
            first = None
            span = _trim(text, start, end, numbers)
            if any(character.isalnum() for character in text[span.start : span.end]):
                spans.append(span)
    return spans


def _blocks(text: str) -> Iterator[Span]:
    """Lines, with visibly wrapped ones put together."""
    lines = text.split("\n")
    start = position = 0
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        end = position + len(line)
        following = following.strip()
        wrapped = (
            len(line.strip()) > 40
            and following[:1].islower()
            and not _CLOSED.search(line)
            and not _BULLET.match(following)
        )
        position = end + 1
        if not wrapped:
            if text[start:end].strip():
                yield Span(start, end)
            start = position


def _trim(text: str, start: int, end: int, numbers: set[int]) -> Span:
    while end > start and text[end - 1].isspace():
        end -= 1
    while start < end and text[start].isspace():
        start += 1
    while (bullet := _BULLET.match(text, start, end)) and bullet.end() < end:
        number = _NUMBER.match(text, start, end)
        # A number alone is no list: "3. Oktober", "1. FC".
        if number and not {int(number[1]) - 1, int(number[1]) + 1} & numbers:
            break
        start = bullet.end()
    return Span(start, end)


def is_question(text: str) -> bool:
    """Whether the text ends as a question does."""
    return bool(_QUESTION.search(text))


def asks(text: str, language: Language) -> bool:
    """Whether the text wants an answer, with or without a question mark."""
    if is_question(text):
        return True
    if language.code in ("ja", "zh", "hi", "ar"):  # the word that asks can stand anywhere
        return any(word in text for word in language.asks)
    return any(token.split("'")[0] in language.asks for token in words(text)[:4])


def seeks(text: str, language: Language) -> bool:
    """Whether the text asks for more than yes or no: what the answer says is not yet in the question."""
    if not language.spaced:
        return any(word in text for word in language.seeks)
    # The first word that asks decides: "In which year", but not "Did Anna, who lives here,".
    first = next(
        (t for token in words(text) if (t := token.split("'")[0]) in language.asks | language.seeks), ""
    )
    return first in language.seeks


def has_address(text: str, language: Language) -> bool:
    """Whether somebody says I or you."""
    return count_listed(text, language.address, language) > 0


def count_negations(text: str, language: Language) -> int:
    """How many words of the text turn a claim round."""
    contracted = sum(word.endswith("n't") for word in words(text)) if language.code == "en" else 0
    return contracted + count_listed(text, language.negation, language)


def count_listed(text: str, listed: frozenset[str], language: Language) -> int:
    """How many words of the text are listed."""
    if not language.spaced:
        return sum(text.count(word) for word in listed)
    return sum(token in listed for token in words(text))


def makes_claim(sentence: str, language: Language) -> bool:
    """False for questions, greetings, thanks, offers of help, refusals and text without words.

    A refusal with something to say after it ("I do not know, but ...") makes a claim if the rest does.
    """
    text = _unwrap(" ".join(sentence.replace("’", "'").split()))
    if not any(character.isalnum() for character in text) or _FENCE.fullmatch(text):
        return False
    # A quoted question inside a sentence is reported: He wrote "What is life?"
    if text.endswith(("?", "？", "؟", "\u037e")):
        return False
    found = language.no_claim.match(text)
    if not found:
        return True
    rest = language.but.search(text, found.end())
    return rest is not None and makes_claim(text[rest.end() :].lstrip(" ,，、"), language)


def _unwrap(text: str) -> str:
    """The text without emphasis, and without a pair of quotes or brackets around all of it."""
    while True:
        text = text.strip().strip("*_").strip()
        inner = text[1:-1]
        if len(text) < 2 or _AROUND.get(text[0]) != text[-1] or {text[0], text[-1]} & set(inner):
            return text
        text = inner


def is_polar(text: str, language: Language) -> bool:
    """Whether the text only says yes or no, if only with "it is" and the like."""
    tokens = words(text)
    if not tokens or len(text) > 40:
        return False
    if text.strip(" .!。！") in language.polar or all(token in language.polar for token in tokens):
        return True
    if not language.spaced:
        return False
    rest = [word for word in content_words(text, language) if word not in language.polar]
    return tokens[0] in language.polar and not rest


def is_assent(text: str, language: Language) -> bool:
    """Whether the text, as a whole answer, says yes or no ("Of course.")."""
    if is_polar(text, language):
        return True
    if not language.spaced:
        return text.strip(" .!。！") in language.assent
    tokens = words(text)
    return bool(tokens) and all(token in language.assent for token in tokens)


def matches(word: str, others: frozenset[str]) -> bool:
    """Whether a word is among others, endings aside.

    Two words are the same when they share their first 70 %, at least four letters. Numbers must be equal.
    """
    if word in others:
        return True
    if word[-1:].isdigit() or len(word) < 4:
        return False
    for other in others:
        length = max(4, -(-7 * max(len(word), len(other)) // 10))
        if len(other) >= 4 and word[:length] == other[:length]:
            return True
    return False


def is_simple(sentence: str, language: Language) -> bool:
    """Whether the sentence is one standalone claim already, so that nobody has to rewrite it.

    It is short, nothing in it joins clauses, and no pronoun or first or second person leans on other
    sentences. When in doubt it is not simple.
    """
    if _INNER_MARK.search(sentence):
        return False
    tokens = words(sentence)
    if len(tokens) > _SIMPLE or has_address(sentence, language):
        return False
    return not count_listed(sentence, language.joins | language.pronouns, language)
