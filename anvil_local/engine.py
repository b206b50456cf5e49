"""llama.cpp: load a model, switch adapters, tokenise, decode on the canonical path.

This is the only module that imports llama_cpp; nothing above it sees ctypes.

The canonical path
    A prompt is a sequence of *segments* (token tuples). Each segment is decoded by calls of its own,
    in chunks of `CHUNK` tokens counted from the segment's start, whether its neighbours were
    decoded just now or an hour ago. A prompt that shares leading segments with the one before it
    keeps their keys and values and decodes only the rest. So the sequence of matrix shapes that
    leads to a logit depends on the prompt alone, and on CPU the logits are bit-equal across
    repeats, thread counts, orders and cold or warm prefixes. (Several statements in one batch, or
    prefix and suffix in one call, moves logits by up to 0.8 and flips verdicts of small models.)
"""

from __future__ import annotations

import ctypes
import itertools
import os
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anvil_local.errors import (
    AdapterInvalid,
    EngineError,
    ModelFileInvalid,
    ModelNotFound,
    OutOfMemory,
    PromptTooLong,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Logits = NDArray[np.float32]

Tokens = tuple[int, ...]
"""Token numbers of the model's vocabulary."""

CHUNK = 512
"""Tokens per decode call. Part of the canonical path: another value gives other bits."""

_AT_ONCE = 64
"""Tokens that llama.cpp computes at once. A chunk computed in these parts has the bits of the whole (see
`_parts`), needs 190 MB less at a window of 8,192 tokens, and takes no longer."""

DEFAULT_WINDOW = 2048
"""Tokens of the window when neither the user nor the manifest says otherwise."""

_FILE_TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 7: "Q8_0", 8: "Q5_0", 9: "Q5_1", 10: "Q2_K",
    11: "Q3_K_S", 12: "Q3_K_M", 13: "Q3_K_L", 14: "Q4_K_S", 15: "Q4_K_M", 16: "Q5_K_S",
    17: "Q5_K_M", 18: "Q6_K", 32: "BF16",
}  # fmt: skip
"""llama.cpp's `llama_ftype`, the ones people meet; others are shown by number."""


@dataclass(frozen=True)
class EngineOptions:
    """How the model is run. Only `window` and `gpu_layers` can change bits."""

    window: int = DEFAULT_WINDOW
    """Tokens that fit into the context, prompt and generated text together."""
    threads: int | None = None
    """Threads; None means the physical cores that this process may use."""
    gpu_layers: int = 0
    """Layers kept on the GPU; -1 means all. Needs a llama-cpp-python built for it."""


@dataclass(frozen=True)
class ModelInfo:
    """What the GGUF file says of itself."""

    architecture: str
    name: str
    quantisation: str
    parameters: int
    trained_window: int
    vocabulary: int
    chat_template: str | None


