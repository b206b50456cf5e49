"""The report as JSON, and back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from anvil_local.errors import InputError
from anvil_local.records import SCHEMA_VERSION, Record, Report


def render_json(report: Report) -> str:
    """The report as one JSON document: fields in the order of the records, no NaN, newline at the end.

    A NaN or an infinity in a user's metadata becomes null; JSON has no word for it.
    """
    return "".join(json_pieces(report))


def json_pieces(report: Report) -> Iterator[str]:
    """The text of `render_json` in pieces, a result each: the whole is several times as large as the data."""
    # The results are the last field.
    head = _dump(report.model_copy(update={"results": ()}))
    if not report.results:
        yield head + "\n"
        return
    yield head.removesuffix("[]\n}") + "["
    for number, result in enumerate(report.results):
        # JSON has no line ends inside its texts.
        yield ("," if number else "") + "\n    " + _dump(result).replace("\n", "\n    ")
    yield "\n  ]\n}\n"


def _dump(record: Record) -> str:
    document = record.model_dump(mode="json", fallback=str)
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2)
    # A lone surrogate in the data cannot be encoded; as an escape JSON carries it unharmed.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def load_report(path: str | Path) -> Report:
    """Read a report from a file that `render_json` wrote. Raises `InputError`."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"this report is not UTF-8: {error.reason}", where=str(path)) from error
    except OSError as error:
        raise InputError(
            f"cannot read this report: {error.strerror}",
            where=str(path),
            hint="a report is what `-o out.json` wrote",
        ) from error
    return parse_report(text, where=str(path))


def parse_report(text: str, *, where: str = "report") -> Report:
    """Read a report from its JSON text; `where` names it in errors. Raises `InputError`.

    Fields that a later release added within the same schema version are left out.
    """
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise InputError(
            f"this report is not JSON: {error.msg} in column {error.colno}",
            where=f"{where}:{error.lineno}",
            hint="the file may be cut short or edited; write it again",
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"this report is not JSON: {error}", where=where) from error
    if not isinstance(document, dict) or "schema_version" not in document:
        raise InputError(
            "this is not a report of anvil_local: no schema_version",
            where=where,
            hint="a report is what `-o out.json` wrote",
        )
    if document["schema_version"] != SCHEMA_VERSION:
        raise InputError(
            f"this release reads reports of schema version {SCHEMA_VERSION}",
            where=where,
            field="schema_version",
            value=document["schema_version"],
            hint="read it with the release that wrote it: its number is in the field `version`",
        )
    try:
        return _validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = _path(first["loc"])
        raise InputError(
            f"this report is damaged: {field}: {first['msg']}"
            + (f", and {error.error_count() - 1} more" if error.error_count() > 1 else ""),
            where=where,
            field=field,
            hint="the file may be edited by hand; write it again",
        ) from error


def _validate(document: dict[str, Any]) -> Report:
    try:
        return Report.model_validate(document)
    except ValidationError as error:
        unknown = [item["loc"] for item in error.errors() if item["type"] == "extra_forbidden"]
        if not unknown:
            raise
    for *parents, field in unknown:
        place: Any = document
        for step in parents:
            place = place[step]
        del place[field]
    return Report.model_validate(document)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _path(location: tuple[int | str, ...]) -> str:
    path = ""
    for step in location:
        path += f"[{step}]" if isinstance(step, int) else f".{step}"
    return path.lstrip(".") or "report"
