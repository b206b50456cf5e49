"""The public surface of `anvil_local.samples`, and samples that come from Python objects."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from typing import Any

import pytest
from pydantic import BaseModel

from anvil_local import samples
from anvil_local.errors import InputError
from anvil_local.records import Message, Role, Sample, ToolCall
from anvil_local.samples import as_samples

ANSWER = {
    "user_input": "Who runs the ferry?",
    "response": "The harbour board.",
    "retrieved_contexts": ["..."],
}


def test_all_is_complete_and_every_name_exists() -> None:
    assert sorted(samples.__all__, key=lambda name: (not name.isupper(), name)) == samples.__all__
    assert all(hasattr(samples, name) for name in samples.__all__)


def test_importing_it_loads_no_heavy_library() -> None:
    code = "import sys, json, anvil_local.samples; print(json.dumps(sorted(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"numpy", "llama_cpp", "outlines", "pandas", "rich", "typer"} & set(json.loads(out))


def test_dicts_become_samples_with_numbers_as_ids() -> None:
    first, second = as_samples([ANSWER, {**ANSWER, "id": "x", "topic": "boats"}])
    assert (first.id, first.source, first.question) == ("1", "samples[0]", "Who runs the ferry?")
    assert (second.id, second.metadata) == ("x", {"topic": "boats"})


def test_a_sample_passes_unchanged() -> None:
    sample = Sample(id="a", response="Yes, it floats.")
    assert next(as_samples([sample])) is sample


@pytest.mark.parametrize(
    "sample",
    [
        Sample(id="a"),
        Sample(id="a", response=" \n"),
        Sample(id="a", user_input=()),
        Sample(id="a", user_input=(Message(role=Role.HUMAN, content="hi"),), response="hello"),
    ],
)
def test_a_sample_that_is_neither_an_answer_nor_a_trace_is_refused(sample: Sample) -> None:
    with pytest.raises(InputError, match="neither an answer nor a trace"):
        list(as_samples([sample]))


def test_an_id_used_twice_is_refused_with_both_places() -> None:
    with pytest.raises(InputError, match="used by samples\\[0\\]") as caught:
        list(as_samples([{**ANSWER, "id": "x"}, Sample(id="x", response="Yes.")]))
    assert caught.value.where == "samples[1]"


def test_the_number_of_a_row_without_id_counts_as_its_id() -> None:
    with pytest.raises(InputError, match="'1' is used"):
        list(as_samples([ANSWER, {**ANSWER, "id": 1}]))


@pytest.mark.parametrize("items", [ANSWER, "answers.jsonl", Sample(id="a", response="Yes.")])
def test_one_sample_instead_of_a_list_is_refused(items: Any) -> None:
    with pytest.raises(InputError, match="must be a list"):
        list(as_samples(items))


def test_an_item_of_another_type_is_refused_with_its_index() -> None:
    with pytest.raises(InputError, match="a row must be an object") as caught:
        list(as_samples([ANSWER, 7]))
    assert caught.value.where == "samples[1]"


def test_samples_are_read_one_by_one() -> None:
    def rows() -> Any:
        yield ANSWER
        raise AssertionError("read too far")

    assert next(as_samples(rows())).id == "1"


class SingleTurn(BaseModel):
    """The shape of Ragas' class of a similar name."""

    user_input: str | None = None
    response: str | None = None
    retrieved_contexts: list[str] | None = None
    rubrics: dict[str, str] | None = None


class Call(BaseModel):
    name: str
    args: dict[str, Any]


class Turn(BaseModel):
    content: str
    type: str
    metadata: dict[str, Any] | None = None
    tool_calls: list[Call] | None = None


class MultiTurn(BaseModel):
    user_input: list[Turn]
    reference: str | None = None


TURNS = [
    Turn(type="human", content="Dim the lamp."),
    Turn(type="ai", content="", tool_calls=[Call(name="dim", args={"to": 0.4, "fade": None})]),
    Turn(type="tool", content="ok"),
]


def test_pydantic_objects_are_read_by_their_dump_without_empty_columns() -> None:
    (sample,) = as_samples([SingleTurn(user_input="Why?", response="Because of rain.")])
    assert sample.response == "Because of rain."
    assert sample.metadata == {}


@pytest.mark.parametrize("item", [MultiTurn(user_input=TURNS), {"user_input": TURNS}, {"messages": TURNS}])
def test_message_objects_are_read_in_samples_and_in_dicts(item: Any) -> None:
    (sample,) = as_samples([item])
    assert isinstance(sample.user_input, tuple)
    assert [message.role for message in sample.user_input] == [Role.HUMAN, Role.AI, Role.TOOL]
    assert sample.user_input[1].tool_calls == (ToolCall(name="dim", args={"to": 0.4, "fade": None}),)


def test_keys_of_message_objects_that_nobody_reads_may_hold_anything() -> None:
    class WithArtifact(Turn):
        artifact: Any = None

    turn = WithArtifact(type="human", content="Hello?", artifact=object())
    (sample,) = as_samples([{"user_input": [turn]}])
    assert isinstance(sample.user_input, tuple)


class Dataclassy:
    def to_dict(self) -> dict[str, Any]:
        return dict(ANSWER)


def test_objects_with_to_dict_are_read() -> None:
    assert next(as_samples([Dataclassy()])).response == "The harbour board."


def test_a_missing_value_of_pandas_is_refused_with_a_hint() -> None:
    with pytest.raises(InputError, match="`reference` is not a finite number") as caught:
        list(as_samples([{**ANSWER, "reference": float("nan")}]))
    assert caught.value.hint is not None
    assert "None" in caught.value.hint


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"when": datetime.date(2024, 5, 1)}, "`extra.when` is a date, which JSON does not have"),
        ({"a b": [b"x"]}, r"`extra\['a b'\]\[0\]` is a bytes"),
        ({1: "x"}, "a key in `extra` is not text"),
        ("\ud800", "`extra` holds half a character"),
    ],
)
def test_metadata_that_no_report_could_hold_is_refused_with_its_path(value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        list(as_samples([{**ANSWER, "extra": value}]))


def test_an_object_that_holds_itself_is_refused() -> None:
    loop: dict[str, Any] = {}
    loop["again"] = loop
    with pytest.raises(InputError, match="nested more than 100 levels"):
        list(as_samples([{**ANSWER, "extra": loop}]))
