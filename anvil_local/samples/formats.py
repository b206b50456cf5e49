"""The file formats, one row each; a format is one module.

A *container* has `read(stream)`: it gets a file opened in binary mode at its beginning and yields
`(place, row)` for each row. `place` is what people look for (a line from 1, an index from 0), `row` is
the parsed value, or the `InputError` that refuses it. It raises `InputError` only when the rest of the
file is lost too. It keeps no more than a few rows.

A *shape* has `translate(row)`: it turns what another program writes into a row with our field names, or
raises `InputError`. Its rows come from JSON lines or a JSON list.

A *document* has `read(stream)` as well, but needs the whole file in memory.

The format is known by the file's name, or by a beginning that no other format has; everything else is
asked for with `--format`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import IO, Any

from anvil_local.errors import InputError, UsageError
from anvil_local.samples import (
    arrow,
    csv_table,
    deepeval,
    inspect_log,
    json_document,
    json_lines,
    langgraph,
    llamaindex,
    otel_spans,
    promptfoo,
    responses,
)
from anvil_local.samples.strict_json import parse_json, without_frames

Rows = Iterator[tuple[int, Any | InputError]]
"""The rows of a file with their places."""

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_SNIFF_BYTES = 65536
_BOM = b"\xef\xbb\xbf"
_DOCUMENT = re.compile(rb'\[|\{\s*"samples"\s*:')
_PARQUET = b"PAR1"
_ARROW = b"ARROW1"
_ZIP = b"PK\x03\x04"
# The first keys that these programs write; nothing else begins so.
_INSPECT = re.compile(rb'\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"\w+"\s*,\s*"eval"\s*:\s*\{')
_PROMPTFOO = re.compile(rb'\{\s*"evalId"\s*:\s*[^,]{1,200},\s*"results"\s*:\s*\{')
_OTLP = re.compile(rb'\{\s*"resourceSpans"\s*:\s*\[')

_LINES, _INDEX = "{file}:{place}", "{file}[{place}]"


@dataclass(frozen=True)
class Format:
    """A file format."""

    name: str
    """What `--format` calls it."""
    title: str
    """What people call it."""
    suffixes: tuple[str, ...]
    """The file names that are read so without a look at the content."""
    read: Callable[[IO[bytes]], Rows]
    """See the module's docstring."""
    where: str = _INDEX
    """How a place is written, from `file` and `place`."""
    binary: bool = False
    """Whether it is no text."""
    read_cell: Callable[[str, str], Any] | None = None
    """What a mapped text is as a field, in a format that has nothing but text."""


def _read_any(stream: IO[bytes]) -> Rows:
    """Read JSON lines, a JSON list, or one JSON object that fills the file."""
    head = _head(stream)
    if head.startswith(b"["):
        return json_document.read(stream)
    return _one_object(stream) if _is_one_object(head) else json_lines.read(stream)


def _one_object(stream: IO[bytes]) -> Rows:
    yield 0, parse_json(stream.read())


def _shaped(translate: Callable[[Any], Any]) -> Callable[[IO[bytes]], Rows]:
    def read(stream: IO[bytes]) -> Rows:
        for place, row in _read_any(stream):
            try:
                yield place, row if isinstance(row, InputError) else translate(row)
            except InputError as error:
                yield place, without_frames(error)

    return read


def _read_promptfoo(stream: IO[bytes]) -> Rows:
    head = _head(stream)
    if _PROMPTFOO.match(head) or _is_one_object(head):
        return promptfoo.read(stream)
    return _shaped(promptfoo.translate)(stream)


def _read_spans(stream: IO[bytes]) -> Rows:
    return otel_spans.read(_read_any(stream))


