"""JSON without the parts that two programs read in two ways.

Python's `json` lets pass what the standard does not have or leaves open: NaN, a key given twice,
half a surrogate pair, numbers that overflow to infinity. Each of them would come out of a report as
something else than went in, so each is refused, with its place.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from anvil_local.errors import InputError, shorten

MAX_DEPTH = 100
"""Lists and objects inside each other; pydantic and `json` stop at a few hundred, with a crash."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN_KEY = re.compile(r"[\w-]+")


def parse_json(data: bytes, *, line: int = 1, offset: int = 0) -> Any:
    """Parse one JSON value.

    `line` and `offset` say where `data` begins in its file (line from 1, byte from 0); errors count
    from there. Raises `InputError` without `where`: the caller knows the file.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        bad_line = line + data.count(b"\n", 0, error.start)
        raise InputError(
            f"line {bad_line} is not UTF-8: byte 0x{data[error.start]:02x} at offset {offset + error.start}",
            hint="save the file as UTF-8",
        ) from None
    return parse_json_text(text, line=line)


def parse_row(data: bytes, *, line: int, offset: int) -> Any | InputError:
    """As `parse_json`, but return the error, so that the rows after a bad one can be read."""
    try:
        return parse_json(data, line=line, offset=offset)
    except InputError as error:
        return without_frames(error)


def without_frames(error: InputError) -> InputError:
    """Drop the traceback and the cause: they hold the whole row for as long as the error lives."""
    error.__context__ = error.__cause__ = None
    return error.with_traceback(None)


def parse_json_text(text: str, *, line: int = 1) -> Any:
    """Parse one JSON value from text; see `parse_json`."""
    try:
        # Files put together with `cat` carry the byte order mark of each part.
        return json.loads(
            text.removeprefix("\ufeff"), object_pairs_hook=_object, parse_constant=_refuse_constant
        )
    except InputError:
        raise
    except json.JSONDecodeError as error:
        place = f"line {line + error.lineno - 1}, column {error.colno}"
        if error.msg == "Extra data":
            raise InputError(
                f"more than one JSON value, the second at {place}", hint="write one JSON object a line"
            ) from None
        raise InputError(f"not JSON: {error.msg.removesuffix(' at')} at {place}") from None
    except RecursionError:
        raise InputError(f"nested more than {MAX_DEPTH} levels deep") from None
    except ValueError as error:
        # Python refuses integers of more than 4,300 digits.
        raise InputError(f"not usable JSON: {error}") from None


def check_json(value: Any, path: str = "") -> None:
    """Raise `InputError`, with the path inside the row, for anything that JSON text cannot carry."""
    stack = [(value, path, 0)]
    while stack:
        item, place, depth = stack.pop()
        if item is None or isinstance(item, int):
            continue
        if isinstance(item, str):
            _check_text(item, place)
        elif isinstance(item, float):
            if not math.isfinite(item):
                raise InputError(
                    f"{_named(place)} is not a finite number",
                    field=place,
                    value=item,
                    hint="use null (None) for a missing value",
                )
        elif depth == MAX_DEPTH:
            raise InputError(f"{_named(place)} is nested more than {MAX_DEPTH} levels deep", field=place)
        elif isinstance(item, Mapping):
            for key in item:
                if not isinstance(key, str):
                    raise InputError(f"a key in {_named(place)} is not text", field=place, value=key)
                _check_text(key, place, what="a key in ")
            stack += [(item[key], join_path(place, key), depth + 1) for key in reversed(list(item))]
        elif isinstance(item, list | tuple):
            stack += [(item[i], f"{place}[{i}]", depth + 1) for i in reversed(range(len(item)))]
        else:
            raise InputError(
                f"{_named(place)} is a {type(item).__name__}, which JSON does not have",
                field=place,
                hint="use text, numbers, true, false, null, lists and objects",
            )


def join_path(path: str, key: str) -> str:
    """The path of a key inside the object at `path`: `metadata.user`."""
    if not _PLAIN_KEY.fullmatch(key):
        return f"{path}[{shorten(key, 40)}]"
    return f"{path}.{key}" if path else key


def json_kind(value: object) -> str:
    """What a value is, in the words of JSON."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list() | tuple():
            return "a list"
        case Mapping():
            return "an object"
    return f"a {type(value).__name__}"


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise InputError(
                    f"the key {shorten(key)} is given twice in one object", hint="keep one of the two"
                )
            seen.add(key)
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise InputError(f"{name} is not JSON", hint="write null for a missing number")


def _check_text(text: str, path: str, *, what: str = "") -> None:
    if text.isascii() or (found := _SURROGATE.search(text)) is None:
        return
    raise InputError(
        f"{what}{_named(path)} holds half a character: the lone surrogate "
        f"U+{ord(found.group()):04X} at position {found.start()}",
        field=path,
        hint="the text was cut inside a character or decoded wrongly; export it again",
    )


def _named(path: str) -> str:
    return f"`{path}`" if path else "the row"
