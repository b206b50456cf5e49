"""Weighted labels: a row that stands for three counts as three."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil_local.calibration import Judged, choose_threshold, measure, read_labelled
from anvil_local.errors import InputErrors

ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from([-2.0, -0.5, 0.5, 1.0, 3.0]), st.sampled_from([1, 2, 5])),
    min_size=2,
    max_size=14,
)


def judged(rows: list[tuple[int, float, float]]) -> list[Judged]:
    return [
        Judged.model_validate(
            {"label": label, "margin": margin, "value": int(margin > 0), "id": str(number), "weight": weight}
        )
        for number, (label, margin, weight) in enumerate(rows)
    ]


@given(ROWS)
def test_a_weight_counts_as_that_many_rows(rows: list[tuple[int, float, int]]) -> None:
    weighted = measure(judged([(label, margin, weight) for label, margin, weight in rows]), draws=10)
    repeated = measure(
        judged([(label, margin, 1) for label, margin, weight in rows for _ in range(weight)]), draws=10
    )
    for name in ("sensitivity", "specificity", "accuracy", "balanced_accuracy", "kappa", "auroc", "brier"):
        one, other = (getattr(found.sets[0], name).value for found in (weighted, repeated))
        assert one == pytest.approx(other), name
    assert (
        choose_threshold(judged(rows)).best
        == choose_threshold(
            judged([(label, margin, 1) for label, margin, weight in rows for _ in range(weight)])
        ).best
    )


@given(ROWS)
def test_equal_weights_are_no_weights(rows: list[tuple[int, float, int]]) -> None:
    plain = measure(judged([(label, margin, 1) for label, margin, _ in rows]), draws=50)
    scaled = measure(judged([(label, margin, 4) for label, margin, _ in rows]), draws=50)
    assert not scaled.sets[0].weighted
    for name in ("sensitivity", "specificity", "accuracy", "kappa", "auroc", "brier", "calibration_error"):
        one, other = (getattr(found.sets[0], name) for found in (plain, scaled))
        assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high)), name


def test_unequal_weights_widen_the_interval_and_are_named() -> None:
    rows = [(1, 1.0, 1.0)] * 30 + [(1, -1.0, 1.0)] * 10 + [(0, -1.0, 1.0)] * 10
    uneven = [(label, margin, 1.0 + 9 * (number % 2)) for number, (label, margin, _) in enumerate(rows)]
    plain, weighted = (measure(judged(part), draws=50).sets[0] for part in (rows, uneven))
    assert not plain.weighted
    assert weighted.weighted

    def width(numbers: Any) -> float:
        return float(numbers.sensitivity.high - numbers.sensitivity.low)

    assert plain.sensitivity.value == weighted.sensitivity.value == 0.75
    assert width(weighted) > width(plain)
    assert weighted.rows == 50


def test_the_interval_of_weighted_rows_holds_the_truth_as_often_as_it_says() -> None:
    import numpy as np

    random = np.random.default_rng(11)
    held = 0
    for _ in range(400):
        # A tenth of the population is near the threshold, where the judge is right half the time.
        near, rest = random.random(25) < 0.5, random.random(25) < 0.9
        rows = [(1, 1.0 if right else -1.0, 4.0) for right in near]
        rows += [(1, 1.0 if right else -1.0, 36.0) for right in rest]
        rows.append((0, -1.0, 1.0))
        found = measure(judged(rows), draws=2).sets[0].sensitivity
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 0.1 * 0.5 + 0.9 * 0.9 <= found.high
    assert held / 400 >= 0.93


@pytest.mark.parametrize("weight", [0, -1, "2", True, None])
def test_a_weight_that_is_no_number_above_0_is_refused(tmp_path: Path, weight: object) -> None:
    path = tmp_path / "l.jsonl"
    row = {"context": "c", "statement": "s", "label": 1, "weight": weight}
    path.write_text(json.dumps(row) + "\n", "utf-8")
    with pytest.raises(InputErrors, match="`weight` must be a number above 0"):
        read_labelled(path)


def test_a_row_without_a_weight_stands_for_itself(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    rows = [
        {"context": "c", "statement": "s", "label": 1},
        {"context": "c", "statement": "t", "label": 0, "weight": 2},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    assert [row.weight for row in read_labelled(path).rows] == [1.0, 2.0]