JSON_LINES = Format("jsonl", "JSON lines", (".jsonl", ".ndjson"), json_lines.read, _LINES)
JSON_DOCUMENT = Format("json", "JSON", (), json_document.read)
CSV = Format("csv", "CSV", (".csv", ".tsv"), csv_table.read, _LINES, read_cell=csv_table.read_cell)
PARQUET = Format("parquet", "Parquet", (".parquet",), arrow.read_parquet, binary=True)
ARROW = Format("arrow", "Arrow", (".arrow",), arrow.read_arrow, binary=True)
FOLDER = Format("datasets", "a folder of Hugging Face datasets", (), arrow.read_folder)
OPENAI = Format("openai", "logged OpenAI requests with their answers", (), _shaped(responses.translate))
LANGGRAPH = Format("langgraph", "LangGraph snapshots", (), _shaped(langgraph.translate))
LLAMAINDEX = Format("llamaindex", "LlamaIndex events", (), _shaped(llamaindex.translate))
DEEPEVAL = Format("deepeval", "DeepEval test cases", (), _shaped(deepeval.translate))
PROMPTFOO = Format("promptfoo", "promptfoo results", (), _read_promptfoo)
INSPECT = Format("inspect", "an Inspect log", (), inspect_log.read)
SPANS = Format("otel", "OpenTelemetry GenAI spans", (), _read_spans)
FORMATS = (
    *(JSON_LINES, JSON_DOCUMENT, CSV, PARQUET, ARROW, FOLDER),
    *(OPENAI, LANGGRAPH, LLAMAINDEX, DEEPEVAL, PROMPTFOO, INSPECT, SPANS),
)
"""All of them."""

_SHAPES = (OPENAI, LANGGRAPH, LLAMAINDEX, DEEPEVAL, PROMPTFOO)


def find_format(name: str, stream: IO[bytes], *, wanted: str | None = None) -> Format:
    """Choose the format: the one that is wanted, else by the file's name, else by how it begins.

    `stream` must be at its beginning, and is there afterwards. A `.json` file is looked into: many of
    them hold JSON lines. Raises `InputError`, and `UsageError` for an unknown name.
    """
    head = stream.read(_SNIFF_BYTES)
    stream.seek(0)
    # A certain beginning counts for more than a name: collectors write spans into .jsonl files.
    known = _by_name(wanted) if wanted else _by_content(head) or _by_suffix(name)
    if known is None or not known.binary:
        if head.startswith(_UTF16):
            raise InputError("the file is UTF-16", where=name, hint="save it as UTF-8")
        if head.startswith(_ZIP):
            raise InputError(
                "the file is a zip archive (as .xlsx and Inspect's .eval are)",
                where=name,
                hint="save the sheet as CSV, or turn the log into .json with `inspect log convert`",
            )
    start = _start(head)
    if known is None:
        return _json_format(name, start)
    by_line = known in _SHAPES and not (start.startswith(b"[") or _is_one_object(start))
    return replace(known, where=_LINES) if by_line else known


def _by_name(name: str) -> Format:
    for known in FORMATS:
        if known.name == name:
            return known
    names = ", ".join(known.name for known in FORMATS)
    raise UsageError("unknown format", value=name, hint=f"known: {names}")


def _by_suffix(name: str) -> Format | None:
    suffix = PurePath(name).suffix.lower()
    return next((known for known in FORMATS if suffix in known.suffixes), None)


def _by_content(head: bytes) -> Format | None:
    if head.startswith(_PARQUET):
        return PARQUET
    if head.startswith(_ARROW):
        return ARROW
    start = _start(head)
    for pattern, known in ((_INSPECT, INSPECT), (_PROMPTFOO, PROMPTFOO), (_OTLP, SPANS)):
        if pattern.match(start):
            return known
    return None


def _json_format(name: str, start: bytes) -> Format:
    if not start:
        return JSON_LINES
    if _DOCUMENT.match(start):
        return JSON_DOCUMENT
    if not start.startswith(b"{"):
        raise InputError(
            "the file is neither JSON lines nor JSON",
            where=name,
            hint="write one JSON object a line (.jsonl), or a list of them (.json); other formats are "
            "known by their suffix (.csv, .parquet) or by --format",
        )
    if _is_one_object(start):
        raise InputError(
            "the file is one JSON object over several lines, not a list of rows",
            where=name,
            hint='write a list of objects, or {"samples": [...]}, or one object a line; '
            "for another program's file say which: --format",
        )
    return JSON_LINES


def _head(stream: IO[bytes]) -> bytes:
    head = stream.read(_SNIFF_BYTES)
    stream.seek(0)
    return _start(head)


def _start(head: bytes) -> bytes:
    return head.removeprefix(_BOM).lstrip()


def _is_one_object(start: bytes) -> bool:
    return start.split(b"\n", 1)[0].strip() == b"{"
