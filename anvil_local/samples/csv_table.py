"""CSV: one row a line, the first line names the columns; everything in a cell is text.

| cell | becomes |
|---|---|
| empty | the field is missing |
| contexts, a JSON list | the list |
| contexts, any other text | one context |
| `messages`, or a `user_input` that is a JSON list of objects | the messages of a trace |

The same holds of a column that is mapped to the field.

The contexts may also stand in several columns of the same name, one text each; empty ones are left
out. The separator is the one of `,`, `;` and tab that yields a column we know.
"""

from __future__ import annotations

import csv
import io
import sys
from collections import Counter
from collections.abc import Iterator
from typing import IO, Any

from anvil_local.errors import InputError
from anvil_local.samples.rows import FIELD_NAMES
from anvil_local.samples.strict_json import parse_json_text

_SEPARATORS = (",", ";", "\t")
_KNOWN = frozenset(name for names in FIELD_NAMES.values() for name in names)
_CONTEXTS = frozenset(FIELD_NAMES["retrieved_contexts"])


def read(stream: IO[bytes]) -> Iterator[tuple[int, Any | InputError]]:
    """Yield `(line, row or error)`, the line where the row begins, counted from 1; see `formats`.

    Raises `InputError` where the columns are not clear or the rest cannot be told apart.
    """
    # The limit is one of the whole process; the default of 128 kB is less than a long context.
    csv.field_size_limit(sys.maxsize)
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    line = 0
    try:
        head = text.readline()
        text.seek(0)
        table = csv.reader(text, delimiter=_separator(head), strict=True)
        columns: list[str] = []
        for cells in table:
            begin, line = line + 1, table.line_num
            if not cells:
                continue
            if columns:
                yield begin, _row(columns, cells)
            else:
                columns = _columns(cells)
    except UnicodeDecodeError as error:
        raise InputError(
            f"byte 0x{error.object[error.start]:02x} after line {line} is not UTF-8",
            hint="save the file as UTF-8 (in Excel: CSV UTF-8)",
        ) from None
    except csv.Error as error:
        raise InputError(
            f"not CSV after line {line}: {error}", hint='a quote inside a quoted cell is written twice: ""'
        ) from None
    finally:
        # The stream belongs to the caller.
        text.detach()


def _separator(head: str) -> str:
    found = [mark for mark in _SEPARATORS if _KNOWN & set(next(csv.reader([head], delimiter=mark), ()))]
    # A file with one column has no separator at all.
    return next((mark for mark in found if mark in head), ",")


def _columns(cells: list[str]) -> list[str]:
    columns = [cell.strip() for cell in cells]
    for name, count in Counter(columns).items():
        if not name:
            raise InputError("a column has no name", hint="the first line names the columns")
        if count > 1 and name not in _CONTEXTS:
            raise InputError(
                f"the column `{name}` is there {count} times", field=name, hint="keep one of them"
            )
    return columns


def _row(columns: list[str], cells: list[str]) -> dict[str, Any] | InputError:
    if len(cells) != len(columns):
        return InputError(
            f"{len(cells)} cells, but {len(columns)} columns",
            hint="a cell that holds the separator, a quote or a line end stands in quotes",
        )
    row: dict[str, Any] = {}
    try:
        for name, cell in zip(columns, cells, strict=True):
            if not cell.strip():
                continue
            if columns.count(name) > 1:
                row.setdefault(name, []).append(cell)
            else:
                row[name] = read_cell(name, cell)
    except InputError as error:
        return error
    return row


def read_cell(name: str, cell: str) -> Any:
    """What the text of a cell is as this field; raises `InputError` for a list that is not JSON."""
    if name in _CONTEXTS and cell.lstrip().startswith("["):
        value = _parsed(cell)
        if value is None and cell.lstrip()[1:].lstrip().startswith(("'", '"')):
            raise InputError(
                f"`{name}` looks like a list, but is not JSON",
                field=name,
                value=cell,
                hint="pandas writes Python lists: turn them into JSON first, df[column].map(json.dumps)",
            )
        return cell if value is None else value
    if name == "messages":
        value = _parsed(cell)
        if not isinstance(value, list):
            raise InputError("`messages` must be a JSON list", field=name, value=cell)
        return value
    if name in FIELD_NAMES["user_input"] and cell.lstrip().startswith("["):
        value = _parsed(cell)
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            return value
    return cell


def _parsed(cell: str) -> Any:
    try:
        return parse_json_text(cell)
    except InputError:
        return None
