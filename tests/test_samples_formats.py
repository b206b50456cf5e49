"""Every format reads its golden file, and refuses what it only half knows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anvil_local.errors import InputError, InputErrors, UsageError
from anvil_local.records import Role
from anvil_local.samples import FORMATS, SampleFile

FOLDER = Path(__file__).parent / "formats"
GOLDEN = {path.stem: path for path in sorted(FOLDER.glob("*.*")) if path.suffix != ".md"}
BINARY = {"parquet", "arrow", "datasets"}
CERTAIN = {"jsonl", "json", "csv", "inspect", "promptfoo", "otel"}


def entries(path: Path, name: str | None) -> list[dict[str, Any]]:
    with SampleFile(path, format=name, skip_bad_rows=True) as samples:
        return [
            {"refused": entry.message, "field": entry.field, "value": entry.value}
            if isinstance(entry, InputError)
            else entry.model_dump(mode="json", exclude={"source"}, exclude_defaults=True)
            for entry in samples.entries()
        ]


def expected(name: str) -> Path:
    return FOLDER / "expected" / f"{name}.json"


def test_every_format_has_its_golden_file() -> None:
    assert set(GOLDEN) | BINARY == {known.name for known in FORMATS}


@pytest.mark.parametrize("name", GOLDEN)
def test_a_golden_file_is_read_as_expected(name: str) -> None:
    assert entries(GOLDEN[name], name) == json.loads(expected(name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(CERTAIN))
def test_a_format_that_is_certain_needs_no_name(name: str) -> None:
    assert entries(GOLDEN[name], None) == entries(GOLDEN[name], name)


@pytest.mark.parametrize("name", sorted(set(GOLDEN) - CERTAIN))
def test_a_format_that_is_not_certain_is_refused_with_its_name_in_the_hint(name: str) -> None:
    with pytest.raises(InputErrors) as caught:
        SampleFile(GOLDEN[name]).check()
    assert all(f"--format {name}" in (error.hint or "") for error in caught.value.errors)


def test_an_unknown_format_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="known: jsonl, json, csv"):
        SampleFile(GOLDEN["jsonl"], format="yaml").check()


@pytest.mark.parametrize("name", ["openai", "langgraph", "llamaindex", "inspect", "otel"])
def test_the_same_run_is_the_same_trace_whoever_wrote_it(name: str) -> None:
    with SampleFile(GOLDEN[name], format=name, skip_bad_rows=True) as samples:
        trace = next(iter(samples)).user_input
    assert isinstance(trace, tuple)
    turns = [message for message in trace if message.role is not Role.SYSTEM]
    assert [message.role.value for message in turns] == ["human", "ai", "tool", "ai"]
    assert turns[0].content == "When does the last ferry leave?"
    assert [(call.name, call.args, call.id) for call in turns[1].tool_calls] == [
        ("timetable", {"line": 4}, "c1")
    ]
    assert "23:10" in turns[2].content
    assert turns[2].tool_call_id == "c1"
    assert turns[3].content == "At 23:10."


def refused(tmp_path: Path, name: str, value: Any) -> InputError:
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps(value), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        SampleFile(path, format=name).check()
    return caught.value.errors[0] if isinstance(caught.value, InputErrors) else caught.value


USER = {"role": "user", "content": "Hi"}
EVENT = {"qualified_name": "a.AgentInput", "value": {"input": [USER]}}
SPAN = {"name": "chat", "context": {"trace_id": "0x1"}, "end_time": "2025-01-01T00:00:00Z"}


def spans(*inputs: Any) -> list[dict[str, Any]]:
    return [
        SPAN | {"attributes": {"gen_ai.input.messages": value}, "end_time": f"2025-01-01T00:00:0{i}Z"}
        for i, value in enumerate(inputs)
    ]


def part(text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"type": "text", "content": text}]}


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [
        ("openai", {"input": "Hi"}, None),
        ("openai", {"input": 3, "output": []}, "input"),
        ("openai", {"messages": [USER], "choices": []}, "choices"),
        ("openai", {"messages": [USER], "choices": [{}]}, "choices[0].message"),
        ("openai", {"input": "Hi", "output": [{"type": "function_call"}]}, "messages[1].name"),
        ("openai", {"input": "Hi", "output": [{"type": "mcp_call", "name": "x"}]}, "messages[1].type"),
        ("langgraph", {"messages": [USER]}, "values.messages"),
        ("langgraph", {"values": {"messages": [USER]}, "next": ["agent"]}, "next"),
        ("llamaindex", EVENT, "events"),
        ("llamaindex", {"events": [EVENT, {"type": "Odd", "value": {}}]}, "events[1].value"),
        ("llamaindex", {"events": [{"value": {}}]}, "events[0]"),
        ("llamaindex", {"events": [{"type": "ToolCall", "value": {}}]}, "events[0].value.tool_name"),
        ("llamaindex", {"events": [{"type": "AgentInput", "value": {"input": 3}}]}, "events[0].value.input"),
        ("deepeval", {"input": "Hi"}, "actual_output"),
        ("deepeval", {"input": "Hi", "actual_output": 3}, "response"),
        ("deepeval", {"input": "Hi", "actual_output": "a", "actualOutput": "a"}, "actualOutput"),
        ("deepeval", {"turns": "Hi"}, "turns"),
        ("deepeval", {"turns": [{"role": "guest", "content": "Hi"}]}, "messages[0].role"),
        ("promptfoo", {"vars": {}, "assert": []}, "response"),
        ("promptfoo", {"vars": {}, "response": {"error": "late"}}, "response.output"),
        ("promptfoo", {"vars": 3, "response": {"output": "Hi"}}, "vars"),
        (
            "promptfoo",
            {"vars": {"query": "a", "question": "b"}, "response": {"output": "c"}},
            "vars.question",
        ),
        ("inspect", {"samples": []}, None),
        ("inspect", {"eval": {}}, None),
        ("inspect", {"eval": {}, "samples": [{"id": 1}]}, "messages"),
        ("inspect", {"eval": {}, "samples": [{"id": 1, "messages": [USER], "error": "late"}]}, "error"),
        (
            "inspect",
            {"eval": {}, "samples": [{"id": 1, "messages": [USER | {"content": "attachment://x"}]}]},
            "messages[0].content",
        ),
        ("otel", {"name": "chat"}, None),
        ("otel", spans(3), "gen_ai.input.messages"),
        ("otel", spans([USER]), "gen_ai.input.messages[0]"),
        ("otel", spans([part("a")], [part("b")]), "gen_ai.input.messages"),
    ],
)
def test_what_is_half_known_is_refused(tmp_path: Path, name: str, value: Any, field: str | None) -> None:
    error = refused(tmp_path, name, value)
    assert error.field == field
    assert str(tmp_path / "data.jsonl") in str(error.where)


def test_spans_without_content_say_what_to_switch_on(tmp_path: Path) -> None:
    error = refused(tmp_path, "otel", [SPAN | {"attributes": {}}])
    assert "record content" in (error.hint or "")


def test_spans_of_the_python_sdk_are_read(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    rows = spans([part("a")], json.dumps([part("a"), part("b")]))
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    (sample,) = SampleFile(path, format="otel")
    assert isinstance(sample.user_input, tuple)
    assert [message.content for message in sample.user_input] == ["a", "b"]


def test_epochs_of_an_inspect_log_have_ids_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    samples = [{"id": "a", "epoch": epoch, "messages": [USER]} for epoch in (1, 2)]
    path.write_text(json.dumps({"eval": {}, "samples": samples}), encoding="utf-8")
    assert [sample.id for sample in SampleFile(path, format="inspect")] == ["a/1", "a/2"]


def test_a_zip_archive_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(b"PK\x03\x04rest")
    with pytest.raises(InputError, match=r"inspect log convert"):
        SampleFile(path).check()


if __name__ == "__main__":
    expected("x").parent.mkdir(exist_ok=True)
    for golden, path in GOLDEN.items():
        text = json.dumps(entries(path, golden), ensure_ascii=False, indent=2)
        expected(golden).write_text(text + "\n", encoding="utf-8")
