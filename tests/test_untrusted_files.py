"""Files that want to break their reader: refused as every other bad file is, and soon.

The kinds come from reading and from `scripts/fuzz`.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anvil_local.calibration import read_labelled
from anvil_local.cards import load_card
from anvil_local.config import load_config
from anvil_local.errors import AnvilError
from anvil_local.gguf import check_gguf
from anvil_local.labels import read_labels, select_verdicts
from anvil_local.models import _read_manifest
from anvil_local.reports import load_report
from anvil_local.samples import SampleFile, parse_mapping
from anvil_local.samples.mapping import FieldMap
from tests.test_labels import report

DEEP, LONG = 100_000, "9" * 5_000  # Python turns no text of more than 4,300 digits into a number

JSON = {
    "deep lists": "[" * DEEP,
    "deep objects": '{"a":' * DEEP,
    "deep and closed": '{"schema_version": "1", "a": ' + "[" * DEEP + "]" * DEEP + "}",
    "a long number": '{"schema_version": "1", "response": "a", "contexts": ["b"], "n": ' + LONG + "}",
    "a number beyond floats": '{"schema_version": "1", "response": "a", "contexts": ["b"], "n": 1e999}',
    "not a number": '{"schema_version": "1", "response": "a", "contexts": ["b"], "n": NaN}',
    "half a character": '{"schema_version": "1", "response": "\\ud800", "contexts": ["b"]}',
    "nothing": "",
    "null": "null",
    "a zero byte": "\0",
}
READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "samples, JSON lines": ("x.jsonl", lambda path: list(SampleFile(path))),
    "samples, JSON": ("x.json", lambda path: list(SampleFile(path))),
    "samples, unknown": ("x", lambda path: list(SampleFile(path))),
    "a report": ("x.json", load_report),
    "a judge card": ("x.json", load_card),
    "labelled rows": ("x.jsonl", read_labelled),
}


@pytest.mark.parametrize("kind", JSON)
@pytest.mark.parametrize("reader", READERS)
def test_hostile_json_is_refused_by_every_reader(reader: str, kind: str, tmp_path: Path) -> None:
    name, read = READERS[reader]
    path = tmp_path / name
    path.write_text(JSON[kind], encoding="utf-8")
    with pytest.raises(AnvilError) as error:
        read(path)
    assert len(str(error.value)) < 2_000


@pytest.mark.parametrize("kind", [kind for kind in JSON if kind != "nothing"])
def test_hostile_labels_are_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(JSON[kind] + "\n", encoding="utf-8")
    with pytest.raises(AnvilError):
        read_labels(path, select_verdicts(report([0.5, -0.5]), count=2))


@pytest.mark.parametrize(
    "text", ["a = " + "[" * DEEP, f"window = {LONG}", "a" * DEEP, "\0", "a." * 5_000 + "b = 1"]
)
def test_hostile_toml_is_refused(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "anvil.toml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AnvilError):
        load_config()
    with pytest.raises(AnvilError):
        _read_manifest(tmp_path / "anvil.toml", "user")


def gguf(tensors: int, pairs: int, *parts: bytes) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, pairs) + b"".join(parts)


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


HEADERS = {
    # A product of so many numbers would take hours.
    "a tensor of 400,000 dimensions": gguf(
        1, 0, text(b"x"), struct.pack("<I", 400_000), struct.pack("<Q", 2**64 - 1) * 400_000, bytes(12)
    ),
    "more strings than the file has bytes": gguf(
        0, 1, text(b"a"), struct.pack("<IIQ", 9, 8, 2**63), bytes(800_000)
    ),
    "more tensors than the file has bytes": gguf(2**63, 0, bytes(800_000)),
    "more pairs than the file has bytes": gguf(0, 2**62, (text(b"") + struct.pack("<IB", 0, 1)) * 50_000),
    "a list of lists": gguf(0, 1, text(b"a"), struct.pack("<IIQ", 9, 9, 1), bytes(100)),
    "a string longer than the file": gguf(0, 1, struct.pack("<Q", 2**63), bytes(100)),
    "weights far beyond the file": gguf(1, 0, text(b"x"), struct.pack("<IQQIQ", 2, 2**63, 2**63, 0, 2**63)),
    "an alignment beyond the file": gguf(0, 1, text(b"general.alignment"), struct.pack("<IQ", 10, 2**63)),
}  # fmt: skip


@pytest.mark.parametrize("kind", HEADERS)
def test_hostile_gguf_headers_are_refused_soon(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(HEADERS[kind])
    began = time.process_time()
    with pytest.raises(AnvilError):
        check_gguf(path)
    assert time.process_time() - began < 5


def test_a_place_in_a_list_may_have_any_number_of_digits() -> None:
    for digits in ("7", "9" * 9, LONG):
        found = FieldMap(parse_mapping([f"response=a[{digits}]"])).apply({"a": ["x"]})
        assert "response" not in found