class Engine:
    """One GGUF model in this process, with at most one adapter active at a time.

    Not safe for use by several threads at once.
    """

    def __init__(
        self,
        model: Path,
        *,
        adapters: Mapping[str, Path] | None = None,
        options: EngineOptions | None = None,
    ) -> None:
        self.path = Path(model)
        self.options = options or EngineOptions()
        self.threads = self.options.threads or physical_cores()
        self._adapter_paths = dict(adapters or {})
        self._adapters: dict[str, Any] = {}
        self._active: str | None = None
        self._cached: list[Tokens] = []  # the segments whose keys and values are in the cache
        self._position = 0  # tokens in the cache, generated ones included
        self._model: Any = None
        self._context: Any = None
        self._batch: Any = None
        self._llama = _load_library()
        self._load()
        self._tokenize = lru_cache(maxsize=256)(self._tokenize_uncached)

    # Loading

    def _load(self) -> None:
        llama = self._llama
        _check_file(self.path)
        params = llama.llama_model_default_params()
        params.n_gpu_layers = self.options.gpu_layers
        # Repacked weights change the kernels, and so the bits: pinned to what llama.cpp does by itself.
        params.use_extra_bufts = True
        with _log.watch() as lines:
            self._model = llama.llama_model_load_from_file(os.fsencode(self.path), params)
        if not self._model:
            cause = _cause(lines)
            if "unknown model architecture" in cause:
                hint = "this llama-cpp-python is too old for the model: install a newer one"
            else:
                hint = "compare the file's checksum with the publisher's"
            raise ModelFileInvalid(
                f"llama.cpp cannot load this file: {cause}", where=str(self.path), hint=hint
            )
        if not llama.llama_model_has_decoder(self._model):
            raise ModelFileInvalid(
                "this model has no decoder, so it cannot answer a question",
                where=str(self.path),
                hint="use a text generation model (not an embedding model)",
            )
        self._vocabulary = llama.llama_model_get_vocab(self._model)
        self.info = self._read_info()
        self._open_context()

    def _open_context(self) -> None:
        llama = self._llama
        params = llama.llama_context_default_params()
        params.n_ctx = self.options.window
        params.n_batch = params.n_ubatch = min(_AT_ONCE, self.options.window)
        params.n_seq_max = 1
        params.n_threads = params.n_threads_batch = self.threads
        # Flash attention moves logits: part of the canonical path, so never "auto".
        params.flash_attn_type = llama.LLAMA_FLASH_ATTN_TYPE_DISABLED
        # Without it a sliding-window model cannot take back a suffix.
        params.swa_full = True
        params.no_perf = True
        with _log.watch() as lines:
            self._context = llama.llama_init_from_model(self._model, params)
        if not self._context:
            raise OutOfMemory(
                f"no memory for a window of {self.options.window} tokens: {_cause(lines)}",
                where=str(self.path),
                hint="ask for a smaller window (--window 1024) or use a smaller model",
            )
        self._memory = llama.llama_get_memory(self._context)
        self._batch = llama.llama_batch_init(params.n_batch, 0, 1)
        # Wrapping C arrays once saves a millisecond a verdict.
        self._batch_tokens = _as_array(self._batch.token, params.n_batch)
        self._batch_positions = _as_array(self._batch.pos, params.n_batch)
        self._batch_outputs = _as_array(self._batch.logits, params.n_batch)
        for i in range(params.n_batch):
            self._batch.n_seq_id[i] = 1
            self._batch.seq_id[i][0] = 0
        self.window: int = llama.llama_n_ctx(self._context)

    def _read_info(self) -> ModelInfo:
        llama, model = self._llama, self._model
        metadata = dict(self._read_metadata())
        file_type = int(metadata.get("general.file_type", -1))
        template = llama.llama_model_chat_template(model, None)
        return ModelInfo(
            architecture=metadata.get("general.architecture", "unknown"),
            name=metadata.get("general.name", self.path.stem),
            quantisation=_FILE_TYPES.get(file_type, f"type {file_type}"),
            parameters=llama.llama_model_n_params(model),
            trained_window=llama.llama_model_n_ctx_train(model),
            vocabulary=llama.llama_vocab_n_tokens(self._vocabulary),
            chat_template=template.decode("utf-8", "replace") if template else None,
        )

    def _read_metadata(self) -> Iterator[tuple[str, str]]:
        llama, buffer = self._llama, ctypes.create_string_buffer(4096)
        for i in range(llama.llama_model_meta_count(self._model)):
            llama.llama_model_meta_key_by_index(self._model, i, buffer, len(buffer))
            key = buffer.value.decode("utf-8", "replace")
            llama.llama_model_meta_val_str_by_index(self._model, i, buffer, len(buffer))
            yield key, buffer.value.decode("utf-8", "replace")

    def close(self) -> None:
        """Free the model, its context and its adapters. Safe to call twice."""
        llama = self._llama
        if self._batch is not None:
            llama.llama_batch_free(self._batch)
            self._batch = None
        if self._context:
            llama.llama_free(self._context)
            self._context = None
        self._adapters.clear()  # freed with the model
        if self._model:
            llama.llama_model_free(self._model)
            self._model = None

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Tokens

    def tokenize(self, text: str, *, control: bool) -> Tokens:
        """Tokens of one piece of text, without BOS.

        `control=True` reads `<|im_end|>` and its kind as control tokens: for our own templates only.
        Data is always tokenised with `control=False`, where such text is plain characters.
        """
        return self._tokenize(text, control)

    def _tokenize_uncached(self, text: str, control: bool) -> Tokens:
        raw = text.encode("utf-8")
        room = len(raw) + 16
        tokens = (ctypes.c_int32 * room)()
        count = self._llama.llama_tokenize(self._vocabulary, raw, len(raw), tokens, room, False, control)
        if count < 0:
            raise EngineError(f"llama.cpp cannot tokenise {len(raw)} bytes", value=text)
        return tuple(tokens[:count])

    @property
    def position(self) -> int:
        """Tokens decoded so far: the prompt and what was generated after it."""
        return self._position

    @property
    def bos_token(self) -> int | None:
        """The beginning-of-sequence token, if the vocabulary has one."""
        token = int(self._llama.llama_vocab_bos(self._vocabulary))
        return token if token >= 0 else None

    def text_of(self, token: int) -> str:
        """A token as text, control tokens by their name (`<|im_end|>`)."""
        buffer = ctypes.create_string_buffer(256)
        size = self._llama.llama_token_to_piece(self._vocabulary, token, buffer, 256, 0, True)
        return buffer.raw[: max(0, size)].decode("utf-8", "replace")

    @property
    def leading_tokens(self) -> Tokens:
        """The beginning-of-sequence token, if this model wants one before every prompt."""
        if not self._llama.llama_vocab_get_add_bos(self._vocabulary):
            return ()
        return (self._llama.llama_vocab_bos(self._vocabulary),)

    @property
    def end_token(self) -> int:
        """The token that the grammar uses for "finished"."""
        llama = self._llama
        end: int = llama.llama_vocab_eos(self._vocabulary)
        return end if end >= 0 else int(llama.llama_vocab_eot(self._vocabulary))

    def is_end(self, token: int) -> bool:
        """Whether the model ends its turn with this token."""
        return bool(self._llama.llama_vocab_is_eog(self._vocabulary, token))

    def token_bytes(self) -> dict[int, bytes]:
        """The bytes of every token that stands for text; control and unused tokens are left out."""
        llama, vocabulary = self._llama, self._vocabulary
        room = 256
        buffer = ctypes.create_string_buffer(room)
        skip = llama.LLAMA_TOKEN_ATTR_CONTROL | llama.LLAMA_TOKEN_ATTR_UNUSED | llama.LLAMA_TOKEN_ATTR_UNKNOWN
        found: dict[int, bytes] = {}
        for token in range(self.info.vocabulary):
            if llama.llama_vocab_get_attr(vocabulary, token) & skip or self.is_end(token):
                continue
            size = llama.llama_token_to_piece(vocabulary, token, buffer, room, 0, False)
            if size < 0:  # longer than the buffer
                room = -size
                buffer = ctypes.create_string_buffer(room)
                size = llama.llama_token_to_piece(vocabulary, token, buffer, room, 0, False)
            if size > 0:
                found[token] = buffer.raw[:size]
        return found

    # Decoding

    def use_adapter(self, name: str | None) -> None:
        """Activate one adapter, or none. What was decoded under another one is forgotten."""
        if name == self._active:
            return
        llama = self._llama
        if name is None:
            status = llama.llama_set_adapters_lora(self._context, None, 0, None)
        else:
            adapter = self._adapters.get(name) or self._load_adapter(name)
            adapters = (llama.llama_adapter_lora_p_ctypes * 1)(adapter)
            scales = (ctypes.c_float * 1)(1.0)
            status = llama.llama_set_adapters_lora(self._context, adapters, 1, scales)
        if status != 0:
            raise AdapterInvalid(f"llama.cpp refused the adapter {name!r} (status {status})")
        self._active = name
        self.forget()

    def _load_adapter(self, name: str) -> Any:
        path = self._adapter_paths[name]
        _check_file(path)
        with _log.watch() as lines:
            adapter = self._llama.llama_adapter_lora_init(self._model, os.fsencode(path))
        if not adapter:
            raise AdapterInvalid(
                f"llama.cpp cannot use this adapter with {self.path.name}: {_cause(lines)}",
                where=str(path),
                hint="an adapter fits only the model it was trained on",
            )
        self._adapters[name] = adapter
        return adapter

    def adapter_metadata(self, name: str) -> dict[str, str]:
        """The adapter's own key-value pairs (`anvil.prompt`, `anvil.base_sha256`, ...)."""
        llama = self._llama
        adapter = self._adapters.get(name) or self._load_adapter(name)
        buffer = ctypes.create_string_buffer(4096)
        found = {}
        for i in range(llama.llama_adapter_meta_count(adapter)):
            llama.llama_adapter_meta_key_by_index(adapter, i, buffer, len(buffer))
            key = buffer.value.decode("utf-8", "replace")
            llama.llama_adapter_meta_val_str_by_index(adapter, i, buffer, len(buffer))
            found[key] = buffer.value.decode("utf-8", "replace")
        return found

    def forget(self) -> None:
        """Empty the key-value cache."""
        self._llama.llama_memory_clear(self._memory, True)
        self._cached, self._position = [], 0

    def read(self, segments: Sequence[Tokens]) -> Logits:
        """Decode a prompt on the canonical path; the next-token logits, float32 of shape (vocabulary,).

        The array is a view of llama.cpp's own buffer: it is valid until the next call.

        Raises:
            PromptTooLong: the segments together exceed the window.
            EngineError: llama.cpp failed.
        """
        segments = [segment for segment in segments if segment]
        if not segments:
            raise EngineError("an empty prompt has no logits")
        total = sum(map(len, segments))
        if total > self.window:
            raise PromptTooLong(
                f"the prompt has {total} tokens, the window {self.window}",
                hint="ask for a larger window (--window) or a shorter statement",
            )
        shared = 0
        for cached, wanted in zip(self._cached, segments[:-1], strict=False):
            if cached != wanted:
                break
            shared += 1
        kept = sum(map(len, segments[:shared]))
        self._cut_back(kept)
        if self._position != kept:  # recurrent memory cannot be cut back: start again, same calls
            shared = 0
        self._cached = self._cached[:shared]
        for number in range(shared, len(segments)):
            self._decode_segment(segments[number])
            self._cached.append(segments[number])
        return self._logits()

    def extend(self, token: int) -> Logits:
        """Decode one generated token after the prompt; the next-token logits as in `read`."""
        if self._position >= self.window:
            raise PromptTooLong(f"the generated text reached the window's end ({self.window} tokens)")
        self._decode_segment((token,))
        return self._logits()

    def _cut_back(self, position: int) -> None:
        if self._position == position:
            return
        if position == 0 or not self._llama.llama_memory_seq_rm(self._memory, 0, position, -1):
            self.forget()
        else:
            self._position = position

    def _decode_segment(self, tokens: Tokens) -> None:
        for start in range(0, len(tokens), CHUNK):
            chunk = tokens[start : start + CHUNK]
            for first, last in itertools.pairwise(_parts(len(chunk))):
                self._decode(chunk[first:last])

    def _decode(self, tokens: Tokens) -> None:
        size = len(tokens)
        batch = self._batch
        batch.n_tokens = size
        self._batch_tokens[:size] = tokens
        self._batch_positions[:size] = range(self._position, self._position + size)
        self._batch_outputs[: size - 1] = 0
        self._batch_outputs[size - 1] = 1
        with _log.watch() as lines:
            status = self._llama.llama_decode(self._context, batch)
        if status != 0:
            self.forget()
            raise EngineError(f"llama.cpp failed to decode (status {status}): {_cause(lines)}")
        self._position += size

    def _logits(self) -> Logits:
        pointer = self._llama.llama_get_logits_ith(self._context, -1)
        if not pointer:
            raise EngineError("llama.cpp returned no logits")
        logits: Logits = _as_array(pointer, self.info.vocabulary)
        return logits


