"""promptfoo: the results of an evaluation, as `--output results.json` or `.jsonl` writes them.

| result | row |
|---|---|
| `vars.query` or `vars.question` | user_input |
| `response.output` | response |
| `vars.context`, one text or a list | retrieved_contexts |

These are the variables that promptfoo's own RAG assertions ask for; others are named with `--map`, for
example `--map retrieved_contexts=vars.documents`. Everything else is metadata. A result that has no
output because of an error is a bad row. A `.json` file is read as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

from anvil_local.errors import InputError
from anvil_local.samples.strict_json import json_kind, parse_json, without_frames

_VARIABLES = {"query": "user_input", "question": "user_input", "context": "retrieved_contexts"}


def read(stream: IO[bytes]) -> Iterator[tuple[int, Any | InputError]]:
    """Yield `(index, row or error)` of a whole results document, from 0; see `formats`."""
    document = parse_json(stream.read())
    results = document.get("results") if isinstance(document, Mapping) else None
    if isinstance(results, Mapping):
        results = results.get("results")
    if not isinstance(results, list):
        raise InputError("not results of promptfoo: there is no `results.results`", field="results.results")
    del document
    for index, result in enumerate(results):
        try:
            yield index, translate(result)
        except InputError as error:
            yield index, without_frames(error)


def translate(row: Any) -> Any:
    """One result as a row."""
    if not isinstance(row, Mapping):
        raise InputError(f"a result must be an object, not {json_kind(row)}")
    if "response" not in row and "assert" in row:
        raise InputError(
            "a test case without its answer",
            field="response",
            hint="run `promptfoo eval --output results.json` and give the results",
        )
    response, variables = row.get("response"), row.get("vars")
    if not isinstance(variables, Mapping):
        raise InputError(f"`vars` must be an object, not {json_kind(variables)}", field="vars")
    if not isinstance(response, Mapping) or response.get("output") is None:
        problem = row.get("error") or (response.get("error") if isinstance(response, Mapping) else None)
        raise InputError(
            "the result has no output", field="response.output", value=problem, hint="leave failed calls out"
        )
    result = {key: value for key, value in row.items() if key != "response"}
    result["response"] = response["output"]
    for name, field in _VARIABLES.items():
        if variables.get(name) is None:
            continue
        if field in result:
            raise InputError(
                "`vars.query` and `vars.question` are two names for the question",
                field=f"vars.{name}",
                hint="say which: --map user_input=vars.query",
            )
        result[field] = variables[name]
    return result
