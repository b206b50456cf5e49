"""GGUF files without llama.cpp: what a file is, whether it is whole, and its weights in another format."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from anvil_local.errors import ModelFileInvalid
from anvil_local.records import Record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["GgufHeader", "check_gguf", "requantise"]

# https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
# GGML_MAX_DIMS. A product of as many numbers as a file may claim would take hours.
_DIMENSIONS = 4
# Weights per block and bytes per block of each tensor type (ggml.h, ggml-common.h). An unknown type only
# makes the check of the file's length weaker.
# fmt: off
_BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34),
    10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210), 15: (256, 292),
    16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18), 21: (256, 110),
    22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8), 28: (1, 8),
    29: (256, 56), 30: (1, 2), 34: (256, 54), 35: (256, 66), 39: (32, 17),
}
# fmt: on


class GgufHeader(Record):
    """The parts of a GGUF header that the registry needs."""

    architecture: str
    """`general.architecture`, such as `llama`."""
    kind: str
    """`general.type`: `model`, `adapter`, `mmproj`, ...; files from before that key are models."""
    title: str
    """`general.name`; empty when the file has none."""
    license: str
    """`general.license`; empty when the file has none."""
    context_length: int | None
    """Tokens it was trained for."""
    tensors: int
    """How many tensors it holds."""
    shards: int
    """In how many files the model was split; 1 or 0 for a whole one."""
    chat_template: bool
    """Whether it brings a chat template."""


def check_gguf(path: Path) -> GgufHeader:
    """Read the header of a GGUF file and refuse what cannot be a whole, plain text model.

    Raises ModelFileInvalid: not GGUF, truncated, a LoRA adapter, a vision part, a shard, no weights.
    """

    def refuse(message: str, hint: str | None = None) -> ModelFileInvalid:
        return ModelFileInvalid(message, where=str(path), hint=hint)

    try:
        with path.open("rb") as file:
            _check_magic(file, refuse)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                header = _parse_header(data, refuse)
    except OSError as error:
        raise refuse(f"the file cannot be read: {error.strerror}") from error
    if header.kind == "adapter":
        raise refuse("this is a LoRA adapter, not a model", "an adapter needs the model it was made for")
    if header.kind not in ("", "model") or header.architecture == "clip":
        raise refuse(f"this is not a text model but a part of one: {header.kind or header.architecture}")
    if header.shards > 1:
        raise refuse(
            f"this is one of {header.shards} parts of a model",
            "join them with `llama-gguf-split --merge FIRST_PART OUT.gguf`",
        )
    if not header.tensors:
        raise refuse("the file holds a vocabulary and no weights")
    return header


def _check_magic(file: BinaryIO, refuse: Callable[..., ModelFileInvalid]) -> None:
    start = file.read(24)
    if start.startswith(b"version https://git-l"):
        raise refuse("this is a Git LFS pointer, not the file itself", "fetch it with `git lfs pull`")
    if start[:4] != b"GGUF":
        raise refuse("this is not a GGUF file", "it must begin with the letters GGUF")
    if len(start) < 24:
        raise refuse("the file is truncated: it ends inside the header", "fetch it again")
    version = int.from_bytes(start[4:8], "little")
    if version not in (2, 3):
        big = int.from_bytes(start[4:8], "big") in (2, 3)
        raise refuse("the GGUF file is big-endian" if big else f"GGUF version {version} is not supported")


@dataclass(frozen=True)
class _Tensor:
    """Where the header speaks of a tensor, and where the tensor is."""

    kind: int
    weights: int
    offset: int
    """Bytes from the start of the weights."""
    kind_at: int
    """Position of `kind` in the header; that of `offset` is 4 bytes on."""

    @property
    def size(self) -> int:
        per_block, size = _BLOCKS.get(self.kind, (1, 0))
        return self.weights // per_block * size


@dataclass
class _Layout:
    values: dict[str, str | int | None] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    """Where the value of a key begins."""
    tensors: list[_Tensor] = field(default_factory=list)
    start: int = 0
    """Where the weights begin: the next multiple of the alignment after the header."""
    alignment: int = 32


def _read_layout(data: mmap.mmap | bytes, refuse: Callable[..., ModelFileInvalid]) -> _Layout:
    position = 8
    layout = _Layout()

    def read(form: str) -> int:
        nonlocal position
        (value,) = struct.unpack_from(f"<{form}", data, position)
        position += struct.calcsize(f"<{form}")
        return int(value) if form not in "fd" else 0

    def skip(count: int) -> None:
        nonlocal position
        position += count
        if position > len(data):
            raise EOFError

    def read_string() -> str:
        start, length = position + 8, read("Q")
        skip(length)
        return data[start : start + length].decode("utf-8", "replace")

    def skip_strings(count: int) -> None:  # vocabularies: a quarter of a million of them
        nonlocal position
        unpack = struct.Struct("<Q").unpack_from
        for _ in range(count):
            position += 8 + unpack(data, position)[0]

    def read_value(kind: int) -> str | int | None:
        if kind == _STRING:
            return read_string()
        if kind != _ARRAY:
            return read(_SCALARS[kind])
        inner, count = read("I"), read("Q")
        if inner == _STRING:
            skip_strings(count)
        else:
            skip(struct.calcsize(f"<{_SCALARS[inner]}") * count)
        return None

    try:
        tensors, pairs = read("Q"), read("Q")
        for _ in range(pairs):
            key = read_string()
            kind = read("I")
            layout.places[key] = position
            layout.values[key] = read_value(kind)
        for _ in range(tensors):
            read_string()
            weights, dimensions = 1, read("I")
            if dimensions > _DIMENSIONS:
                raise refuse("the header is corrupt: a tensor of too many dimensions", "fetch it again")
            for _ in range(dimensions):
                weights *= read("Q")
            kind_at = position
            layout.tensors.append(_Tensor(read("I"), weights, read("Q"), kind_at))
    except (struct.error, EOFError) as error:
        raise refuse("the file is truncated: it ends inside the header", "fetch it again") from error
    except (KeyError, OverflowError) as error:
        raise refuse("the header is corrupt", "fetch it again") from error
    alignment = layout.values.get("general.alignment") or 32
    if not isinstance(alignment, int) or alignment <= 0:
        raise refuse("the header is corrupt: general.alignment", "fetch it again")
    layout.alignment = alignment
    layout.start = -(-position // alignment) * alignment
    end = max((tensor.offset + tensor.size for tensor in layout.tensors), default=0)
    missing = layout.start + end - len(data)
    if layout.tensors and missing > 0:
        raise refuse(f"the file is truncated: at least {missing} bytes are missing", "fetch it again")
    return layout


def _parse_header(data: mmap.mmap, refuse: Callable[..., ModelFileInvalid]) -> GgufHeader:
    layout = _read_layout(data, refuse)
    values = layout.values

    def text(key: str) -> str:
        value = values.get(key)
        return value if isinstance(value, str) else ""

    architecture = text("general.architecture")
    length = values.get(f"{architecture}.context_length")
    shards = values.get("split.count")
    return GgufHeader(
        architecture=architecture,
        kind=text("general.type"),
        title=text("general.name"),
        license=text("general.license"),
        context_length=length if isinstance(length, int) and length > 0 else None,
        tensors=len(layout.tensors),
        shards=shards if isinstance(shards, int) else 0,
        chat_template="tokenizer.chat_template" in values,
    )


_Q4_1, _Q8_0 = 3, 8
_FILE_TYPE = {_Q8_0: 7}  # llama.cpp's `llama_ftype` of a file whose weights are mostly of a type


def requantise(source: Path, target: Path) -> None:
    """Write a model with its Q4_1 weights as Q8_0; everything else stays as it is.

    llama.cpp multiplies Q8_0 about 1.7 times as fast as Q4_1 in prefill, for which it has no fast kernel.
    A block of Q8_0 holds what a block of Q4_1 says to within 1/254 of its largest weight. The arithmetic is
    IEEE single precision without fused operations, so every machine writes the same bytes.

    Raises ModelFileInvalid for a file that is no GGUF, is truncated or has no Q4_1 weights.
    """
    import numpy as np

    def refuse(message: str, hint: str | None = None) -> ModelFileInvalid:
        return ModelFileInvalid(message, where=str(source), hint=hint)

    with source.open("rb") as file, target.open("wb") as out:
        _check_magic(file, refuse)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            layout = _read_layout(data, refuse)
            if not any(tensor.kind == _Q4_1 for tensor in layout.tensors):
                raise refuse("the file has no Q4_1 weights")
            header = bytearray(data[: layout.start])
            if place := layout.places.get("general.file_type"):
                struct.pack_into("<I", header, place, _FILE_TYPE[_Q8_0])
            out.write(header)  # its final form follows when the offsets are known
            offset = 0
            for tensor in sorted(layout.tensors, key=lambda each: each.offset):
                begin = layout.start + tensor.offset
                weights = data[begin : begin + tensor.size]
                kind = tensor.kind
                if kind == _Q4_1:
                    kind, weights = _Q8_0, _to_q8_0(_from_q4_1(np.frombuffer(weights, np.uint8)))
                struct.pack_into("<IQ", header, tensor.kind_at, kind, offset)
                padding = -len(weights) % layout.alignment
                out.write(weights + b"\0" * padding)
                offset += len(weights) + padding
            out.seek(0)
            out.write(header)


def _from_q4_1(data: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Blocks of 20 bytes (scale, minimum, 16 bytes of two 4-bit weights) as rows of 32 weights."""
    import numpy as np

    blocks = data.reshape(-1, 20)
    scale, low = (blocks[:, at : at + 2].copy().view("<f2").astype(np.float32) for at in (0, 2))
    packed = blocks[:, 4:]
    return np.concatenate([packed & 15, packed >> 4], axis=1).astype(np.float32) * scale + low


def _to_q8_0(weights: NDArray[np.float32]) -> bytes:
    """Rows of 32 weights as blocks of 34 bytes (scale, 32 signed bytes); halves are rounded away from 0."""
    import numpy as np

    scale = np.abs(weights).max(axis=1, keepdims=True) / np.float32(127)
    inverse = np.divide(np.float32(1), scale, out=np.zeros_like(scale), where=scale != 0)
    scaled = weights * inverse
    whole = np.trunc(scaled + np.copysign(np.float32(0.5), scaled)).astype(np.int8)
    return np.concatenate([scale.astype("<f2").view(np.uint8), whole.view(np.uint8)], axis=1).tobytes()
