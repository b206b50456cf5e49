"""llama.cpp for checking and measuring: shared prefix, then each branch on its own."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np


class Engine:
    """The GGUF with an optional adapter, decoded on the product's canonical path."""

    def __init__(self, path: Path, adapter: Path | None = None, context: int = 4096, threads: int = 2):
        import llama_cpp as lib

        self.lib = lib
        lib.llama_backend_init()
        self._log = lib.llama_log_callback(lambda level, text, user: None)
        lib.llama_log_set(self._log, ctypes.c_void_p(0))
        self.model = lib.llama_load_model_from_file(str(path).encode(), lib.llama_model_default_params())
        if not self.model:
            raise SystemExit(f"{path}: llama.cpp cannot load it")
        self.vocab = lib.llama_model_get_vocab(self.model)
        self.size = lib.llama_vocab_n_tokens(self.vocab)
        params = lib.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = context, context, 512
        params.n_threads = params.n_threads_batch = threads
        self.context = lib.llama_init_from_model(self.model, params)
        self.limit = context
        if adapter is not None:
            loaded = lib.llama_adapter_lora_init(self.model, str(adapter).encode())
            if not loaded:
                raise SystemExit(f"{adapter}: llama.cpp cannot load the adapter")
            if hasattr(lib, "llama_set_adapters_lora"):
                handles = (lib.llama_adapter_lora_p_ctypes * 1)(loaded)
                scales = (ctypes.c_float * 1)(1.0)
                failed = lib.llama_set_adapters_lora(self.context, handles, 1, scales)
            else:
                failed = lib.llama_set_adapter_lora(self.context, loaded, 1.0)
            if failed:
                raise SystemExit(f"{adapter}: llama.cpp cannot apply the adapter")
        self.memory = lib.llama_get_memory(self.context)

    def decode(self, tokens: list[int]) -> None:
        array = (self.lib.llama_token * len(tokens))(*map(int, tokens))
        batch = self.lib.llama_batch_get_one(array, len(tokens))
        if self.lib.llama_decode(self.context, batch):
            raise RuntimeError("llama_decode failed")

    def last(self) -> np.ndarray:
        pointer = self.lib.llama_get_logits_ith(self.context, -1)
        return np.ctypeslib.as_array(pointer, shape=(self.size,)).copy()

    def start(self, prefix: list[int]) -> None:
        self.lib.llama_memory_clear(self.memory, True)
        self.decode(prefix)
        self.held = len(prefix)

    def branch(self, tokens: list[int]) -> np.ndarray:
        """Logits after the branch; the prefix stays."""
        self.decode(tokens)
        logits = self.last()
        self.lib.llama_memory_seq_rm(self.memory, 0, self.held, -1)
        return logits

    def generate(self, tokens: list[int], stop: set[int], limit: int) -> list[int]:
        """Greedy continuation of a branch; the prefix stays."""
        self.decode(tokens)
        out: list[int] = []
        while len(out) < limit:
            token = int(self.last().argmax())
            if token in stop:
                break
            out.append(token)
            self.decode([token])
        self.lib.llama_memory_seq_rm(self.memory, 0, self.held, -1)
        return out
