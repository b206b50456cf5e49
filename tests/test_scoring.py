"""Scores from verdicts: counts agree, nothing is NaN, and order does not matter."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil_local.records import (
    Decomposition,
    DroppedStatement,
    DropReason,
    GoalVerdicts,
    JudgedStatement,
    Reason,
    Sample,
    SampleResult,
    Statement,
    Verdict,
)
from anvil_local.scoring import (
    exact_mean,
    exact_score,
    rank_worst,
    score_goal,
    score_statements,
    summarize,
    tally,
)

VALUES = st.lists(st.sampled_from([0, 1, None]), max_size=12)
METRICS = st.sampled_from(["faithfulness", "goal_with_reference", "other"])


def verdict(value: int | None, reason: Reason | None = None, windows: int = 1) -> Verdict:
    if value is None and reason is None:
        reason = Reason.ENGINE_ERROR
    return Verdict.model_validate({"value": value, "reason": reason, "windows": windows})


def judged(*verdicts: Verdict) -> SampleResult:
    statements = tuple(
        JudgedStatement(statement=Statement(text=f"s{n}", start=0, end=1, sentence=n), verdict=item)
        for n, item in enumerate(verdicts)
    )
    return SampleResult(
        sample=Sample(id="1", source="a:1", response="s"),
        metric="faithfulness",
        score=None,
        statements=statements,
    )


def scored(values: Sequence[int | None], metric: str = "faithfulness") -> SampleResult:
    return score_statements(judged(*map(verdict, values))).model_copy(update={"metric": metric})


def goal(reached: Verdict) -> SampleResult:
    other = verdict(0)
    parts = GoalVerdicts(
        desired="d",
        desired_from="reference",
        workflow=None,
        reached=reached,
        claimed=other,
        done=other,
        formatter="plain-1",
    )
    return SampleResult(sample=Sample(id="1"), metric="goal_with_reference", score=None, goal=parts)


def test_the_score_is_supported_over_scored() -> None:
    result = scored([1, 0, None, 1])
    assert (result.supported, result.scored, result.unscored) == (2, 3, 1)
    assert result.score == 2 / 3
    assert result.reason is None


def test_no_statements_give_no_score_and_say_so() -> None:
    result = scored([])
    assert result.score is None
    assert result.reason is Reason.NO_STATEMENTS


def test_a_response_that_could_not_be_cut_keeps_its_reason() -> None:
    failed = judged().model_copy(update={"reason": Reason.ENGINE_ERROR})
    assert score_statements(failed).reason is Reason.ENGINE_ERROR


def test_scoring_twice_changes_nothing() -> None:
    for values in ([], [None], [1, 0, None], [1]):
        once = scored(values)
        assert score_statements(once) == once


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        ([Reason.PROMPT_TOO_LONG] * 2, Reason.PROMPT_TOO_LONG),
        ([Reason.PROMPT_TOO_LONG, Reason.ENGINE_ERROR], Reason.ENGINE_ERROR),
    ],
)
def test_statements_that_are_all_undecided_give_no_score(reasons: list[Reason], expected: Reason) -> None:
    result = score_statements(judged(*(verdict(None, reason) for reason in reasons)))
    assert (result.score, result.scored, result.unscored) == (None, 0, 2)
    assert result.reason is expected


@pytest.mark.parametrize("value", [0, 1])
def test_the_headline_verdict_is_the_score_of_a_goal(value: int) -> None:
    result = score_goal(goal(verdict(value)))
    assert (result.score, result.supported, result.scored, result.unscored) == (value, value, 1, 0)


def test_an_undecided_goal_has_no_score() -> None:
    result = score_goal(goal(verdict(None, Reason.PROMPT_TOO_LONG)))
    assert (result.score, result.unscored, result.reason) == (None, 1, Reason.PROMPT_TOO_LONG)


def test_a_goal_that_could_not_be_inferred_has_no_score() -> None:
    result = score_goal(goal(verdict(1)).model_copy(update={"goal": None}))
    assert (result.score, result.unscored, result.reason) == (None, 1, Reason.ENGINE_ERROR)


def test_the_exact_score_is_the_ratio_of_the_counts() -> None:
    assert exact_score(scored([1, 0, 0])) == Fraction(1, 3)
    assert exact_score(scored([])) is None


def test_the_exact_score_of_a_number_without_counts_is_its_decimal() -> None:
    bare = SampleResult(sample=Sample(id="1"), metric="m", score=0.1)
    assert exact_score(bare) == Fraction(1, 10)


def test_a_mean_of_tenths_has_no_rounding_noise() -> None:
    # 0.1 + 0.2 is not 0.3 in floats.
    results = [SampleResult(sample=Sample(id="1"), metric="m", score=score) for score in (0.1, 0.2, 0.6)]
    assert exact_mean(results) == Fraction(3, 10)
    assert summarize(results)[0].mean == 0.3


def test_nothing_to_summarize_gives_no_summary() -> None:
    assert summarize([]) == ()


def test_a_metric_without_a_scored_sample_has_no_numbers() -> None:
    (summary,) = summarize([scored([]), scored([None])])
    assert (summary.mean, summary.lowest, summary.pooled) == (None, None, None)
    assert (summary.samples, summary.scored_samples, summary.unscored_samples) == (2, 0, 2)
    assert summary.reasons == {"engine_error": 1, "no_statements": 1}


def test_unscored_samples_are_not_part_of_the_mean() -> None:
    (summary,) = summarize([scored([1]), scored([]), scored([0, 0, 1])])
    assert summary.mean == 2 / 3
    assert summary.pooled == 0.5
    assert summary.lowest == 1 / 3


def test_metrics_come_in_the_order_of_their_first_appearance() -> None:
    results = [scored([1], "b"), scored([1], "a"), scored([0], "b")]
    assert [summary.metric for summary in summarize(results)] == ["b", "a"]


@given(VALUES)
def test_the_counts_of_a_sample_agree(values: list[int | None]) -> None:
    result = scored(values)
    assert result.scored + result.unscored == len(result.statements) == len(values)
    assert result.supported <= result.scored
    assert (result.score is None) == (result.scored == 0) == (result.reason is not None)
    assert result.score is None or 0 <= result.score <= 1


@given(st.lists(st.tuples(VALUES, METRICS), max_size=15), st.randoms(use_true_random=False))
def test_summaries_agree_with_the_samples_in_any_order(
    rows: list[tuple[list[int | None], str]], shuffle: random.Random
) -> None:
    results = [scored(values, metric) for values, metric in rows]
    summaries = {summary.metric: summary for summary in summarize(results)}
    assert sum(summary.samples for summary in summaries.values()) == len(results)
    for summary in summaries.values():
        own = [result for result in results if result.metric == summary.metric]
        assert summary.samples == summary.scored_samples + summary.unscored_samples == len(own)
        assert sum(summary.reasons.values()) == summary.unscored_samples
        assert summary.scored + summary.unscored == sum(len(result.statements) for result in own)
        numbers = (summary.mean, summary.lowest, summary.pooled)
        assert all((number is None) == (summary.scored_samples == 0) for number in numbers)
        assert all(number is None or math.isfinite(number) for number in numbers)
        if summary.mean is not None:
            scores = [result.score for result in own if result.score is not None]
            assert summary.mean == pytest.approx(math.fsum(scores) / len(scores))
            assert summary.lowest == min(scores)
    shuffle.shuffle(results)
    assert {summary.metric: summary for summary in summarize(results)} == summaries


def test_the_worst_come_first_and_samples_at_one_not_at_all() -> None:
    names: dict[str, list[int | None]] = {
        "a": [1, 0],
        "b": [1],
        "c": [0],
        "d": [1, 1, 0, 0],
        "e": [],
        "f": [0, 0],
    }
    results = [
        scored(values).model_copy(update={"sample": Sample(id=name)}) for name, values in names.items()
    ]
    assert [result.sample_id for result in rank_worst(results)] == ["f", "c", "d", "a"]


def test_notes_are_counted_over_all_samples() -> None:
    cut = Decomposition(
        statements=(),
        dropped=(
            DroppedStatement(text="", sentence=0, reason=DropReason.EMPTY),
            DroppedStatement(text="x", sentence=1, reason=DropReason.DUPLICATE),
            DroppedStatement(text="x", sentence=2, reason=DropReason.DUPLICATE),
        ),
        sentences=4,
        without_claim=1,
        fallbacks=2,
    )
    first = judged(verdict(1, windows=3), verdict(None, Reason.PROMPT_TOO_LONG)).model_copy(
        update={"decomposition": cut, "flags": ("empty_context",)}
    )
    long = goal(verdict(None))
    assert long.goal is not None
    long = long.model_copy(update={"goal": long.goal.model_copy(update={"cut_tokens": 9})})
    notes = tally([first, long])
    assert (notes.sentences, notes.without_claim, notes.fallbacks) == (4, 1, 2)
    assert notes.dropped == {"duplicate": 2, "empty": 1}
    assert notes.undecided == {"engine_error": 1, "prompt_too_long": 1}
    assert (notes.windowed, notes.cut_traces) == (1, 1)
    assert notes.flags == {"empty_context": 1}
