"""The numbers of labelled verdicts: exact small cases, brute force, scipy, and coverage by simulation."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from anvil_local.calibration import (
    Estimate,
    Judged,
    LabelledRow,
    LabelledTrace,
    Measured,
    auroc,
    choose_threshold,
    estimate_auroc,
    estimate_gain,
    estimate_share,
    measure,
    read_labelled,
)
from anvil_local.errors import InputError, InputErrors, NothingToJudge

ROW = {"context": "It rained.", "statement": "It was wet.", "label": 1}


def write(path: Path, *rows: Any) -> Path:
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


def judged(margin: float | None, label: int, *, value: int | None = -1, **others: Any) -> Judged:
    if value == -1:
        value = None if margin is None else int(margin > 0)
    others = {"id": f"{margin}/{label}"} | others
    return Judged.model_validate({"label": label, "margin": margin, "value": value, "mass": 1.0, **others})


def rows_of(ones: list[float], zeros: list[float], **others: Any) -> list[Judged]:
    pairs = [(margin, 1) for margin in ones] + [(margin, 0) for margin in zeros]
    return [judged(margin, label, id=str(n), **others) for n, (margin, label) in enumerate(pairs)]


def numbers_in(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [number for item in value.values() for number in numbers_in(item)]
    if isinstance(value, list | tuple):
        return [number for item in value for number in numbers_in(item)]
    return [value] if isinstance(value, float) else []


# Reading


def test_a_row_has_context_statement_and_label_and_may_have_more(tmp_path: Path) -> None:
    row = ROW | {"id": 7, "set": "s", "kind": "k", "question": "Q?", "license": "x", "margin": 3}
    file = read_labelled(write(tmp_path / "l.jsonl", row))
    expected = {"set": "s", "kind": "k", "id": "7", "question": "Q?"}
    assert file.rows == (LabelledRow.model_validate(ROW | expected),)
    assert file.name == "l.jsonl"


def test_contexts_may_be_a_list_and_the_set_may_be_a_source(tmp_path: Path) -> None:
    row = {"retrieved_contexts": ["a", " ", "b"], "statement": " x\ny ", "label": False, "source": "wiki"}
    (read,) = read_labelled(write(tmp_path / "l.jsonl", row)).rows
    assert isinstance(read, LabelledRow)
    assert (read.context, read.statement, read.label, read.set, read.id) == ("a\n\nb", "x y", 0, "wiki", "1")


def test_gzip_is_read_by_its_bytes_and_the_checksum_is_that_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(ROW).encode()))
    file = read_labelled(path)
    assert len(file.rows) == 1
    assert file.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    renamed = tmp_path / "l.jsonl"
    renamed.write_bytes(path.read_bytes())
    assert read_labelled(renamed).rows == file.rows
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match="gzip"):
        read_labelled(path)


def test_a_json_list_and_standard_input_are_read_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "l.json"
    path.write_text(json.dumps([ROW, ROW]), encoding="utf-8")
    assert len(read_labelled(path).rows) == 2
    stdin = io.TextIOWrapper(io.BytesIO(json.dumps(ROW).encode() + b"\n"))
    monkeypatch.setattr("sys.stdin", stdin)
    assert read_labelled("-").name == "<stdin>"


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"label": None}, "label", "missing"),
        ({"label": 2}, "label", "0 or 1"),
        ({"label": "1"}, "label", "0 or 1"),
        ({"label": 0.5}, "label", "0 or 1"),
        ({"statement": None}, "statement", "missing"),
        ({"statement": " "}, "statement", "empty"),
        ({"statement": 3}, "statement", "a number"),
        ({"context": None}, "context", "missing"),
        ({"context": 3}, "context", "text"),
        ({"contexts": ["a"]}, "contexts", "two names"),
        ({"context": ["a", 1]}, "context", "list of texts"),
        ({"set": 3}, "set", "text"),
        ({"id": ""}, "id", "text or a whole number"),
    ],
)
def test_a_bad_row_is_refused_with_its_line_and_field(
    change: dict[str, Any], field: str, words: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "l.jsonl", ROW, ROW | change)
    with pytest.raises(InputErrors) as caught:
        read_labelled(path)
    (error,) = caught.value.errors
    assert error.where == f"{path}:2"
    assert error.field == field
    assert words in error.message


def test_all_bad_rows_are_named_and_equal_ids_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "l.jsonl", ROW | {"id": "a"}, [1], ROW | {"id": "a"})
    with pytest.raises(InputErrors) as caught:
        read_labelled(path)
    assert [error.where for error in caught.value.errors] == [f"{path}:2", f"{path}:3"]
    assert f"{path}:1" in str(caught.value)


def test_an_empty_file_is_nothing_to_judge_and_a_missing_one_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(NothingToJudge):
        read_labelled(write(tmp_path / "l.jsonl"))
    with pytest.raises(InputError, match="nowhere"):
        read_labelled(tmp_path / "nowhere.jsonl")


def test_a_labelled_trace_keeps_its_messages_and_reference_alone(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "Stop."}, {"role": "assistant", "content": "Stopped."}]
    row = {"messages": messages, "reference": "It stopped.", "label": 1, "set": "s", "goal": "x", "id": "a"}
    row |= {"question": "the task as text", "domain": "d"}
    path = write(tmp_path / "t.jsonl", row)
    (trace,) = read_labelled(path, task="goal").rows
    assert isinstance(trace, LabelledTrace)
    assert (trace.sample.reference, trace.sample.metadata, trace.set) == ("It stopped.", {}, "s")
    assert trace.sample.source == f"{path}:1"
    with pytest.raises(InputErrors, match="no trace"):
        read_labelled(write(tmp_path / "s.jsonl", ROW), task="goal")


# Exact small cases


def test_the_numbers_of_four_rows_are_those_worked_out_by_hand() -> None:
    # Label 1: margins 2 (right), -1 (wrong); label 0: 1 (wrong), -3, -4 (right).
    (numbers,) = measure(rows_of([2.0, -1.0], [1.0, -3.0, -4.0])).sets
    assert numbers.confusion.model_dump() == {
        "true_positives": 1, "false_negatives": 1, "false_positives": 1, "true_negatives": 2,
    }  # fmt: skip
    assert numbers.sensitivity.value == 1 / 2
    assert numbers.specificity.value == pytest.approx(2 / 3)
    assert numbers.balanced_accuracy.value == pytest.approx(7 / 12)
    assert numbers.accuracy.value == 3 / 5
    # Of six pairs 2 > all three, -1 > two: five.
    assert numbers.auroc.value == pytest.approx(5 / 6)
    # Agreement 3/5; chance 2/5 * 2/5 + 3/5 * 3/5 = 13/25.
    assert numbers.kappa.value == pytest.approx((3 / 5 - 13 / 25) / (1 - 13 / 25))
    p = [1 / (1 + math.exp(-margin)) for margin in (2, -1, 1, -3, -4)]
    labels = [1, 1, 0, 0, 0]
    brier = sum((a - b) ** 2 for a, b in zip(p, labels, strict=True)) / 5
    assert numbers.brier.value == pytest.approx(brier)
    # Fewer than ten rows: one bin.
    assert numbers.bins == 1
    assert numbers.calibration_error.value == pytest.approx(abs(sum(p) - 2) / 5)


def test_equal_margins_count_half() -> None:
    assert auroc([1.0, 1.0, 0.0, 1.0], [1, 0, 0, 1]) == pytest.approx((0.5 + 1 + 0.5 + 1) / 4)
    assert auroc([0.0, 0.0], [1, 0]) == 0.5


def test_bins_hold_equal_numbers_of_rows_and_equal_margins_share_one() -> None:
    # Twenty rows in two bins: ten at p = 0.5 of which five are 1; ten at p = 0.5 + something.
    margin = math.log(3)  # p = 0.75
    rows = rows_of([0.0] * 2 + [margin] * 6, [0.0] * 8 + [margin] * 4)
    (numbers,) = measure(rows).sets
    assert numbers.bins == 2
    assert numbers.calibration_error.value == pytest.approx((0.3 * 10 + 0.15 * 10) / 20)
    # All alike: whatever the number of bins, there is one.
    (alike,) = measure(rows_of([0.0] * 20, [0.0] * 20)).sets
    assert alike.calibration_error.value == 0


def test_a_set_with_one_label_has_what_can_be_said_and_reasons_for_the_rest() -> None:
    found = measure([*rows_of([1.0, -1.0], [], set="ones"), *rows_of([1.0], [-1.0], set="two")])
    ones, two = found.sets
    for name in ("balanced_accuracy", "auroc", "kappa"):
        assert getattr(ones, name).value is None
        assert getattr(ones, name).reason == "every scored row is labelled 1"
        assert getattr(found.macro, name).sets == 1
        assert getattr(found.macro, name).value == getattr(two, name).value
    assert ones.specificity.reason == "no scored row is labelled 0"
    assert ones.sensitivity.value == 0.5
    assert ones.brier.value is not None
    assert found.macro.sensitivity.sets == 2
    assert found.macro.sensitivity.value == 0.75


def test_undecided_rows_are_counted_and_part_of_no_number() -> None:
    rows = [judged(2.0, 1), judged(-2.0, 0), judged(None, 1, id="a"), judged(None, 0, id="b")]
    (numbers,) = measure(rows).sets
    assert (numbers.rows, numbers.unscored) == (4, 2)
    assert numbers.accuracy.value == 1
    nothing = measure([judged(None, 1)])
    assert nothing.sets[0].accuracy.reason == "no row is scored"
    assert nothing.macro.accuracy.value is None
    assert measure([]).macro.rows == 0


def test_a_zero_without_a_margin_is_below_every_margin() -> None:
    rows = [judged(-30.0, 1), judged(None, 0, value=0)]
    (numbers,) = measure(rows).sets
    assert numbers.auroc.value == 1
    assert numbers.brier.value == pytest.approx(0.5)
    threshold = choose_threshold(rows)
    assert threshold.balanced_accuracy == 1


def test_a_vote_has_a_probability_of_its_own() -> None:
    rows = [judged(1.0, 1, p_supported=0.9), judged(-1.0, 0, p_supported=0.2)]
    (numbers,) = measure(rows).sets
    assert numbers.brier.value == pytest.approx((0.1**2 + 0.2**2) / 2)
    assert judged(-800.0, 0).probability == 0
    assert judged(800.0, 0).probability == 1


def test_macro_is_the_plain_mean_and_the_sum_of_the_counts() -> None:
    found = measure(
        [*rows_of([1.0] * 9 + [-1.0], [-1.0] * 10, set="a"), *rows_of([1.0, -1.0], [1.0, -1.0], set="b")]
    )
    assert found.macro.balanced_accuracy.value == pytest.approx((0.95 + 0.5) / 2)
    assert found.macro.confusion.true_positives == 10
    a, b = (numbers.balanced_accuracy for numbers in found.sets)
    half = math.hypot(a.value - a.low, b.value - b.low) / 2  # type: ignore[operator]
    assert found.macro.balanced_accuracy.low == pytest.approx(0.725 - half)


def test_perfect_verdicts_have_no_interval_of_width_zero() -> None:
    (numbers,) = measure(rows_of([3.0] * 10, [-3.0] * 10)).sets
    for name in ("balanced_accuracy", "sensitivity", "accuracy", "auroc", "kappa"):
        estimate = getattr(numbers, name)
        assert estimate.value == 1
        assert estimate.high == pytest.approx(1)
        assert 0.4 < estimate.low < 0.97, name
    (worst,) = measure(rows_of([-3.0] * 10, [3.0] * 10)).sets
    assert worst.auroc.value == worst.auroc.low == 0
    assert worst.auroc.high == pytest.approx(1 - numbers.auroc.low)  # type: ignore[operator]


def test_numbers_do_not_depend_on_the_order_of_rows_or_on_other_sets() -> None:
    random = np.random.default_rng(3)
    rows = rows_of(list(random.normal(1, 1, 30)), list(random.normal(0, 1, 40)), set="a")
    others = rows_of([1.0, 2.0], [-1.0], set="b")
    alone = measure(rows).sets[0]
    assert measure([*others, *rows]).sets[0] == alone
    backwards = measure(rows[::-1]).sets[0]
    assert backwards.balanced_accuracy == alone.balanced_accuracy
    assert backwards.auroc.value == pytest.approx(alone.auroc.value)
    assert measure(rows, seed=1).sets[0].auroc != alone.auroc


# Against scipy and brute force

margins = st.floats(-20, 20).map(lambda x: round(x, 1))
labelled = st.lists(st.tuples(margins, st.integers(0, 1), st.sampled_from("ab")), min_size=1, max_size=40)


@given(labelled)
def test_auroc_is_the_share_of_pairs_in_the_right_order(rows: list[tuple[float, int, str]]) -> None:
    scores, labels = [row[0] for row in rows], [row[1] for row in rows]
    pairs = [
        (one > zero) + (one == zero) / 2
        for one, label in zip(scores, labels, strict=True)
        if label
        for zero, other in zip(scores, labels, strict=True)
        if not other
    ]
    found = auroc(scores, labels)
    if not pairs:
        assert found is None
        return
    assert found == pytest.approx(sum(pairs) / len(pairs))
    ones = [score for score, label in zip(scores, labels, strict=True) if label]
    zeros = [score for score, label in zip(scores, labels, strict=True) if not label]
    statistic = scipy.stats.mannwhitneyu(ones, zeros).statistic / len(pairs)
    assert found == pytest.approx(statistic)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
def test_kappa_is_cohens_formula_on_the_counts(tp: int, fn: int, fp: int, tn: int) -> None:
    (numbers,) = measure(
        rows_of([1.0] * tp + [-1.0] * fn, [1.0] * fp + [-1.0] * tn) or [judged(None, 1)], draws=1
    ).sets
    n = tp + fn + fp + tn
    if not (tp + fn and fp + tn):
        assert numbers.kappa.value is None
        return
    agreement = (tp + tn) / n
    chance = ((tp + fn) * (tp + fp) + (fp + tn) * (fn + tn)) / n**2
    kappa, low, high = numbers.kappa.value, numbers.kappa.low, numbers.kappa.high
    assert kappa == pytest.approx((agreement - chance) / (1 - chance), abs=1e-12)
    assert low is not None
    assert high is not None
    assert -1 <= low <= kappa + 1e-12
    assert kappa - 1e-12 <= high <= 1


@given(labelled)
def test_no_output_holds_nan_and_every_interval_holds_its_value(rows: list[tuple[float, int, str]]) -> None:
    all_rows = [judged(m, label, set=name, id=str(n)) for n, (m, label, name) in enumerate(rows)]
    found = measure(all_rows, draws=20)
    threshold = choose_threshold(all_rows)
    assert all(map(math.isfinite, numbers_in(found.model_dump()) + numbers_in(threshold.model_dump())))
    for numbers in (*found.sets, found.macro):
        for name in ("balanced_accuracy", "sensitivity", "accuracy", "kappa", "calibration_error"):
            estimate = getattr(numbers, name)
            if estimate.value is None:
                assert estimate.reason
            else:
                assert estimate.low - 1e-9 <= estimate.value <= estimate.high + 1e-9
    Measured.model_validate_json(found.model_dump_json())


@given(labelled)
def test_the_best_threshold_is_the_best_of_all(rows: list[tuple[float, int, str]]) -> None:
    all_rows = [judged(m, label, set=name, id=str(n)) for n, (m, label, name) in enumerate(rows)]
    found = choose_threshold(all_rows)
    edges = sorted({margin for margin, _, _ in rows})
    candidates = [edges[0] - 1, edges[-1] + 1, *((a + b) / 2 for a, b in pairwise(edges))]
    values = [value for t in candidates if (value := macro_balanced(rows, t)) is not None]
    if not values:
        assert found.best is None
        assert found.cross_fitted.reason
        return
    assert found.best is not None
    assert found.balanced_accuracy == pytest.approx(max(values))
    assert macro_balanced(rows, found.best) == pytest.approx(max(values))


def macro_balanced(rows: list[tuple[float, int, str]], threshold: float) -> float | None:
    found = []
    for name in "ab":
        ones = [m > threshold for m, label, own in rows if own == name and label]
        zeros = [m <= threshold for m, label, own in rows if own == name and not label]
        if ones and zeros:
            found.append((sum(ones) / len(ones) + sum(zeros) / len(zeros)) / 2)
    return sum(found) / len(found) if found else None


def test_the_bootstrap_agrees_with_scipys() -> None:
    random = np.random.default_rng(5)
    ones, zeros = random.normal(1, 1, 60), random.normal(0, 1, 80)

    def area(first: Any, second: Any, axis: int = -1) -> Any:
        return (first[..., :, None] > second[..., None, :]).mean(axis=(-1, -2))

    expected = scipy.stats.bootstrap(
        (ones, zeros),
        area,
        vectorized=True,
        method="percentile",
        batch=100,
        random_state=np.random.default_rng(1),
    ).confidence_interval
    found = estimate_auroc([*ones, *zeros], [1] * 60 + [0] * 80)
    assert found.low == pytest.approx(expected.low, abs=0.01)
    assert found.high == pytest.approx(expected.high, abs=0.01)


def test_a_share_has_the_wilson_interval() -> None:
    # Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I: 15 of 148.
    found = estimate_share(15, 148, "")
    assert (round(found.low or 0, 4), round(found.high or 0, 4)) == (0.0624, 0.1605)
    assert estimate_share(0, 0, "none there") == Estimate(value=None, reason="none there")


# Coverage


def test_the_intervals_cover_the_truth_in_nineteen_of_twenty_samples() -> None:
    random = np.random.default_rng(11)
    trials, size = 300, 60
    # Margins normal with means 1 and -0.5 and deviation 1.
    sensitivity, specificity = scipy.stats.norm.cdf(1), scipy.stats.norm.cdf(0.5)
    truth = {
        "balanced_accuracy": (sensitivity + specificity) / 2,
        "kappa": sensitivity + specificity - 1,
        "auroc": scipy.stats.norm.cdf(1.5 / math.sqrt(2)),
        "sensitivity": sensitivity,
    }
    covered = dict.fromkeys(truth, 0)
    macro = 0
    for trial in range(trials):
        rows = [
            row.model_copy(update={"set": name})
            for name in "ab"
            for row in rows_of(list(random.normal(1, 1, size)), list(random.normal(-0.5, 1, size)))
        ]
        found = measure(rows, seed=trial, draws=300)
        for name, value in truth.items():
            estimate = getattr(found.sets[0], name)
            covered[name] += estimate.low <= value <= estimate.high
        accuracy = found.macro.balanced_accuracy
        macro += accuracy.low <= truth["balanced_accuracy"] <= accuracy.high  # type: ignore[operator]
    # 0.95 with a standard error of 0.013 over 300 samples; the percentile bootstrap is a little short.
    assert all(0.91 <= count / trials <= 0.99 for count in (*covered.values(), macro)), (covered, macro)


def test_a_perfect_auroc_has_an_interval_that_covers_what_gave_rise_to_it() -> None:
    # 20 and 20 rows two and a half deviations apart: about every other sample is perfectly parted.
    random = np.random.default_rng(2)
    truth = scipy.stats.norm.cdf(3.2 / math.sqrt(2))
    perfect = [
        estimate
        for trial in range(300)
        if (
            estimate := estimate_auroc(
                [*random.normal(3.2, 1, 20), *random.normal(0, 1, 20)],
                [1] * 20 + [0] * 20,
                draws=2,
                seed=trial,
            )
        ).value
        == 1
    ]
    assert len(perfect) > 20
    assert all((estimate.low or 1) <= truth for estimate in perfect)


def test_the_calibration_error_of_a_calibrated_judge_has_an_interval_near_0() -> None:
    random = np.random.default_rng(8)
    margins = random.normal(0, 2, 400)
    labels = random.random(400) < 1 / (1 + np.exp(-margins))
    rows = [
        judged(float(margin), int(label), id=str(n))
        for n, (margin, label) in enumerate(zip(margins, labels, strict=True))
    ]
    (numbers,) = measure(rows).sets
    error = numbers.calibration_error
    assert error.low is not None
    assert error.low < 0.02
    # The naive percentile interval would begin above the sample's own error.
    assert error.value is not None
    assert error.value < 0.08


# The threshold


def test_of_several_best_stretches_the_widest_is_taken_in_its_middle() -> None:
    # Best at [0, 1) and at [2, 6): both miss one of four.
    rows = rows_of([1.0, 6.0], [0.0, 2.0])
    found = choose_threshold(rows)
    assert (found.best, found.low, found.high) == (4.0, 2.0, 6.0)
    assert found.balanced_accuracy == 0.75


def test_margins_that_tell_nothing_apart_still_give_a_threshold() -> None:
    found = choose_threshold(rows_of([1.0], [1.0]))
    assert found.balanced_accuracy == 0.5
    assert found.best in (0.0, 2.0)
    assert found.low is None or found.high is None


def test_cross_fitting_shows_the_optimism_of_noise() -> None:
    random = np.random.default_rng(4)
    rows = rows_of(list(random.normal(0, 1, 40)), list(random.normal(0, 1, 40)))
    found = choose_threshold(rows, in_force=0.5)
    assert found.in_force == 0.5
    assert len(found.folds) == 5
    assert found.balanced_accuracy is not None
    assert found.cross_fitted.value is not None
    assert found.balanced_accuracy > 0.52 > found.cross_fitted.value


def test_rows_of_one_context_are_in_one_fold() -> None:
    # One context only: whatever fold it is in, the others have nothing to choose by.
    rows = rows_of([1.0, 2.0], [-1.0, -2.0], group="the same context")
    found = choose_threshold(rows)
    assert found.best == 0.0
    assert found.cross_fitted.value is None
    assert sum(threshold is None for threshold in found.folds) == 1


def test_folds_do_not_depend_on_the_order_of_rows() -> None:
    random = np.random.default_rng(6)
    rows = rows_of(list(random.normal(1, 1, 20)), list(random.normal(0, 1, 20)))
    assert choose_threshold(rows) == choose_threshold(rows[::-1])


# Gains


def test_a_gain_is_the_difference_of_areas_with_a_paired_interval() -> None:
    random = np.random.default_rng(9)
    signal = [*random.normal(1, 1, 50), *random.normal(0, 1, 50)]
    labels = [1] * 50 + [0] * 50
    noise = random.normal(0, 5, 100)
    before = [
        judged(s + n, label, id=str(i))
        for i, (s, n, label) in enumerate(zip(signal, noise, labels, strict=True))
    ]
    after = [row.model_copy(update={"margin": s}) for row, s in zip(before, signal, strict=True)]
    gain = estimate_gain(before, after)
    assert gain.value == pytest.approx(
        auroc(signal, labels) - auroc([row.score for row in before], labels)  # type: ignore[operator]
    )
    assert gain.low is not None
    assert gain.low > 0
    same = estimate_gain(before, before)
    assert (same.value, same.low, same.high) == (0, 0, 0)
