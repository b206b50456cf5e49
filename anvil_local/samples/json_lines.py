r"""JSON lines: one object a line, in UTF-8.

Lines end at `\n` only: U+2028, a form feed and others may stand inside a text. A byte order mark,
`\r\n`, blank lines and a last line without its end are accepted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

from anvil_local.errors import InputError
from anvil_local.samples.strict_json import parse_row

_BOM = b"\xef\xbb\xbf"


def read(stream: IO[bytes]) -> Iterator[tuple[int, Any | InputError]]:
    """Yield `(line, row or error)`, lines counted from 1; see `formats`."""
    offset = 0
    for line, data in enumerate(stream, start=1):
        if data.strip(b" \t\r\n") not in (b"", _BOM):
            yield line, _parse(data, line, offset)
        offset += len(data)


def _parse(data: bytes, line: int, offset: int) -> Any | InputError:
    row = parse_row(data, line=line, offset=offset)
    if line == 1 and data.strip().removeprefix(_BOM) == b"[":
        return InputError(
            "the first line is `[`, not a row",
            hint="a file that is one JSON list needs a name that ends in .json",
        )
    return row
