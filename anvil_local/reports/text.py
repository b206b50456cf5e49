"""Data as text for people: nothing in it can move the cursor, forge a line or reorder a word."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from anvil_local.records import Interval

# Persian, Indic scripts and emoji need the joiners.
_JOINERS = frozenset("\u200c\u200d")
# Ordinary Hebrew and Arabic texts hold these marks. Unlike embeddings, overrides and isolates
# (Boucher and Anderson 2021, "Trojan Source") they reorder no letters.
_MARKS = frozenset("\u200e\u200f\u061c")
_SHOWN = _JOINERS | _MARKS


def printable(text: str, *, keep: str = "") -> str:
    """The text with every control, format and unassigned character as an escape: `\\x1b`, `\\u202e`.

    That is ANSI sequences, bidirectional overrides, line separators and lone surrogates.
    Characters in `keep` stay.
    """
    if text.isprintable():
        return text
    return "".join(
        char
        if char.isprintable() or char in keep or char in _SHOWN or unicodedata.category(char) == "Zs"
        else char.encode("unicode_escape").decode("ascii")
        for char in text
    )


def excerpt(text: str, limit: int | None = 160) -> str:
    """One printable line of at most `limit` characters before escaping, cut with `…`."""
    line = " ".join(part for part in text.replace("\t", " ").replace("\n", " ").split(" ") if part)
    if limit is not None and len(line) > limit:
        end = limit - 1
        # Never part a letter from its accents, nor an emoji from its joiner.
        while end > limit // 2 and (unicodedata.combining(line[end]) or line[end] in _JOINERS):
            end -= 1
        line = line[:end].rstrip() + "…"
    return printable(line)


def show_score(score: float | None) -> str:
    """Two decimals; a score that is not 0 or 1 is never shown as `0.00` or `1.00`."""
    if score is None:
        return "none"
    if 0 < score < 0.005:
        return "<0.01"
    if 0.995 <= score < 1:
        return ">0.99"
    return f"{score:.2f}"


def show_interval(interval: Interval | None) -> str:
    """`[0.41, 0.78]`, or why there is none; empty in a report of a release that had no intervals."""
    if interval is None:
        return ""
    if interval.low is None or interval.high is None:
        return f"[{interval.reason or 'none'}]"
    return f"[{show_score(interval.low)}, {show_score(interval.high)}]"


def show_margin(margin: float | None) -> str:
    """A margin with its sign; `none` when no model was asked."""
    return "none" if margin is None else f"{margin:+.2f}"


def show_counts(counts: Mapping[str, int]) -> str:
    """`duplicate 2, empty 1`."""
    return ", ".join(f"{excerpt(name)} {count}" for name, count in counts.items())


def plural(count: int, noun: str, many: str | None = None) -> str:
    """`1 sample`, `2 samples`; `many` where an `s` does not make it, `2 entries`."""
    return f"{count} {noun if count == 1 else many or noun + 's'}"


def judge_name(parts: Mapping[str, Any]) -> str:
    """The model and its adapter, from whatever the fingerprint holds about them."""
    names = [
        f"{label}{name}"
        for key, label in (("model", ""), ("adapter", "adapter "))
        if (name := _name(parts.get(key)))
    ]
    return ", ".join(names) or "unnamed judge"


def _name(part: Any) -> str | None:
    if isinstance(part, Mapping):
        part = next((part[key] for key in ("name", "file", "sha256", "digest") if part.get(key)), None)
    if isinstance(part, (list, tuple)):
        return " + ".join(name for item in part if (name := _name(item))) or None
    return excerpt(str(part), 60) if part else None
