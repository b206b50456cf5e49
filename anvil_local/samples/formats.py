"""The file formats, one row each; a format is a module with a `read` function.

`read(stream)` gets a file opened in binary mode at its beginning and yields `(place, row)` for each
row: `place` is what people look for (a line from 1, an index from 0), `row` is the parsed value, or
the `InputError` that refuses it. It raises `InputError` only when the rest of the file is lost too.
It keeps no more than one row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import IO, Any

from anvil_local.errors import InputError
from anvil_local.samples import json_document, json_lines

Rows = Iterator[tuple[int, Any | InputError]]
"""The rows of a file with their places."""

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_SNIFF_BYTES = 65536
_DOCUMENT = re.compile(rb'\[|\{\s*"samples"\s*:')


@dataclass(frozen=True)
class Format:
    """A file format."""

    name: str
    """What people call it."""
    suffixes: tuple[str, ...]
    """The file names that are read so without a look at the content."""
    read: Callable[[IO[bytes]], Rows]
    """See the module's docstring."""
    where: str
    """How a place is written, from `file` and `place`."""


JSON_LINES = Format("JSON lines", (".jsonl", ".ndjson"), json_lines.read, "{file}:{place}")
JSON_DOCUMENT = Format("JSON", (), json_document.read, "{file}[{place}]")
FORMATS = (JSON_LINES, JSON_DOCUMENT)
"""All of them."""


def find_format(name: str, stream: IO[bytes]) -> Format:
    """Choose the format by the file's name, else by how it begins; `stream` must be at its beginning.

    A `.json` file is looked into: many of them hold JSON lines. Raises `InputError`.
    """
    head = stream.read(_SNIFF_BYTES)
    stream.seek(0)
    if head.startswith(_UTF16):
        raise InputError("the file is UTF-16", where=name, hint="save it as UTF-8")
    suffix = PurePath(name).suffix.lower()
    for known in FORMATS:
        if suffix in known.suffixes:
            return known
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if not start:
        return JSON_LINES
    if _DOCUMENT.match(start):
        return JSON_DOCUMENT
    if not start.startswith(b"{"):
        raise InputError(
            "the file is neither JSON lines nor JSON",
            where=name,
            hint="write one JSON object a line (.jsonl), or a list of them (.json)",
        )
    if start.split(b"\n", 1)[0].strip() == b"{":
        raise InputError(
            "the file is one JSON object over several lines, not a list of rows",
            where=name,
            hint='write a list of objects, or {"samples": [...]}, or one object a line',
        )
    return JSON_LINES
