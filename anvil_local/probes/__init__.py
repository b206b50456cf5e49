"""The probes of `selfcheck`: short questions with known answers, written for this project by hand.

`probes.jsonl` holds one probe a line: `id`, `kind`, `context`, `statement`, `label` and, unless all is
English, `language`. Probes come in minimal pairs, `number-1a` and `number-1b`: the same context with two
statements, or the same statement with two contexts, one of them 1 and the other 0. So every kind is
balanced, and a judge that looks at the statement or at the context alone is right exactly half the time.
No line was taken from a data set, so nobody trained on them; please keep it so.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Literal

from pydantic import Field

from anvil_local.errors import UsageError
from anvil_local.records import Record

__all__ = ["KINDS", "Probe", "check_kinds", "digest_probes", "load_probes"]

KINDS: Mapping[str, str] = {
    "number": "another number of the same context",
    "date": "another date, year or day",
    "name": "another person, team or place",
    "negation": "did against did not",
    "antonym": "raised against lowered",
    "comparative": "which of two is more",
    "quantifier": "all, most, some, none, only",
    "missing": "spoken of, but not stated",
    "paraphrase": "other words, the same sense or not",
    "part_whole": "two parts, one of them wrong; evidence in two sentences",
    "word_order": "who did it to whom",
    "unit_or_range": "units, and values within a range",
    "position": "300 words, the evidence early, in the middle or late",
    "language": "es, de, fr, pl, ja, zh, ar, hi",
    "cross_language": "the statement in another language than the context",
    "instruction": "the context gives the judge an order or forges a turn",
    "order": "before and after, cause and effect",
}
"""The kinds of probes, and what each one varies."""


class Probe(Record):
    """One question with a known answer."""

    id: str = Field(pattern=r"^[a-z_]+-[0-9]+[ab]$")
    """Its kind, the number of its pair, and which of the pair it is."""
    kind: str
    """One of `KINDS`."""
    context: str
    """The text to judge by."""
    statement: str
    """The claim to judge."""
    label: Literal[0, 1]
    """1 if the statement follows from the context, else 0."""
    language: str = Field(default="en", pattern=r"^[a-z]{2}(>[a-z]{2})?$")
    """ISO 639-1; `de>en` when the context is German and the statement English."""

    @property
    def pair(self) -> str:
        """What it has in common with the other of its pair."""
        return self.id[:-1]


def load_probes(kinds: Iterable[str] | None = None) -> tuple[Probe, ...]:
    """The probes in the order of the file; of these kinds only, if any are given.

    Raises:
        UsageError: an unknown kind, or none at all.
    """
    if kinds is None:
        return _read()
    wanted = check_kinds(kinds)
    return tuple(probe for probe in _read() if probe.kind in wanted)


def check_kinds(kinds: Iterable[str]) -> frozenset[str]:
    """The same kinds, all of them known.

    Raises:
        UsageError: an unknown kind, or none at all.
    """
    wanted = list(kinds)
    for kind in wanted:
        if kind not in KINDS:
            close = difflib.get_close_matches(kind, KINDS, 1)
            hint = f"did you mean {close[0]!r}?" if close else "known: " + ", ".join(KINDS)
            raise UsageError("no such kind of probe", value=kind, hint=hint)
    if not wanted:
        raise UsageError("no kind of probe is chosen", hint="known: " + ", ".join(KINDS))
    return frozenset(wanted)


@cache
def digest_probes() -> str:
    """sha256 of the probe file: a result of other probes is no result."""
    return hashlib.sha256(_bytes()).hexdigest()


@cache
def _read() -> tuple[Probe, ...]:
    # Not splitlines: a text may hold U+2028.
    lines = _bytes().decode("utf-8").split("\n")
    return tuple(Probe.model_validate_json(line) for line in lines if line)


def _bytes() -> bytes:
    return (files(__name__) / "probes.jsonl").read_bytes()
