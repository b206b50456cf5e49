"""Messages of a trace in the shapes that people have, read into `Message` records.

| shape | how it is known |
|---|---|
| Ragas | `type` is `human`, `ai` or `tool`; `tool_calls` with `name` and `args` |
| OpenAI chat | `role`; `content` may be null or a list of parts; `tool_calls` with `function.arguments` |
| OpenAI Responses | `type` is `function_call`, `function_call_output`, `reasoning`; see `responses` |
| LangChain | as Ragas, or `{"type": ..., "data": {...}}`, or `{"lc": 1, "id": [...], "kwargs": {...}}` |

Nothing is guessed: an unknown role, type or shape is refused with the message's number.
A part of a message that is not text becomes its type in brackets, `[image_url]`: the judge reads
text only, and it should know that something was there. Text parts are joined by line ends.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from anvil_local.errors import InputError
from anvil_local.records import Message, Role, ToolCall
from anvil_local.samples.responses import LEFT_OUT, chat_item
from anvil_local.samples.strict_json import check_json, json_kind, parse_json_text

ROLES: Mapping[str, Role] = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.HUMAN,
    "human": Role.HUMAN,
    "assistant": Role.AI,
    "ai": Role.AI,
    "tool": Role.TOOL,
    "function": Role.TOOL,
}
"""What `role` and `type` may say."""

_CLASSES: Mapping[str, Role] = {
    "SystemMessage": Role.SYSTEM,
    "HumanMessage": Role.HUMAN,
    "AIMessage": Role.AI,
    "ToolMessage": Role.TOOL,
    "FunctionMessage": Role.TOOL,
}
_TEXT_PARTS: Mapping[str, str] = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "refusal": "refusal",
}
_CALL_PARTS: Mapping[str, str] = {"tool_use": "input", "tool_call": "args"}
_KEYS = (
    "role",
    "type",
    "content",
    "refusal",
    "name",
    "tool_call_id",
    "tool_calls",
    "invalid_tool_calls",
    "function_call",
    "additional_kwargs",
    # Items of OpenAI's Responses interface.
    "call_id",
    "arguments",
    "input",
    "output",
    "action",
    "queries",
    "code",
    "id",
)


def read_messages(items: Sequence[Any], path: str) -> tuple[Message, ...]:
    """Read a trace; `path` is the field's name in the row, for errors.

    Raises `InputError` for an empty list and for any message that is not understood.
    """
    places = ((f"{path}[{i}]", item) for i, item in enumerate(items))
    turns = ((chat_item(item, place), place) for place, item in places)
    messages = tuple(read_message(item, place) for item, place in turns if item is not LEFT_OUT)
    if not messages:
        raise InputError(
            f"`{path}` is an empty list: the trace has no messages",
            field=path,
            hint="leave the row out, or give the messages of the run",
        )
    return messages


def read_message(item: Any, path: str) -> Message:
    """Read one message; `path` is its place in the row, `user_input[3]`."""
    if not isinstance(item, Mapping):
        raise InputError(
            f"`{path}` must be a message object, not {json_kind(item)}",
            field=path,
            hint='write messages as {"role": "user", "content": "..."}',
        )
    role, body, path = _unwrap(item, path)
    calls = _read_calls(body, path)
    words, part_calls = _read_content(body, path)
    known = {call.id for call in calls if call.id is not None}
    calls += [call for call in part_calls if call.id is None or call.id not in known]
    if calls and role is not Role.AI:
        raise InputError(
            f"`{path}.tool_calls` stands in a message of role {role.value}; only the agent calls tools",
            field=f"{path}.tool_calls",
        )
    if "content" not in body and not words and not calls:
        raise InputError(f"`{path}` has neither `content` nor `tool_calls`", field=f"{path}.content")
    return Message(
        role=role,
        content=words,
        tool_calls=tuple(calls),
        tool_call_id=_optional_text(body, "tool_call_id", path) if role is Role.TOOL else None,
        name=_optional_text(body, "name", path),
    )


def message_from_object(item: Any) -> Any:
    """Turn a pydantic message object (Ragas, LangChain, OpenAI) into the dict that its dump would hold.

    Only the keys that are read stay, because the others may hold what JSON does not have
    (LangChain's `artifact`). Anything else comes back as it is.
    """
    dump = getattr(item, "model_dump", None)
    if isinstance(item, Mapping) or not callable(dump):
        return item
    return {key: value for key, value in dump().items() if key in _KEYS}


def _unwrap(item: Mapping[str, Any], path: str) -> tuple[Role, Mapping[str, Any], str]:
    """Return the role, the object that holds the content, and the path of that object."""
    if "lc" in item:
        identifier, kwargs = item.get("id"), item.get("kwargs")
        if not isinstance(identifier, list) or not identifier or not isinstance(kwargs, Mapping):
            raise InputError(f"`{path}` is not a LangChain message dump", field=path)
        name = str(identifier[-1])
        if name.removesuffix("Chunk") == "ChatMessage":
            return _read_role(kwargs, f"{path}.kwargs", ("role",)), kwargs, f"{path}.kwargs"
        role = _CLASSES.get(name.removesuffix("Chunk"))
        if role is None:
            raise InputError(
                f"`{path}.id` names a class that is not a message",
                field=f"{path}.id",
                value=name,
                hint=f"known: {', '.join(_CLASSES)}, ChatMessage",
            )
        return role, kwargs, f"{path}.kwargs"
    data = item.get("data")
    if isinstance(data, Mapping) and "content" not in item:
        if item.get("type") in ("chat", "ChatMessageChunk"):
            return _read_role(data, f"{path}.data", ("role",)), data, f"{path}.data"
        return _read_role(item, path, ("type",)), data, f"{path}.data"
    return _read_role(item, path, ("role", "type")), item, path


def _read_role(item: Mapping[str, Any], path: str, keys: Iterable[str]) -> Role:
    found: dict[str, Role] = {}
    for key in keys:
        value = item.get(key)
        # OpenAI's newer interface marks every turn {"type": "message", "role": ...}.
        if value is None or (key == "type" and value == "message" and found):
            continue
        found[key] = _role_of(value, f"{path}.{key}")
    if not found:
        names = " or ".join(f"`{key}`" for key in keys)
        raise InputError(
            f"`{path}` does not say who speaks: {names} is missing",
            field=path,
            hint=f"known roles: {', '.join(ROLES)}",
        )
    if len(set(found.values())) > 1:
        raise InputError(
            f"`{path}` has a `role` and a `type` that disagree",
            field=path,
            value=f"{item['role']}, {item['type']}",
        )
    return next(iter(found.values()))


def _role_of(value: Any, path: str) -> Role:
    if isinstance(value, str):
        role = ROLES.get(value) or _CLASSES.get(value.removesuffix("Chunk"))
        if role is not None:
            return role
    close = difflib.get_close_matches(str(value).lower(), ROLES, n=1)
    raise InputError(
        f"`{path}` is not a known role",
        field=path,
        value=value if isinstance(value, str) else json_kind(value),
        hint=f"did you mean {close[0]!r}?" if close else f"known: {', '.join(ROLES)}",
    )


def _read_content(body: Mapping[str, Any], path: str) -> tuple[str, list[ToolCall]]:
    content = body.get("content")
    calls: list[ToolCall] = []
    match content:
        case str():
            text = content
        case None:
            text = ""
        case list() | tuple():
            text, calls = _read_parts(content, f"{path}.content")
        case _:
            raise InputError(
                f"`{path}.content` must be text or a list of parts, not {json_kind(content)}",
                field=f"{path}.content",
                hint="give the result of a tool as text, for example as JSON text",
            )
    refusal = body.get("refusal")
    if not text and isinstance(refusal, str):
        text = refusal
    return text, calls


def _read_parts(parts: Sequence[Any], path: str) -> tuple[str, list[ToolCall]]:
    texts: list[str] = []
    calls: list[ToolCall] = []
    for i, part in enumerate(parts):
        place = f"{path}[{i}]"
        if isinstance(part, str):
            texts.append(part)
            continue
        kind = part.get("type") if isinstance(part, Mapping) else None
        if not isinstance(kind, str) or not kind:
            raise InputError(f"`{place}` is not a part of a message: it has no `type`", field=place)
        if kind in _TEXT_PARTS:
            key = _TEXT_PARTS[kind]
            if not isinstance(part.get(key), str):
                raise InputError(f"`{place}.{key}` must be text", field=f"{place}.{key}")
            texts.append(part[key])
        elif kind in _CALL_PARTS:
            calls.append(_call(part, _CALL_PARTS[kind], place, call_id=part.get("id")))
        elif kind == "tool_result":
            # As a placeholder it would take the evidence away.
            raise InputError(
                f"`{place}` is a tool result inside a message",
                field=place,
                hint='give it as its own message: {"role": "tool", "content": "..."}',
            )
        else:
            texts.append(f"[{kind}]")
    return "\n".join(texts), calls


def _read_calls(body: Mapping[str, Any], path: str) -> list[ToolCall]:
    calls = _call_list(body, "tool_calls", path)
    # LangChain keeps calls whose arguments are not JSON apart; the agent made them all the same.
    calls += _call_list(body, "invalid_tool_calls", path)
    legacy = body.get("function_call")
    extra = body.get("additional_kwargs")
    if not calls and legacy is None and isinstance(extra, Mapping):
        # LangChain before 0.1.17 kept the calls here only.
        body, path = extra, f"{path}.additional_kwargs"
        calls = _call_list(body, "tool_calls", path)
        legacy = body.get("function_call")
    if legacy is None:
        return calls
    place = f"{path}.function_call"
    if calls:
        raise InputError(f"`{path}` has both `tool_calls` and `function_call`", field=place)
    if not isinstance(legacy, Mapping):
        raise InputError(f"`{place}` must be an object, not {json_kind(legacy)}", field=place)
    return [_call(legacy, "arguments", place, call_id=None)]


def _call_list(body: Mapping[str, Any], key: str, path: str) -> list[ToolCall]:
    items = body.get(key)
    if items is None:
        return []
    if not isinstance(items, list | tuple):
        raise InputError(f"`{path}.{key}` must be a list, not {json_kind(items)}", field=f"{path}.{key}")
    return [_read_call(item, f"{path}.{key}[{i}]") for i, item in enumerate(items)]


def _read_call(item: Any, path: str) -> ToolCall:
    if not isinstance(item, Mapping):
        raise InputError(f"`{path}` must be an object, not {json_kind(item)}", field=path)
    for key, args in (("function", "arguments"), ("custom", "input")):
        if isinstance(item.get(key), Mapping):
            return _call(item[key], args, f"{path}.{key}", call_id=item.get("id"))
    return _call(item, "args", path, call_id=item.get("id"))


def _call(item: Mapping[str, Any], args_key: str, path: str, *, call_id: Any) -> ToolCall:
    name = item.get("name")
    if not isinstance(name, str) or not name:
        raise InputError(
            f"`{path}.name` must be the tool's name, as text",
            field=f"{path}.name",
            hint='a call is {"name": ..., "args": {...}} or {"function": {"name": ..., "arguments": "..."}}',
        )
    args = item.get(args_key)
    if args_key == "arguments" and isinstance(args, str):
        args = _parse_arguments(args)
    return ToolCall(name=name, args=args, id=call_id if isinstance(call_id, str) else None)


def _parse_arguments(text: str) -> Any:
    """The value of OpenAI's `arguments`, or the text itself where the model wrote no valid JSON."""
    try:
        value = parse_json_text(text)
        check_json(value)
    except InputError:
        return text
    return value


def _optional_text(body: Mapping[str, Any], key: str, path: str) -> str | None:
    value = body.get(key)
    if value is not None and not isinstance(value, str):
        raise InputError(f"`{path}.{key}` must be text, not {json_kind(value)}", field=f"{path}.{key}")
    return value or None
