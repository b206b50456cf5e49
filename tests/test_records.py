from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

from anvil_local import FakeJudge, Report, evaluate
from anvil_local.records import Verdict


@pytest.fixture
def report() -> Report:
    rows = [
        {"id": "a", "response": "It rained. It snowed.", "retrieved_contexts": ["Rain."], "topic": "weather"},
        {"id": "b", "response": "Hello!", "retrieved_contexts": ["Rain."]},
    ]
    return evaluate(rows, judge=FakeJudge([1, 0]))


def test_rows_are_flat_one_a_sample_and_metric(report: Report) -> None:
    first, second = report.rows()
    assert (first["sample_id"], first["score"], first["metadata.topic"]) == ("a", 0.5, "weather")
    assert (second["score"], second["reason"]) == (None, "no_statements")


def test_statement_rows_are_flat_one_a_statement(report: Report) -> None:
    rows = report.statement_rows()
    assert [(row["sample_id"], row["text"], row["value"]) for row in rows] == [
        ("a", "It rained.", 1),
        ("a", "It snowed.", 0),
    ]


def test_to_pandas_hands_the_rows_to_pandas(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=lambda rows: ("frame", rows)))
    assert report.to_pandas() == ("frame", report.rows())
    assert report.to_pandas(statements=True) == ("frame", report.statement_rows())


def test_records_are_frozen_and_refuse_nan_and_unknown_fields() -> None:
    verdict = Verdict(value=1, margin=0.5)
    with pytest.raises(ValidationError):
        verdict.value = 0  # type: ignore[misc]
    with pytest.raises(ValidationError):
        Verdict(value=1, margin=float("nan"))
    with pytest.raises(ValidationError):
        Verdict(value=1, certainty=0.9)  # type: ignore[call-arg]
    with pytest.raises(ValidationError):
        Verdict(value=2)  # type: ignore[arg-type]
