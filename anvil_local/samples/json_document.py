"""JSON: a list of rows, or an object with the single key `samples` that holds the list.

The document is cut into its elements while it is read, so that a large file does not have to fit into
memory: brackets and quotes are ASCII, and no byte of a longer UTF-8 character looks like them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, Any

from anvil_local.errors import InputError
from anvil_local.samples.strict_json import parse_row

_CHUNK = 1 << 18
_START = re.compile(rb'(?:\xef\xbb\xbf)?\s*(\{\s*"samples"\s*:\s*)?\[')
# A text that ends within the chunk is passed in one step; `*+` keeps that linear.
_TEXT = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_BETWEEN = re.compile(_TEXT + rb'|["\[\]{},]', re.DOTALL)
_INSIDE = re.compile(_TEXT + rb'|["\[\]{}]', re.DOTALL)
_IN_TEXT = re.compile(rb'["\\]')
_QUOTE = ord('"')
_SPACE = b" \t\r\n"
_SHAPE = 'a JSON file holds a list of rows, or {"samples": [...]} and nothing else'


def read(stream: IO[bytes]) -> Iterator[tuple[int, Any | InputError]]:
    """Yield `(index, row or error)`, indexes counted from 0; see `formats`.

    Raises `InputError` where the list itself is broken: what follows cannot be told apart.
    """
    head = stream.read(_CHUNK)
    start = _START.match(head)
    if start is None:
        raise InputError("the JSON document is not a list of rows", hint=_SHAPE)
    line = 1 + start.group().count(b"\n")
    elements = _elements(stream, head[start.end() :], start.end())
    for index, (data, offset, last) in enumerate(elements):
        body = data.lstrip(_SPACE)
        if body:
            skipped = len(data) - len(body)
            row_line = line + data.count(b"\n", 0, skipped)
            yield index, parse_row(body, line=row_line, offset=offset + skipped)
        elif index or not last:
            raise InputError(f"not JSON: a comma with no row beside it at byte {offset}", hint=_SHAPE)
        line += data.count(b"\n")
        if last:
            _check_end(stream, in_object=start.group(1) is not None, line=line)


def _elements(stream: IO[bytes], chunk: bytes, offset: int) -> Iterator[tuple[bytes, int, bool]]:
    """Yield each element's bytes, where it begins in the file, and whether it is the last.

    `chunk` is what was read behind the opening bracket and `offset` its place in the file. Leaves the
    stream just behind the closing bracket.
    """
    chunk = chunk or stream.read(_CHUNK)
    parts: list[bytes] = []
    begin = offset
    depth = skip = 0
    in_text = False
    while chunk:
        position, taken = skip, 0
        while found := (_IN_TEXT if in_text else _INSIDE if depth else _BETWEEN).search(chunk, position):
            byte, position = found.group(), found.end()
            if byte == b"\\":
                position += 1
            elif byte == b'"':
                in_text = not in_text
            elif byte[0] == _QUOTE:
                continue
            elif byte in b"[{":
                depth += 1
            elif depth:
                depth -= byte in b"]}"
            elif byte == b"}":
                raise InputError(
                    f"not JSON: a }} without its {{ at byte {offset + position - 1}", hint=_SHAPE
                )
            else:
                if byte == b"]":
                    stream.seek(offset + position)
                yield b"".join((*parts, chunk[taken : position - 1])), begin, byte == b"]"
                if byte == b"]":
                    return
                parts, taken, begin = [], position, offset + position
        # A backslash at the very end of a chunk escapes the first byte of the next one.
        skip = max(0, position - len(chunk))
        parts.append(chunk[taken:])
        offset += len(chunk)
        chunk = stream.read(_CHUNK)
    raise InputError(f"not JSON: the file ends at byte {offset}, before its list does", hint=_SHAPE)


def _check_end(stream: IO[bytes], *, in_object: bool, line: int) -> None:
    rest = stream.read(_CHUNK).lstrip(_SPACE)
    if in_object:
        if not rest.startswith(b"}"):
            raise InputError(f"the list of `samples` ends at line {line}, and more follows", hint=_SHAPE)
        rest = rest[1:].lstrip(_SPACE)
    if rest or stream.read(1):
        raise InputError(f"the list ends at line {line}, and more follows", hint=_SHAPE)
