"""`anvil-local inspect`: what was read from a file, row by row, before anything is judged."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anvil_local.cli import console, options
from anvil_local.errors import ExitCode, InputError, NothingToJudge, shorten

if TYPE_CHECKING:
    from anvil_local.records import Message, Sample


def inspect(
    data: Annotated[str, typer.Argument(help="A file of samples (see --format); - reads stdin.")],
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", help="Show so many rows; all by default.", min=1)
    ] = None,
    data_format: options.DataFormat = None,
    map: options.Map = None,
    skip_bad_rows: options.SkipBadRows = None,
    json: options.Json = False,
) -> int:
    """Show what would be judged, row by row, and which rows are refused. Loads no model.

    Exits with 2 if a row is refused, unless bad rows are skipped, and with 5 if no row is good. With
    --json one object a row.
    """
    from anvil_local.config import load_config
    from anvil_local.reports.text import plural
    from anvil_local.samples import SampleFile, parse_mapping

    config = load_config(format=data_format, map=parse_mapping(map or ()), skip_bad_rows=skip_bad_rows)
    # Bad rows are shown in their places, so they are never left out here.
    with SampleFile(data, skip_bad_rows=True, format=config.format, mapping=config.map) as samples:
        try:
            counts = samples.check()
        except NothingToJudge:
            # A file of bad rows only is where a look at them helps most.
            for error in samples.rejected[:limit]:
                _show(error, json=json)
            raise
        for entry in islice(samples.entries(), limit):
            _show(entry, json=json)
        parts = [
            plural(counts.answers, "answer"),
            plural(counts.traces, "trace"),
            f"{counts.rejected} refused",
        ]
        shown = "" if limit is None or limit >= counts.rows else f", the first {limit} shown"
        console.say(
            f"{samples.name}: {samples.title}, {plural(counts.rows, 'row')}{shown}: {', '.join(parts)}"
        )
        if counts.lone_contexts:
            rows = plural(counts.lone_contexts, "row")
            console.say(f"note: contexts given as one text, taken as one context: {rows}")
    return ExitCode.USAGE if counts.rejected and not config.skip_bad_rows else ExitCode.OK


def _show(entry: Sample | InputError, *, json: bool) -> None:
    if json:
        console.show(_json_line(entry))
    elif isinstance(entry, InputError):
        console.show(f"{entry.where}  REFUSED: {_refusal(entry)}\n\n")
    else:
        console.show("\n".join(_lines(entry)) + "\n\n")


def _lines(sample: Sample) -> Iterator[str]:
    yield f"{sample.source}  {'trace' if sample.is_trace else 'answer'} {shorten(sample.id)}"
    if isinstance(sample.user_input, tuple):
        for number, message in enumerate(sample.user_input, start=1):
            yield f"  [{number}] {_message(message)}"
    else:
        yield f"  question   {_text(sample.user_input)}"
        yield f"  response   {_text(sample.response)}"
    if not sample.is_trace or sample.retrieved_contexts is not None:
        yield f"  contexts   {_contexts(sample.retrieved_contexts)}"
    if sample.reference is not None:
        yield f"  reference  {_text(sample.reference)}"
    if sample.metadata:
        yield f"  metadata   {', '.join(map(_plain, sample.metadata))}"


def _message(message: Message) -> str:
    calls = ", ".join(_plain(call.name) for call in message.tool_calls)
    words = _text(message.content) if message.content or not calls else ""
    name = f" {_plain(message.name)}" if message.name else ""
    return f"{message.role.value}{name}: {words}" + (f"{' ' if words else ''}calls {calls}" if calls else "")


def _contexts(contexts: tuple[str, ...] | None) -> str:
    if contexts is None:
        return "none"
    if not contexts:
        return "an empty list"
    sizes = ", ".join(str(len(context)) for context in contexts[:8]) + (", ..." if contexts[8:] else "")
    return f"{len(contexts)} of {sizes} characters: {_text(contexts[0], counted=False)}"


def _text(text: str | None, *, counted: bool = True) -> str:
    from anvil_local.reports.text import plural

    if text is None:
        return "none"
    shown = shorten(text, 72)
    return f"{shown} ({plural(len(text), 'character')})" if counted and len(text) > 60 else shown


def _plain(text: str) -> str:
    return text if text.isprintable() and len(text) <= 60 else shorten(text)


def _refusal(error: InputError) -> str:
    got = f" (got {shorten(error.value)})" if error.value is not None else ""
    return error.message + got + (f"\n  hint: {error.hint}" if error.hint else "")


def _json_line(entry: Sample | InputError) -> str:
    import json

    value: dict[str, Any]
    if isinstance(entry, InputError):
        got = None if entry.value is None else shorten(entry.value)
        value = {
            "source": entry.where,
            "refused": entry.message,
            "field": entry.field,
            "value": got,
            "hint": entry.hint,
        }
    else:
        value = entry.model_dump(mode="json")
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
