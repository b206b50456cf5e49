"""Outlines: what the model is able to say.

This is the only module that imports Outlines. It uses Outlines' core (`Vocabulary`, `Index`,
`Guide`) on a vocabulary of bytes: Outlines' own llama.cpp tokenizer decodes every piece as UTF-8
with replacement characters, so byte-level tokens collapse into one, and non-Latin text suffers.

Length is bounded by the caller's loop, not by the pattern: `{1,400}` makes an index explode.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from anvil_local.errors import GrammarError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Control characters are never part of what the model writes: they would only forge structure.
_TEXT = r"[^\x00-\x1f\x7f]"
_START = r"[^\x00-\x20\x7f]"

PATTERNS: Mapping[str, str] = {
    "statements": rf"none|(- {_START}{_TEXT}*\n)+",
    "workflow": rf"user_goal: {_START}{_TEXT}*\nend_state: {_START}{_TEXT}*\n",
}
"""The grammars by name; their texts are part of the judge's fingerprint."""


class Grammar:
    """The grammars of one vocabulary, each compiled when it is first used.

    Args:
        token_bytes: the bytes of every token that stands for text.
        end_token: the token that ends a text; allowed where the pattern may end.
    """

    def __init__(self, token_bytes: Mapping[int, bytes], end_token: int) -> None:
        self._token_bytes = token_bytes
        self._end_token = end_token
        self._size = max((*token_bytes, end_token)) + 1
        self._vocabulary: Any = None
        self._indexes: dict[str, Any] = {}

    def choices(self, labels: Sequence[str]) -> tuple[tuple[int, ...], ...]:
        """For each label, every token that spells it whole; the verdict grammar.

        A label can have several tokens: Gemma writes `1` with its own token or with a byte token. A
        label with letters may also follow a space (`Yes` and ` Yes` are one answer).

        Raises:
            GrammarError: the vocabulary has no single token for a label.
        """
        found: list[tuple[int, ...]] = []
        for label in labels:
            spellings = {label.encode()} if label.isdigit() else {label.encode(), b" " + label.encode()}
            tokens = tuple(token for token, piece in self._token_bytes.items() if piece in spellings)
            if not tokens:
                raise GrammarError(
                    f"the model's vocabulary has no single token for the label {label!r}",
                    hint="use a prompt profile with the label words that the model was trained on",
                )
            found.append(tokens)
        return tuple(found)

    def walk(self, pattern: str) -> Walk:
        """Begin a text that has to match the pattern, a regular expression of Outlines' dialect."""
        from outlines_core import Guide

        if pattern not in self._indexes:
            self._indexes[pattern] = self._compile(pattern)
        return Walk(Guide(self._indexes[pattern]), self._end_token, self._size)

    def _compile(self, pattern: str) -> Any:
        from outlines_core import Index, Vocabulary

        if self._vocabulary is None:
            by_bytes: dict[bytes, list[int]] = {}
            for token, piece in self._token_bytes.items():
                by_bytes.setdefault(piece, []).append(token)
            self._vocabulary = Vocabulary(self._end_token, by_bytes)
        try:
            return Index(pattern, self._vocabulary)
        except ValueError as error:
            raise GrammarError(f"no text of this vocabulary matches: {error}", value=pattern) from error


class Walk:
    """One constrained text in the making."""

    def __init__(self, guide: Any, end_token: int, size: int) -> None:
        self._guide = guide
        self._end_token = end_token
        self._size = size

    @property
    def may_end(self) -> bool:
        """Whether the text is complete as it stands."""
        # A finished guide accepts nothing, the end token least of all.
        return bool(self._guide.is_finished() or self._guide.accepts_tokens([self._end_token]))

    def allows(self, token: int) -> bool:
        """Whether the token may come next. The end token counts as any other."""
        return self.may_end if token == self._end_token else bool(self._guide.accepts_tokens([token]))

    def allowed(self, vocabulary: int) -> NDArray[np.bool_]:
        """Which tokens may come next, as booleans of shape (vocabulary,)."""
        import numpy as np

        words = np.zeros((self._size + 31) // 32, dtype=np.int32)
        self._guide.write_mask_into(words.ctypes.data, words.size, 4)
        bits = np.unpackbits(words.view(np.uint8), bitorder="little")
        mask = np.zeros(vocabulary, dtype=np.bool_)
        count = min(vocabulary, bits.size)
        mask[:count] = bits[:count]
        return mask

    def advance(self, token: int) -> None:
        """Take a token that `allows` allows."""
        self._guide.advance(token, return_tokens=False)
