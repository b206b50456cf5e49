"""Versioned prompt texts and their rendering into segments.

A *profile* (one TOML file) holds the prompts that fit a kind of model; a *task* is one prompt of it
(`support`, `goal`, `decompose`, `workflow`, and in some `bears`, `contradict`, `support@2`). A prompt is a
list of segments, from what changes least (the instruction) to what changes most (the statement): the engine
keeps leading segments decoded.

Placeholders are found once, in our own text. Data is never searched for placeholders and never
joined with our text before it is tokenised: it stays a piece of its own (`Piece.is_data`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from anvil_local.errors import UsageError

__all__ = ["PROFILES", "Piece", "Prompt", "Rendered", "load_profile"]

PROFILES = ("chat", "granite-guardian", "minicheck", "plain", "smollm2")
"""The profiles that are shipped."""

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True)
class Piece:
    """A stretch of a prompt: our own text, or data that must never become control tokens."""

    text: str
    is_data: bool


Rendered = tuple[tuple[Piece, ...], ...]
"""A prompt as segments of pieces."""


@dataclass(frozen=True)
class Prompt:
    """One task's prompt."""

    id: str
    """Name and version; changes whenever the text changes."""
    segments: tuple[str, ...]
    """Texts with placeholders such as `{context}`."""
    wrap: str
    """`chat`: the text is the user turn of the model's chat template; `none`: it is complete."""
    adapter: str | None = None
    """The adapter skill that this prompt was trained with."""
    labels: tuple[str, str] | None = None
    """The words for 0 and 1, in this order; None for prompts that ask for text."""
    room: int | None = None
    """The most tokens of open fields that it is meant for: an adapter has seen no longer contexts."""
    system: str | None = None
    """The system message, for prompts that go through a chat template."""
    grammar: str | None = None
    """The grammar of the text, a key of `grammar.PATTERNS`."""
    threshold: float | None = None
    """The margin above which the answer is 1, where it is this prompt's own."""
    follows: str | None = None
    """The task whose leading segments it begins with: asked after it, it costs its last segment alone. It is
    never borrowed from a base without that task, whose prompt it was written for."""

    @property
    def fields(self) -> frozenset[str]:
        """The names of the placeholders."""
        return frozenset(name for text in self.segments for name in _PLACEHOLDER.findall(text))

    def render(self, fields: Mapping[str, str]) -> Rendered:
        """Put the data in its places. Missing fields are empty, unknown ones a mistake of the caller."""
        unknown = set(fields) - self.fields
        if unknown:
            raise ValueError(f"the prompt {self.id} has no field {sorted(unknown)}")
        rendered = []
        for text in self.segments:
            parts = _PLACEHOLDER.split(text)  # text, name, text, name, ..., text
            pieces = [
                Piece(fields.get(part, ""), True) if number % 2 else Piece(part, False)
                for number, part in enumerate(parts)
            ]
            rendered.append(tuple(piece for piece in pieces if piece.text))
        return tuple(rendered)


@cache
def load_profile(name: str) -> Mapping[str, Prompt]:
    """The prompts of a shipped profile by task, with those of its base filled in under `TASK@base`."""
    import tomllib

    if name not in PROFILES:
        raise UsageError("no such prompt profile", value=name, hint="known: " + ", ".join(PROFILES))
    text = resources.files(__name__).joinpath(f"{name}.toml").read_text(encoding="utf-8")
    tables: dict[str, Any] = tomllib.loads(text)
    wrap, base = tables.pop("wrap"), tables.pop("base", None)
    prompts: dict[str, Prompt] = {}
    if base is not None:
        for task, prompt in load_profile(base).items():
            prompts[f"{task}@base"] = prompt
            if prompt.follows not in tables:
                prompts[task] = prompt
    for task, table in tables.items():
        labels = table.pop("labels", None)
        segments = tuple(table.pop("segments"))
        if follows := table.get("follows"):
            segments = prompts[follows].segments[:-1] + segments
        prompts[task] = Prompt(
            wrap=wrap, segments=segments, labels=tuple(labels) if labels else None, **table
        )
    return prompts
