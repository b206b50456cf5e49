"""Field mapping: what paths find, what stays behind, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anvil_local.errors import InputError, UsageError
from anvil_local.samples import FieldMap, SampleFile, parse_mapping

ROW = {
    "answer": {"text": "It rained.", "model": "m"},
    "documents": [{"text": "Rain."}, {"text": "Snow."}],
    "steps": [{"q": "Did it rain?"}],
    "meta.id": "a",
}
MAP = {
    "response": "answer.text",
    "retrieved_contexts": "documents[*].text",
    "user_input": "steps[0].q",
    "id": "meta.id",
}


def test_paths_reach_into_objects_and_lists() -> None:
    sample = FieldMap(MAP).sample(ROW, where="x:1", number=1)
    assert (sample.id, sample.response, sample.user_input) == ("a", "It rained.", "Did it rain?")
    assert sample.retrieved_contexts == ("Rain.", "Snow.")


def test_what_a_path_passes_through_stays_in_the_metadata_and_what_is_mapped_whole_does_not() -> None:
    sample = FieldMap(MAP).sample(ROW, where="x:1", number=1)
    assert sample.metadata == {key: ROW[key] for key in ("answer", "documents", "steps")}


def test_without_a_mapping_a_row_is_read_as_ever() -> None:
    row = {"response": "It rained.", "topic": "weather"}
    assert FieldMap().sample(row, where="x:1", number=1).metadata == {"topic": "weather"}


@pytest.mark.parametrize(
    ("row", "field", "says"),
    [
        ({"answer": {}}, "response", "; `response` is read from `answer.text`"),
        ({"answer": {"text": 3}}, "response", "must be text, not a number; `response` is read from"),
        (
            {"answer": {"text": "a"}, "documents": [{"text": "b"}, {}]},
            "retrieved_contexts[1]",
            "must be text, not null; `retrieved_contexts` is read from",
        ),
        ({"answer": {"text": "a"}, "documents": "b"}, None, None),
    ],
)
def test_errors_name_the_path(row: dict[str, Any], field: str | None, says: str | None) -> None:
    fields = FieldMap({"response": "answer.text", "retrieved_contexts": "documents[*].text"})
    if says is None:
        assert fields.sample(row, where="x:1", number=1).retrieved_contexts is None
        return
    with pytest.raises(InputError) as caught:
        fields.sample(row, where="x:1", number=1)
    assert (caught.value.field, caught.value.where) == (field, "x:1")
    assert says in caught.value.message


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        (["response"], "a mapping is FIELD=PATH"),
        (["respons=a"], "did you mean 'response'"),
        (["response=a", "response=b"], "mapped twice"),
        (["response="], "no path"),
        (["response=a..b"], "no path"),
        (["response=a[x]"], "no path"),
    ],
)
def test_bad_rules_are_refused(rules: list[str], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_mapping(rules)
    assert says in str(caught.value)


def test_rules_are_parsed() -> None:
    assert parse_mapping(["response=a.b[0]", " id = key "]) == {"response": "a.b[0]", "id": "key"}


def test_a_mapping_that_leads_nowhere_in_every_row_is_an_error_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text("\n".join(json.dumps({"response": "a", "n": i}) for i in range(2)), encoding="utf-8")
    with pytest.raises(UsageError, match="reference=gold leads nowhere"):
        SampleFile(path, mapping={"reference": "gold"}).check()
    assert SampleFile(path, mapping={"reference": "response"}, skip_bad_rows=True)


def test_a_mapping_may_lead_nowhere_in_some_rows(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text('{"response": "a", "gold": "b"}\n{"response": "a"}\n', encoding="utf-8")
    with SampleFile(path, mapping={"reference": "gold"}) as samples:
        assert [sample.reference for sample in samples] == ["b", None]


TABLE = """q,ans,docs
Who?,It rained.,"[""Rain."", ""Snow.""]"
"[{""role"": ""user"", ""content"": ""Stop.""}]",,
"""


def test_a_mapped_cell_is_read_as_a_cell_of_that_field(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(TABLE, encoding="utf-8")
    paths = {"user_input": "q", "response": "ans", "retrieved_contexts": "docs"}
    answer, trace = SampleFile(path, mapping=paths)
    assert answer.retrieved_contexts == ("Rain.", "Snow.")
    assert answer.question == "Who?"
    assert trace.is_trace
    # As under its own name, a list that is not JSON is refused and not taken for one context.
    path.write_text("ans,docs\nYes.,\"['a', 'b']\"\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"looks like a list, but is not JSON.*is read from `docs`"):
        SampleFile(path, mapping={"response": "ans", "retrieved_contexts": "docs"}).check()


def test_a_text_of_a_format_that_has_lists_stays_a_text(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"response": "Yes.", "docs": '["a", "b"]'}), encoding="utf-8")
    (sample,) = SampleFile(path, mapping={"retrieved_contexts": "docs"})
    assert sample.retrieved_contexts == ('["a", "b"]',)
