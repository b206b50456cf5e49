"""The catalogue of metrics, and which of them fit which sample."""

from __future__ import annotations

import pytest

from anvil_local.errors import UsageError
from anvil_local.metrics import GROUPS, METRICS, choose_metrics, missing_fields
from anvil_local.records import Message, Role, Sample

ANSWER = Sample(id="a", user_input="Q?", response="A.", retrieved_contexts=("C",))
NO_CONTEXT = Sample(id="n", user_input="Q?", response="A.")
TRACE = Sample(id="t", user_input=(Message(role=Role.HUMAN, content="Do it."),))
REFERENCED = TRACE.model_copy(update={"id": "r", "reference": "Done."})


def fitting(names: object, sample: Sample) -> list[str]:
    return [choice.metric.name for choice in choose_metrics(names) if choice.fits(sample)]  # type: ignore[arg-type]


def test_every_row_of_the_catalogue_is_whole() -> None:
    for name, metric in METRICS.items():
        assert metric.name == name
        assert metric.title
        assert (metric.desired is not None) == (metric.kind == "goal")
    assert all(member in METRICS for members in GROUPS.values() for member in members)
    assert not set(GROUPS) & set(METRICS)


@pytest.mark.parametrize(
    ("names", "sample", "expected"),
    [
        (None, ANSWER, ["faithfulness"]),
        (None, NO_CONTEXT, []),
        (None, TRACE, ["goal_without_reference"]),
        (None, REFERENCED, ["goal_with_reference"]),
        (["goal"], TRACE, ["goal_without_reference"]),
        (["goal"], REFERENCED, ["goal_with_reference"]),
        (["goal"], ANSWER, []),
        (["goal_without_reference"], REFERENCED, ["goal_without_reference"]),
        (["goal_with_reference"], TRACE, []),
        (["goal", "goal_without_reference"], REFERENCED, ["goal_with_reference", "goal_without_reference"]),
        (["goal_without_reference", "goal"], REFERENCED, ["goal_without_reference", "goal_with_reference"]),
        ("faithfulness", ANSWER, ["faithfulness"]),
    ],
)
def test_a_sample_gets_the_metrics_that_fit_it(
    names: list[str] | None, sample: Sample, expected: list[str]
) -> None:
    assert fitting(names, sample) == expected


def test_empty_contexts_are_contexts() -> None:
    assert fitting(None, ANSWER.model_copy(update={"retrieved_contexts": ()})) == ["faithfulness"]


def test_missing_fields_are_named() -> None:
    assert missing_fields(METRICS["faithfulness"], NO_CONTEXT) == ("retrieved_contexts",)
    assert missing_fields(METRICS["goal_with_reference"], ANSWER) == ("trace", "reference")
    assert missing_fields(METRICS["goal_with_reference"], REFERENCED) == ()


def test_a_name_twice_is_one_metric() -> None:
    assert len(choose_metrics(["faithfulness", "faithfulness"])) == 1


def test_an_unknown_name_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UsageError, match="no such metric") as error:
        choose_metrics(["faithfullness"])
    assert error.value.hint == "did you mean 'faithfulness'?"
    with pytest.raises(UsageError) as error:
        choose_metrics(["xyz"])
    assert error.value.hint
    assert "goal_with_reference" in error.value.hint


def test_choosing_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="no metric is chosen"):
        choose_metrics([])
