"""DeepEval: test cases and conversational test cases, in either spelling of their keys.

| test case | field |
|---|---|
| `input` | user_input |
| `actual_output` | response |
| `retrieval_context` | retrieved_contexts |
| `expected_output`, `expected_outcome` | reference |
| `turns` (with `tools_called`) | the messages of a trace |

`context` is what the answer should rest on, not what was retrieved: it stays metadata.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from anvil_local.errors import InputError
from anvil_local.samples.strict_json import json_kind

_FIELDS = {
    "input": "user_input",
    "actual_output": "response",
    "retrieval_context": "retrieved_contexts",
    "expected_output": "reference",
    "expected_outcome": "reference",
}
_CAMEL = {
    "actualOutput": "actual_output",
    "retrievalContext": "retrieval_context",
    "expectedOutput": "expected_output",
    "expectedOutcome": "expected_outcome",
    "toolsCalled": "tools_called",
    "inputParameters": "input_parameters",
}


def translate(row: Any) -> Any:
    """A test case as a row."""
    if not isinstance(row, Mapping):
        return row
    case = _plain_keys(row)
    if "turns" not in case and "actual_output" not in case:
        raise InputError(
            "a test case has `actual_output`, a conversational one has `turns`",
            field="actual_output",
            hint="golden rows have no answer yet: run your application on them first",
        )
    result: dict[str, Any] = {}
    for key, value in case.items():
        name = _FIELDS.get(key, "deepeval_context" if key == "context" else key)
        if value is None or key == "turns":
            continue
        if name in result:
            raise InputError(f"`{key}` and another key give the {name}", field=key, hint="keep one of them")
        result[name] = value
    if "turns" not in case:
        return result
    turns = case["turns"]
    if not isinstance(turns, list):
        raise InputError(f"`turns` must be a list, not {json_kind(turns)}", field="turns")
    messages: list[Any] = []
    for i, turn in enumerate(turns):
        messages += _turn(turn, f"turns[{i}]")
    return result | {"messages": messages}


def _turn(turn: Any, path: str) -> list[dict[str, Any]]:
    if not isinstance(turn, Mapping):
        raise InputError(f"`{path}` must be an object, not {json_kind(turn)}", field=path)
    turn = _plain_keys(turn)
    message = {"role": turn.get("role"), "content": turn.get("content")}
    tools = turn.get("tools_called") or []
    if not isinstance(tools, list):
        raise InputError(f"`{path}.tools_called` must be a list", field=f"{path}.tools_called")
    calls, results = [], []
    for i, item in enumerate(tools):
        tool = _plain_keys(item) if isinstance(item, Mapping) else {}
        calls.append({"name": tool.get("name"), "args": tool.get("input_parameters"), "id": f"{path}.{i}"})
        if not isinstance(tool.get("name"), str):
            raise InputError(
                f"`{path}.tools_called[{i}].name` must be text", field=f"{path}.tools_called[{i}].name"
            )
        if tool.get("output") is not None:
            output = tool["output"]
            results.append(
                {
                    "role": "tool",
                    "content": output if isinstance(output, str) else json.dumps(output, ensure_ascii=False),
                    "name": tool["name"],
                    "tool_call_id": f"{path}.{i}",
                }
            )
    if not calls:
        return [message]
    # A turn tells what was called and what was said in the end; the results stand between.
    return [{"role": turn.get("role"), "content": "", "tool_calls": calls}, *results, message]


def _plain_keys(row: Mapping[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in row.items():
        name = _CAMEL.get(key, key)
        if name in result:
            raise InputError(f"`{name}` is there in two spellings", field=key, hint="keep one of them")
        result[name] = value
    return result
