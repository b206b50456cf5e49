"""Inspect: the `.json` log of an evaluation; each of its samples is a trace.

| sample | row |
|---|---|
| `id`, with `epoch` when there are several | id |
| `messages` | the messages; texts that the log keeps apart (`attachment://`) are put back |
| `target`, when it is one text | reference |
| `scores`, `metadata`, `epoch`, `target` | metadata |

`events`, `store`, `output` and the like are left out: they repeat the messages or say how the run went.
A sample that ended with an error is a bad row. The log is read as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

from anvil_local.errors import InputError
from anvil_local.samples.strict_json import json_kind, parse_json, without_frames

_ATTACHMENT = "attachment://"
_METADATA = ("epoch", "target", "scores", "metadata")


def read(stream: IO[bytes]) -> Iterator[tuple[int, Any | InputError]]:
    """Yield `(index, row or error)` of the log's samples, from 0; see `formats`."""
    log = parse_json(stream.read())
    if not isinstance(log, Mapping) or not isinstance(log.get("eval"), Mapping):
        raise InputError(
            "not a log of Inspect: there is no `eval`", hint="inspect log convert writes .json logs"
        )
    samples = log.get("samples")
    if samples is None:
        raise InputError("the log holds no samples", hint="it was written with --no-log-samples")
    if not isinstance(samples, list):
        raise InputError(f"`samples` must be a list, not {json_kind(samples)}", field="samples")
    del log
    epochs = any(isinstance(sample, Mapping) and sample.get("epoch", 1) != 1 for sample in samples)
    for index, sample in enumerate(samples):
        try:
            yield index, _row(sample, epochs)
        except InputError as error:
            yield index, without_frames(error)


def _row(sample: Any, epochs: bool) -> dict[str, Any]:
    if not isinstance(sample, Mapping):
        raise InputError(f"a sample must be an object, not {json_kind(sample)}")
    if sample.get("error") is not None:
        error = sample["error"]
        raise InputError(
            "the sample ended with an error",
            field="error",
            value=error.get("message") if isinstance(error, Mapping) else error,
        )
    messages = sample.get("messages")
    if not isinstance(messages, list):
        raise InputError(f"`messages` must be a list, not {json_kind(messages)}", field="messages")
    kept = sample.get("attachments")
    attachments = kept if isinstance(kept, Mapping) else {}
    row: dict[str, Any] = {
        "id": f"{sample.get('id')}/{sample.get('epoch')}" if epochs else sample.get("id"),
        "messages": [_message(item, f"messages[{i}]", attachments) for i, item in enumerate(messages)],
    }
    target = sample.get("target")
    if isinstance(target, list) and len(target) == 1:
        target = target[0]
    if isinstance(target, str) and target.strip():
        row["reference"] = target
    return row | {key: sample[key] for key in _METADATA if sample.get(key) not in (None, "", {}, [])}


def _message(item: Any, path: str, attachments: Mapping[str, Any]) -> Any:
    if not isinstance(item, Mapping):
        return item
    message = {key: item[key] for key in ("role", "content", "tool_call_id") if key in item}
    message["content"] = _content(item.get("content"), f"{path}.content", attachments)
    if item.get("role") == "tool":
        message["name"] = item.get("function")
        error = item.get("error")
        if isinstance(error, Mapping) and not message["content"]:
            message["content"] = f"error: {error.get('message')}"
    calls = item.get("tool_calls") or []
    if not isinstance(calls, list):
        raise InputError(
            f"`{path}.tool_calls` must be a list, not {json_kind(calls)}", field=f"{path}.tool_calls"
        )
    if calls:
        message["tool_calls"] = [
            {"name": call.get("function"), "args": call.get("arguments"), "id": call.get("id")}
            if isinstance(call, Mapping)
            else call
            for call in calls
        ]
    return message


def _content(content: Any, path: str, attachments: Mapping[str, Any]) -> Any:
    if isinstance(content, str) and content.startswith(_ATTACHMENT):
        text = attachments.get(content.removeprefix(_ATTACHMENT))
        if not isinstance(text, str):
            raise InputError(
                f"`{path}` names an attachment that the log does not hold", field=path, value=content
            )
        return text
    if isinstance(content, list):
        # What the model thought is no part of what it said.
        return [
            {**part, "text": _content(part["text"], f"{path}[{i}].text", attachments)}
            if isinstance(part, Mapping) and isinstance(part.get("text"), str)
            else part
            for i, part in enumerate(content)
            if not (isinstance(part, Mapping) and part.get("type") == "reasoning")
        ]
    return content
