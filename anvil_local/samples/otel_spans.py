"""OpenTelemetry: spans with the GenAI attributes, one trace a row.

Read are OTLP JSON (`resourceSpans`, one document or one a line) and the spans that the Python SDK's
`to_json` writes (a list, or one a line). Of a trace counts the span that ended last among those of the
agent (`gen_ai.operation.name` is `invoke_agent`) that carry messages, else among all that do:

    gen_ai.system_instructions, gen_ai.input.messages, gen_ai.output.messages -> the messages

The input of a span holds the turns before it, so the last one has the whole conversation. If the input
of an earlier span is not its beginning, the trace is several conversations, and is refused. Prompts and
answers in events or in separate logs (older conventions) are not read. All spans are kept in memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from anvil_local.errors import InputError
from anvil_local.samples.strict_json import json_kind, parse_json_text, without_frames

_INPUT, _OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
_SYSTEM = "gen_ai.system_instructions"


def read(values: Iterable[tuple[int, Any | InputError]]) -> Iterator[tuple[int, Any | InputError]]:
    """Yield `(index, row or error)`, one a trace, in the order in which traces begin in the file."""
    traces: dict[str, list[dict[str, Any]]] = {}
    spans = 0
    for _, value in values:
        if isinstance(value, InputError):
            raise value
        for span in _spans(value):
            spans += 1
            carries = _INPUT in span["attributes"] or _OUTPUT in span["attributes"]
            if carries:
                traces.setdefault(span["trace"], []).append(span)
    if spans and not traces:
        raise InputError(
            f"none of {spans} spans carries {_INPUT}",
            hint="the instrumentation must be told to record content; older conventions are not read",
        )
    for index, (trace, carriers) in enumerate(traces.items()):
        try:
            yield index, _row(trace, carriers)
        except InputError as error:
            yield index, without_frames(error)


def _spans(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, Mapping) and "resourceSpans" in value:
        for resource in _items(value, "resourceSpans"):
            for scope in _items(resource, "scopeSpans"):
                for span in _items(scope, "spans"):
                    attributes = {
                        item.get("key"): _otlp_value(item.get("value"))
                        for item in _items(span, "attributes")
                        if isinstance(item, Mapping)
                    }
                    yield _span(
                        span.get("traceId"), span.get("name"), span.get("endTimeUnixNano"), attributes
                    )
    elif isinstance(value, Mapping) and isinstance(value.get("context"), Mapping):
        attributes = value.get("attributes") or {}
        yield _span(value["context"].get("trace_id"), value.get("name"), value.get("end_time"), attributes)
    else:
        raise InputError(
            "not a span: there is neither `resourceSpans` nor `context.trace_id`",
            value=value,
            hint="give OTLP JSON, or what the Python SDK's span.to_json() writes",
        )


def _span(trace: Any, name: Any, end: Any, attributes: Any) -> dict[str, Any]:
    if not isinstance(trace, str) or not trace:
        raise InputError("a span has no trace id", field="traceId", value=trace)
    if not isinstance(attributes, Mapping):
        raise InputError(f"the attributes of a span must be an object, not {json_kind(attributes)}")
    # OTLP counts nanoseconds, as text or number; the SDK writes ISO 8601, which sorts as text.
    return {"trace": trace, "name": name, "end": str(end or "").zfill(40), "attributes": attributes}


def _row(trace: str, carriers: list[dict[str, Any]]) -> dict[str, Any]:
    agents = [span for span in carriers if span["attributes"].get("gen_ai.operation.name") == "invoke_agent"]
    chosen = agents or carriers
    last = max(chosen, key=lambda span: span["end"])
    whole = _messages(last, _INPUT)
    for span in chosen:
        begun = _messages(span, _INPUT)
        if whole[: len(begun)] != begun:
            raise InputError(
                "the trace holds several conversations",
                field=_INPUT,
                value=span["name"],
                hint="export each run of the agent as a trace of its own",
            )
    system = _parsed(last, _SYSTEM)
    messages: list[Any] = []
    if system is not None:
        messages.append(_message({"role": "system", "parts": system}, _SYSTEM)[0])
    for key, items in ((_INPUT, whole), (_OUTPUT, _messages(last, _OUTPUT))):
        for i, item in enumerate(items):
            messages += _message(item, f"{key}[{i}]")
    names = ("gen_ai.conversation.id", "gen_ai.agent.name", "gen_ai.request.model")
    metadata = {name: last["attributes"][name] for name in names if name in last["attributes"]}
    return {"id": trace, "messages": messages, **metadata}


def _message(item: Any, path: str) -> list[dict[str, Any]]:
    parts = item.get("parts") if isinstance(item, Mapping) else None
    if not isinstance(parts, list):
        raise InputError(f"`{path}` must be a message with `parts`", field=path)
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    results: list[dict[str, Any]] = []
    for i, part in enumerate(parts):
        place = f"{path}.parts[{i}]"
        kind = part.get("type") if isinstance(part, Mapping) else None
        if kind == "text":
            if not isinstance(part.get("content"), str):
                raise InputError(f"`{place}.content` must be text", field=f"{place}.content")
            texts.append(part["content"])
        elif kind == "tool_call":
            calls.append({"name": part.get("name"), "args": part.get("arguments"), "id": part.get("id")})
        elif kind == "tool_call_response":
            # The key was `result` before it was `response`.
            result = part.get("response", part.get("result"))
            content = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
            results.append({"role": "tool", "content": content, "tool_call_id": part.get("id")})
        elif not isinstance(kind, str):
            raise InputError(f"`{place}` has no `type`", field=place)
        elif kind != "reasoning":
            texts.append(f"[{kind}]")
    if results:
        if texts or calls:
            raise InputError(f"`{path}` mixes tool results with other parts", field=path)
        return results
    message: dict[str, Any] = {"role": item.get("role"), "content": "\n".join(texts)}
    return [message | {"tool_calls": calls} if calls else message]


def _messages(span: Mapping[str, Any], key: str) -> list[Any]:
    value = _parsed(span, key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(f"`{key}` must be a list of messages, not {json_kind(value)}", field=key)
    return value


def _parsed(span: Mapping[str, Any], key: str) -> Any:
    """An attribute: structured, or as JSON text where the exporter has nothing better."""
    value = span["attributes"].get(key)
    return parse_json_text(value) if isinstance(value, str) else value


def _otlp_value(value: Any) -> Any:
    """An `AnyValue` of OTLP as plain JSON."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return None
    kind, inner = next(iter(value.items()))
    match kind:
        case "arrayValue":
            return [_otlp_value(item) for item in _items(inner, "values")]
        case "kvlistValue":
            return {item.get("key"): _otlp_value(item.get("value")) for item in _items(inner, "values")}
        case "intValue":
            return int(inner) if isinstance(inner, str) and inner.lstrip("-").isdigit() else inner
    return inner


def _items(value: Any, key: str) -> list[Any]:
    items = value.get(key, []) if isinstance(value, Mapping) else None
    if not isinstance(items, list):
        raise InputError(f"`{key}` must be a list, not {json_kind(items)}", field=key)
    return items
