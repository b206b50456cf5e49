"""OpenAI: items of the Responses interface, and logged requests with their answers.

| row | trace |
|---|---|
| `input` (text or items), `output` (items), `instructions` | instructions, input, output |
| `messages`, `choices` with one choice | the messages and the choice |
| `request`, `response` with the keys above | as above |

An item is one message: a `function_call` is a turn of the agent, a `function_call_output` a result.
`reasoning` items are left out: they are no part of what was said or done. Items of tools that run at
the provider become a call of that name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from anvil_local.errors import InputError
from anvil_local.samples.strict_json import json_kind

_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})
_HOSTED = {"web_search_call": "action", "file_search_call": "queries", "code_interpreter_call": "code"}
LEFT_OUT = object()
"""What `chat_item` gives for an item that is no turn."""


def chat_item(item: Any, path: str) -> Any:
    """An item as a chat message; `LEFT_OUT` for one that is no turn; anything else as it is."""
    kind = item.get("type") if isinstance(item, Mapping) else None
    # A message says who speaks.
    if not isinstance(kind, str) or "role" in item:
        return item
    if kind == "reasoning":
        return LEFT_OUT
    if kind in _CALLS:
        for key in ("name", _CALLS[kind]):
            if not isinstance(item.get(key), str):
                raise InputError(f"`{path}.{key}` must be text", field=f"{path}.{key}")
        call = {"name": item["name"], _CALLS[kind]: item[_CALLS[kind]]}
        shape = "function" if kind == "function_call" else "custom"
        return {"role": "assistant", "tool_calls": [{"id": item.get("call_id"), shape: call}]}
    if kind in _RESULTS:
        return {"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")}
    if kind in _HOSTED:
        call = {"name": kind.removesuffix("_call"), "args": item.get(_HOSTED[kind])}
        return {"role": "assistant", "tool_calls": [call | {"id": item.get("id")}]}
    return item


def translate(row: Any) -> Any:
    """A logged request with its answer as a row with `messages`; see the module's table."""
    if not isinstance(row, Mapping):
        return row
    rest = dict(row)
    body: dict[str, Any] = rest
    prefix = ""
    if isinstance(rest.get("request"), Mapping) and isinstance(rest.get("response"), Mapping):
        request, response = rest.pop("request"), rest.pop("response")
        body = {**request, **{key: response[key] for key in ("output", "choices") if key in response}}
        prefix = "request."
    if "output" in body and "input" in body:
        messages = _texts(body.pop("instructions", None), "developer", f"{prefix}instructions")
        messages += _texts(body.pop("input"), "user", f"{prefix}input")
        messages += _texts(body.pop("output"), "assistant", "output")
    elif "choices" in body and "messages" in body:
        choices = body.pop("choices")
        if not isinstance(choices, list) or len(choices) != 1:
            raise InputError("`choices` must be a list of one choice", field="choices", value=choices)
        if not isinstance(choices[0], Mapping) or not isinstance(choices[0].get("message"), Mapping):
            raise InputError("`choices[0].message` is missing", field="choices[0].message")
        messages = [*_texts(body.pop("messages"), "user", f"{prefix}messages"), choices[0]["message"]]
    else:
        raise InputError(
            "not a logged request with its answer",
            hint="the row has `input` and `output`, or `messages` and `choices`; "
            "rows with `messages` alone need no --format",
        )
    if body is not rest:
        rest["request"] = body
    rest.pop("messages", None)
    return rest | {"messages": messages}


def _texts(value: Any, role: str, path: str) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    if isinstance(value, list):
        return value
    raise InputError(f"`{path}` must be text or a list, not {json_kind(value)}", field=path)
