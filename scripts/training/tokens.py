"""The GGUF's own tokenizer, through llama.cpp (vocabulary only).

Literal pieces of a prompt are parsed with their control tokens, data never is.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from pathlib import Path


class Tokenizer:
    """Pieces to token ids, exactly as the engine does it."""

    def __init__(self, path: Path):
        import llama_cpp

        self._lib = llama_cpp
        llama_cpp.llama_backend_init()
        self._log = llama_cpp.llama_log_callback(lambda level, text, user: None)
        llama_cpp.llama_log_set(self._log, ctypes.c_void_p(0))
        params = llama_cpp.llama_model_default_params()
        params.vocab_only = True
        self._model = llama_cpp.llama_load_model_from_file(str(path).encode(), params)
        if not self._model:
            raise SystemExit(f"{path}: llama.cpp cannot read the vocabulary")
        self._vocab = llama_cpp.llama_model_get_vocab(self._model)
        self.literal = lru_cache(maxsize=256)(self._literal)

    def _encode(self, text: str, special: bool) -> list[int]:
        raw = text.encode()
        size = len(raw) + 8
        buffer = (self._lib.llama_token * size)()
        count = self._lib.llama_tokenize(self._vocab, raw, len(raw), buffer, size, False, special)
        if count < 0:
            raise RuntimeError("llama_tokenize failed")
        return list(buffer[:count])

    def _literal(self, text: str) -> tuple[int, ...]:
        return tuple(self._encode(text, True))

    def data(self, text: str) -> list[int]:
        return self._encode(text, False)

    def text(self, tokens: list[int]) -> str:
        out = b""
        buffer = ctypes.create_string_buffer(256)
        for token in tokens:
            n = self._lib.llama_token_to_piece(self._vocab, token, buffer, 256, 0, False)
            out += buffer.raw[: max(n, 0)]
        return out.decode("utf-8", "replace")