def _parts(size: int) -> list[int]:
    """Where a chunk is cut for computing: at multiples of 32 tokens, and no part is shorter.

    llama.cpp multiplies few tokens by other code than many, some in groups, with other rounding. So tokens
    are few only where their chunk is short, and the groups begin where they would begin uncut.

        >>> _parts(130)
        [0, 64, 96, 130]
        >>> _parts(160)
        [0, 64, 128, 160]
    """
    cuts = [*range(0, size, _AT_ONCE), size]
    if len(cuts) > 2 and cuts[-1] - cuts[-2] < _AT_ONCE // 2:
        cuts[-2] -= _AT_ONCE // 2
    return cuts


def _as_array(pointer: Any, size: int) -> Any:
    import numpy as np

    return np.ctypeslib.as_array(pointer, shape=(size,))


def physical_cores() -> int:
    """Physical cores that this process may use, at least 1.

    Hyper-threads and cores beyond a container's CPU quota make llama.cpp's spinning threads slower.
    """
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    cores = set()
    for cpu in allowed:
        siblings = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
        try:
            cores.add(siblings.read_text(encoding="ascii").strip())
        except OSError:
            cores.add(str(cpu))
    count = len(cores)
    try:  # cgroup v2: "max 100000" or "150000 100000"
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        if quota != "max":
            count = min(count, int(quota) // int(period))
    except (OSError, ValueError):
        pass
    return max(1, count)


def build_info() -> dict[str, str]:
    """The llama-cpp-python version and the instruction sets llama.cpp was compiled for."""
    import llama_cpp

    llama = _load_library()
    features = llama.llama_print_system_info().decode("utf-8", "replace")
    flags = sorted(
        part.split("=")[0].strip().split(":")[-1].strip()
        for part in features.split("|")
        if part.strip().endswith("= 1")
    )
    return {"llama_cpp_python": llama_cpp.__version__, "instruction_sets": " ".join(flags)}


def _check_file(path: Path) -> None:
    """The mistakes that llama.cpp reports only in its log, or by a crash."""
    if not path.exists():
        raise ModelNotFound(
            "no such file", where=str(path), hint="`anvil-local models list` shows what is here"
        )
    if not path.is_file():
        raise ModelFileInvalid("this is not a file", where=str(path))
    with path.open("rb") as file:
        magic = file.read(4)
    if magic != b"GGUF":
        hint = "use a file in GGUF format; it begins with the four letters GGUF"
        raise ModelFileInvalid("this is not a GGUF file", where=str(path), value=magic, hint=hint)


class _Log:
    """llama.cpp's log: kept quiet, with the last lines at hand for error messages."""

    def __init__(self) -> None:
        self.lines: deque[str] = deque(maxlen=50)
        self.callback: Any = None  # ctypes keeps no reference of its own

    def __call__(self, level: int, text: bytes, _: Any) -> None:
        if level in (3, 4):  # ggml_log_level: warning, error
            self.lines.append(text.decode("utf-8", "replace").strip())

    def watch(self) -> _Log:
        self.lines.clear()
        return self

    def __enter__(self) -> deque[str]:
        return self.lines

    def __exit__(self, *_: object) -> None:
        pass


_log = _Log()


def _cause(lines: Sequence[str]) -> str:
    """The first line of llama.cpp's log that names the trouble: later ones only pass it on."""
    named = [line for line in lines if "error" in line.lower() or "fail" in line.lower()]
    return (named or list(lines) or ["no reason given"])[0]


def _let_threads_sleep() -> None:
    """Have OpenMP's waiting threads sleep rather than spin, unless the user chose otherwise.

    Spinning threads hold on to processors that another program needs, and wait for each other: with one
    competing process on two cores judging takes two to three times as long. Sleeping costs about 5 % on an
    idle machine (`scripts/bench busy`) and changes no bits. OpenMP reads this once, when it is loaded.
    """
    if "GOMP_SPINCOUNT" not in os.environ:
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")


def _load_library() -> Any:
    """llama_cpp's low-level bindings, with our log in place."""
    import warnings

    _let_threads_sleep()

    with warnings.catch_warnings():
        # llama_cpp imports packages that warn about themselves.
        warnings.simplefilter("ignore")
        from llama_cpp import llama_cpp as llama

    if _log.callback is None:
        _log.callback = llama.llama_log_callback(_log)
        llama.llama_log_set(_log.callback, ctypes.c_void_p(0))
        llama.llama_backend_init()
    return llama
