"""LlamaIndex: the events of an agent workflow, `{"events": [...]}`, one run a row.

An event is `{"value": {...}, "qualified_name": "...ToolCallResult"}`, as LlamaIndex' JSON serializer
writes it (with `type` in place of the qualified name in its server's events), or the event itself.

| event | message |
|---|---|
| `AgentInput`, the first | the messages that the agent began with |
| `AgentWorkflowStartEvent`, without an `AgentInput` | `chat_history` and `user_msg` |
| `AgentOutput` | what the agent said and the calls it made |
| `ToolCall`, when no `AgentOutput` made it | the call |
| `ToolCallResult` | the tool's result |
| `AgentSetup`, `AgentStream`, `StopEvent`, a later `AgentInput` | nothing: others say the same |

Any other event is refused: whether it matters cannot be known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from anvil_local.errors import InputError
from anvil_local.samples.strict_json import json_kind

_NOTHING = frozenset({"AgentSetup", "AgentStream", "AgentStreamStructuredOutput", "StopEvent"})
_STARTS = frozenset({"AgentWorkflowStartEvent", "StartEvent"})
_KNOWN = ("AgentInput", "AgentOutput", "ToolCall", "ToolCallResult", *sorted(_STARTS), *sorted(_NOTHING))


def translate(row: Any) -> Any:
    """A row with `events` as a row with `messages`."""
    if not isinstance(row, Mapping) or not isinstance(row.get("events"), list | tuple):
        raise InputError(
            "`events` must be the list of the events of one run",
            field="events",
            hint='write one run a row: {"id": ..., "events": [...]}',
        )
    rest = {key: value for key, value in row.items() if key != "events"}
    return rest | {"messages": messages_of(row["events"])}


def messages_of(events: Sequence[Any]) -> list[dict[str, Any]]:
    """The messages of one run."""
    read = [_event(event, f"events[{i}]") for i, event in enumerate(events)]
    has_input = any(name == "AgentInput" for name, _, _ in read)
    made: set[str] = set()
    messages: list[dict[str, Any]] = []
    begun = False
    for name, value, path in read:
        if name == "AgentInput" and not begun:
            begun = True
            messages += _chat_messages(value.get("input"), f"{path}.input")
        elif name in _STARTS and not has_input:
            messages += _chat_messages(value.get("chat_history") or [], f"{path}.chat_history")
            if value.get("user_msg") is not None:
                messages.append(_chat_message(value["user_msg"], f"{path}.user_msg"))
        elif name == "AgentOutput":
            message = _chat_message(value.get("response"), f"{path}.response")
            calls = [
                _call(call, f"{path}.tool_calls[{i}]") for i, call in enumerate(value.get("tool_calls") or [])
            ]
            made |= {call["id"] for call in calls if call["id"]}
            messages.append({"role": "assistant", "content": message["content"], "tool_calls": calls})
        elif name == "ToolCall":
            call = _call(value, path)
            if call["id"] not in made:
                messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        elif name == "ToolCallResult":
            call = _call(value, path)
            content = _content(value.get("tool_output"), f"{path}.tool_output")
            messages.append(
                {"role": "tool", "content": content, "name": call["name"], "tool_call_id": call["id"]}
            )
        elif name not in _NOTHING | _STARTS | {"AgentInput"}:
            raise InputError(
                f"`{path}` is an event that is not known",
                field=path,
                value=name,
                hint=f"known: {', '.join(_KNOWN)}; leave out what is no part of the conversation",
            )
    return messages


def _event(event: Any, path: str) -> tuple[str, Mapping[str, Any], str]:
    """The event's class, its fields, and the path of its fields."""
    dump = getattr(event, "model_dump", None)
    if callable(dump) and not isinstance(event, Mapping):
        return type(event).__name__, dump(), path
    if isinstance(event, Mapping):
        name = event.get("qualified_name") or event.get("type")
        if isinstance(name, str) and isinstance(event.get("value"), Mapping):
            return name.rsplit(".", 1)[-1], event["value"], f"{path}.value"
    raise InputError(
        f"`{path}` is not an event of LlamaIndex",
        field=path,
        hint='an event is {"value": {...}, "qualified_name": "..."}',
    )


def _chat_messages(items: Any, path: str) -> list[dict[str, Any]]:
    if not isinstance(items, list | tuple):
        raise InputError(f"`{path}` must be a list of messages, not {json_kind(items)}", field=path)
    return [_chat_message(item, f"{path}[{i}]") for i, item in enumerate(items)]


def _chat_message(item: Any, path: str) -> dict[str, Any]:
    if isinstance(item, str):
        return {"role": "user", "content": item}
    if not isinstance(item, Mapping):
        raise InputError(f"`{path}` must be a message, not {json_kind(item)}", field=path)
    message = {"role": item.get("role"), "content": _content(item, path)}
    extra = item.get("additional_kwargs")
    if isinstance(extra, Mapping):
        message |= {key: extra[key] for key in ("tool_calls", "tool_call_id", "name") if extra.get(key)}
    return message


def _content(item: Any, path: str) -> str:
    """The text of a message or of a tool's output: `blocks`, or `content` of older versions."""
    if not isinstance(item, Mapping):
        raise InputError(f"`{path}` must be an object, not {json_kind(item)}", field=path)
    blocks = item.get("blocks")
    if blocks is None:
        content = item.get("content")
        if content is not None and not isinstance(content, str):
            raise InputError(
                f"`{path}.content` must be text, not {json_kind(content)}", field=f"{path}.content"
            )
        return content or ""
    texts = []
    for i, block in enumerate(blocks if isinstance(blocks, list | tuple) else [blocks]):
        kind = block.get("block_type") if isinstance(block, Mapping) else None
        if not isinstance(kind, str):
            raise InputError(f"`{path}.blocks[{i}]` has no `block_type`", field=f"{path}.blocks[{i}]")
        # Newer versions repeat the calls here; `tool_calls` of the event has them.
        if kind not in ("tool_call", "thinking"):
            texts.append(str(block.get("text") or "") if kind == "text" else f"[{kind}]")
    return "\n".join(texts)


def _call(item: Any, path: str) -> dict[str, Any]:
    name = item.get("tool_name") if isinstance(item, Mapping) else None
    if not isinstance(name, str) or not name:
        raise InputError(f"`{path}.tool_name` must be the tool's name", field=f"{path}.tool_name")
    call_id = item.get("tool_id")
    return {
        "name": name,
        "args": item.get("tool_kwargs"),
        "id": call_id if isinstance(call_id, str) else None,
    }
