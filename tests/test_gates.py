"""Gate rules: what is read, what is refused, and that comparisons are exact."""

from __future__ import annotations

import contextlib
import itertools
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anvil_local.errors import UsageError
from anvil_local.gates import (
    AGGREGATES,
    COMPARISONS,
    TARGETS,
    check_gates,
    is_settled,
    parse_gate,
    show_apart,
)
from anvil_local.records import (
    GateOutcome,
    JudgedStatement,
    Reason,
    Sample,
    SampleResult,
    Statement,
    Verdict,
)
from anvil_local.scoring import summarize


def sample(supported: int, scored: int, unscored: int = 0, metric: str = "faithfulness") -> SampleResult:
    return SampleResult(
        sample=Sample(id="1", source="a:1"),
        metric=metric,
        score=supported / scored if scored else None,
        reason=None if scored else Reason.NO_STATEMENTS,
        supported=supported,
        scored=scored,
        unscored=unscored,
    )


def check(rule: str, *results: SampleResult, max_unscored: float = 0.05) -> GateOutcome:
    (outcome,) = check_gates([parse_gate(rule)], results, max_unscored=max_unscored)
    return outcome


@pytest.mark.parametrize(
    ("text", "name", "comparison", "threshold"),
    [
        ("faithfulness>=0.8", "faithfulness.mean", ">=", Fraction(4, 5)),
        ("  faithfulness.pooled  >  80% ", "faithfulness.pooled", ">", Fraction(4, 5)),
        ("faithfulness.lowest == 1", "faithfulness.lowest", "==", Fraction(1)),
        ("faithfulness.unscored<=2.5 %", "faithfulness.unscored", "<=", Fraction(1, 40)),
        ("goal >= .5", "goal.mean", ">=", Fraction(1, 2)),
        ("goal_with_reference<1.0", "goal_with_reference.mean", "<", Fraction(1)),
        ("faithfulness.low >= 0.7", "faithfulness.mean.low", ">=", Fraction(7, 10)),
        ("faithfulness.pooled.high<30%", "faithfulness.pooled.high", "<", Fraction(3, 10)),
        ("faithfulness.above(50%) >= .9", "faithfulness.above(0.50)", ">=", Fraction(9, 10)),
        ("goal.at_least(1).low > 0.2", "goal.at_least(1.00).low", ">", Fraction(1, 5)),
        ("goal >= 0.5 where lang=de", "goal.mean where lang=de", ">=", Fraction(1, 2)),
        (
            'goal >= 50% where a=1 and b="x y"',
            'goal.mean where a=1 and b="x y"',
            ">=",
            Fraction(1, 2),
        ),
    ],
)
def test_a_rule_is_read(text: str, name: str, comparison: str, threshold: Fraction) -> None:
    gate = parse_gate(text)
    assert (gate.name, gate.comparison, gate.threshold) == (name, comparison, threshold)
    assert gate.rule == text.strip()


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("", "cannot read", "METRIC"),
        ("faithfulness", "cannot read", "unquoted >"),
        ("faithfulness >=", "cannot read", "METRIC"),
        (">= 0.8", "cannot read", "METRIC"),
        ("0.8 <= faithfulness", "unknown metric '0'", "known: faithfulness"),
        ("faithfullness >= 0.8", "unknown metric 'faithfullness'", "did you mean faithfulness?"),
        ("Faithfulness >= 0.8", "unknown metric 'Faithfulness'", "did you mean faithfulness?"),
        ("goal_with_refrence >= 0.8", "unknown metric", "did you mean goal_with_reference?"),
        ("faithfulness.poled >= 0.8", "unknown aggregate 'poled'", "did you mean pooled?"),
        ("faithfulness. >= 0.8", "unknown aggregate ''", "known: adjusted, lowest, mean"),
        ("faithfulness.mean.lwo >= 0.8", "unknown aggregate 'mean.lwo'", "did you mean mean?"),
        ("faithfulness.lowest.low >= 0.8", "has no interval", "mean, pooled"),
        ("faithfulness.above(1) >= 0.8", "no score is above 1", ""),
        ("faithfulness.at_least(0) >= 0.8", "every score is at_least 0", ""),
        ("judge.kappa.low >= 0.6", "about the judge", "--judge-card"),
        ("faithfulness.above() >= 0.8", "cannot read the number ''", "0.8 or 80%"),
        ("faithfulness >= 0.8 where", "cannot read the slice", "where KEY=VALUE"),
        ("faithfulness >= 0.8 where lang", "cannot read the slice", "where KEY=VALUE"),
        ("faithfulness >= 0.8 where a=b or c=d", "cannot read the slice", "where KEY=VALUE"),
        ("faithfulness => 0.8", "unknown comparison '=>'", "did you mean >=?"),
        ("faithfulness = 0.8", "unknown comparison '='", "did you mean ==?"),
        ("faithfulness ≥ 0.8", "unknown comparison '≥'", "did you mean >=?"),
        ("faithfulness != 0.8", "unknown comparison '!='", "known: >= >"),
        ("faithfulness >= high", "cannot read the number 'high'", "0.8 or 80%"),
        ("faithfulness >= 0,8", "cannot read the number", "0.8"),
        ("faithfulness >= nan", "cannot read the number", "0.8 or 80%"),
        ("faithfulness >= 1e-1", "cannot read the number", "0.8 or 80%"),
        ("faithfulness >= ٠.٨", "cannot read the number", "0.8 or 80%"),
        ("faithfulness >= -0.1", "cannot read the number", "between 0 and 1"),
        ("faithfulness >= 0.8 and 1", "cannot read the number", "0.8 or 80%"),
        ("faithfulness >= 80", "above 1", "did you mean 80%?"),
        ("faithfulness >= 120%", "above 1", "between 0 and 1"),
        ("faithfulness >= 0", "can never fail", "leave the rule out"),
        ("faithfulness <= 100%", "can never fail", "leave the rule out"),
        ("faithfulness > 1", "can never pass", "did you mean >="),
        ("faithfulness < 0.0", "can never pass", "did you mean <="),
    ],
)
def test_a_bad_rule_is_refused_with_a_hint(text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_gate(text)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert caught.value.value == text


@given(st.text(max_size=30))
def test_any_text_is_a_rule_or_a_usage_error(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert parse_gate(text).rule == text.strip()


@given(
    st.sampled_from(sorted(TARGETS)),
    st.sampled_from(sorted(AGGREGATES)),
    st.sampled_from(sorted(COMPARISONS)),
    st.decimals("0.01", "0.99", places=4),
    st.text(" ", max_size=2),
)
def test_every_rule_of_the_grammar_is_read(
    metric: str, aggregate: str, comparison: str, number: object, space: str
) -> None:
    assume(aggregate != "adjusted" or metric == "faithfulness")
    gate = parse_gate(f"{metric}.{aggregate}{space}{comparison}{space}{number}")
    assert (gate.name, gate.comparison) == (f"{metric}.{aggregate}", comparison)
    assert gate.threshold == Fraction(str(number))


@pytest.mark.parametrize(("rule", "passed"), [(">= 0.8", True), ("> 0.8", False), ("== 80%", True)])
def test_four_of_five_is_exactly_four_fifths(rule: str, passed: bool) -> None:
    assert check(f"faithfulness {rule}", sample(4, 5)).passed is passed


def test_a_mean_that_floats_would_miss_by_a_bit_meets_its_threshold() -> None:
    results = [sample(supported, 10) for supported in (3, 10, 10, 8, 9)]
    # 0.7999999999999999
    assert sum([0.3, 1.0, 1.0, 0.8, 0.9]) / 5 < 0.8
    assert check("faithfulness >= 0.8", *results).passed


@given(st.lists(st.integers(0, 20), min_size=1, max_size=30))
def test_the_true_mean_passes_and_a_hair_more_fails(counts: list[int]) -> None:
    results = [sample(count, 20) for count in counts]
    true_mean = Fraction(sum(counts), 20 * len(counts))
    outcome = check("faithfulness >= 0.5", *results)
    assert outcome.passed is (true_mean >= Fraction(1, 2))
    assert outcome.value == float(true_mean) == summarize(results)[0].mean


def test_each_aggregate_is_its_own_number() -> None:
    results = (sample(1, 2), sample(6, 6), *[sample(1, 1)] * 2, sample(0, 0))
    values = {
        aggregate: check(f"faithfulness.{aggregate} >= 0.01", *results, max_unscored=0.5).value
        for aggregate in AGGREGATES
    }
    assert values == {"adjusted": 0.875, "mean": 0.875, "pooled": 0.9, "lowest": 0.5, "unscored": 0.2}


def test_the_message_names_value_threshold_and_counts() -> None:
    outcome = check("faithfulness >= 0.8", sample(3, 4), sample(2, 4, 1), max_unscored=0.2)
    assert outcome.message == (
        "faithfulness.mean 0.62 >= 0.80: FAIL (2 samples, 5 of 8 statements supported, "
        "1 statement undecided); 95 % interval [0.02, 0.99]; 2 flipped verdicts would make it pass"
    )
    assert outcome.rule == "faithfulness >= 0.8"


def test_the_message_never_shows_two_equal_numbers_that_differ() -> None:
    outcome = check("faithfulness.pooled >= 0.8", sample(7999, 10000))
    assert outcome.message.startswith("faithfulness.pooled 0.7999 >= 0.80: FAIL")
    outcome = check("faithfulness.lowest == 1", sample(999999, 1000000))
    assert outcome.message.startswith("faithfulness.lowest 0.999999 == 1.00: FAIL")


@given(st.fractions(0, 1, max_denominator=10**6), st.decimals(0, 1, places=3))
def test_shown_numbers_compare_as_the_true_ones(value: Fraction, written: object) -> None:
    threshold = Fraction(str(written))
    shown, reference = map(Fraction, show_apart(value, threshold))
    assert reference == threshold
    assert (shown > reference, shown < reference) == (value > threshold, value < threshold)


def test_too_many_unscored_samples_fail_a_gate_by_themselves() -> None:
    results = [sample(1, 1)] * 9 + [sample(0, 0)]
    outcome = check("faithfulness >= 0.8", *results)
    assert not outcome.passed
    assert outcome.value == 1
    assert outcome.message == (
        "faithfulness.mean 1.00 >= 0.80: FAIL (10 samples, 9 of 9 statements supported, "
        "1 sample unscored: no_statements 1); 95 % interval [0.63, 1.00]; "
        "1 of 10 samples unscored is 0.10, above the limit 0.05"
    )


def test_an_unscored_share_at_the_limit_is_within_it() -> None:
    results = [sample(1, 1)] * 19 + [sample(0, 0)]
    assert check("faithfulness >= 0.8", *results).passed


def test_undecided_statements_count_against_the_limit_too() -> None:
    # Every sample has a score, yet three of four statements were never decided.
    outcome = check("faithfulness >= 0.8", *[sample(1, 1, unscored=3)] * 5)
    assert not outcome.passed
    assert "15 of 20 verdicts unscored is 0.75, above the limit 0.05" in outcome.message


def test_an_undecided_goal_is_complained_about_once() -> None:
    undecided = sample(0, 0, unscored=1, metric="goal_with_reference")
    outcome = check("goal >= 0.5", undecided, sample(1, 1, metric="goal_with_reference"))
    assert outcome.message.count("above the limit") == 1


def test_a_rule_on_unscored_sets_its_own_limit() -> None:
    results = [sample(1, 1)] * 8 + [sample(0, 0)] * 2
    assert check("faithfulness.unscored <= 0.2", *results).passed
    assert not check("faithfulness.unscored < 0.2", *results).passed


def test_a_metric_with_nothing_scored_fails_and_says_so() -> None:
    outcome = check("faithfulness < 0.5", sample(0, 0), max_unscored=1)
    assert (outcome.passed, outcome.value) == (False, None)
    assert outcome.message == (
        "faithfulness.mean none < 0.50: FAIL (1 sample, nothing scored, 1 sample unscored: no_statements 1)"
    )


@pytest.mark.parametrize("rule", ["goal >= 0.5", "goal.unscored <= 0.5", "goal.lowest < 0.5"])
def test_a_metric_that_judged_no_sample_fails(rule: str) -> None:
    outcome = check(rule, sample(1, 1))
    assert (outcome.passed, outcome.value) == (False, None)
    assert "no sample was judged by goal" in outcome.message


def test_the_group_goal_stands_for_both_goal_metrics() -> None:
    results = [
        sample(1, 1, metric="goal_with_reference"),
        sample(0, 1, metric="goal_without_reference"),
        sample(1, 1, metric="goal_without_reference"),
        sample(0, 1),
    ]
    assert check("goal >= 0.6", *results).message == (
        "goal.mean 0.67 >= 0.60: PASS (3 samples, 2 of 3 goals reached); 95 % interval [0.04, 0.99]; "
        "1 flipped verdict would make it fail"
    )
    assert check("goal_without_reference >= 0.6", *results).value == 0.5


def test_without_gates_nothing_fails() -> None:
    assert check_gates([], [sample(0, 0)]) == ()


def test_gates_are_checked_in_their_order() -> None:
    gates = [parse_gate(rule) for rule in ("faithfulness.lowest > 0.9", "faithfulness > 0.1")]
    outcomes = check_gates(gates, iter([sample(1, 2)]))
    assert [(outcome.rule, outcome.passed) for outcome in outcomes] == [
        ("faithfulness.lowest > 0.9", False),
        ("faithfulness > 0.1", True),
    ]


@pytest.mark.parametrize("limit", [-0.1, 1.1, float("nan")])
def test_a_limit_outside_zero_to_one_is_refused(limit: float) -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        check_gates([], [], max_unscored=limit)


# Slices, shares, bounds


def test_a_slice_looks_at_its_samples_alone() -> None:
    german, english = ({"lang": lang, "long": lang == "de"} for lang in ("de", "en"))
    results = [
        sample(1, 4).model_copy(update={"sample": Sample(id="1", metadata=german)}),
        sample(4, 4).model_copy(update={"sample": Sample(id="2", metadata=english)}),
        sample(4, 4),
    ]
    assert check("faithfulness >= 0.5 where lang=de", *results).value == 0.25
    assert check("faithfulness >= 0.5 where lang=en and long=false", *results).value == 1
    nobody = check("faithfulness >= 0.5 where lang=fr", *results)
    assert (nobody.passed, nobody.value) == (False, None)
    assert "no sample was judged by faithfulness where lang=fr" in nobody.message


def test_the_share_above_a_value_leaves_the_value_out() -> None:
    results = [sample(1, 2), sample(1, 1), sample(0, 1), sample(1, 2)]
    assert check("faithfulness.above(0.5) >= 0.1", *results).value == 0.25
    assert check("faithfulness.at_least(0.5) >= 0.1", *results).value == 0.75


def test_the_lower_bound_is_that_of_the_summary() -> None:
    results = [sample(4, 5), sample(3, 3), sample(1, 2), sample(4, 4)]
    interval = summarize(results)[0].mean_interval
    assert interval is not None
    outcome = check("faithfulness.mean.low >= 0.7", *results)
    assert (outcome.passed, outcome.value, outcome.interval) == (False, interval.low, interval)
    assert "95 % interval of 0.82" in outcome.message
    assert check("faithfulness.high > 0.9", *results).passed


def test_one_sample_has_no_bound_and_fails() -> None:
    outcome = check("faithfulness.low >= 0.1", sample(4, 4))
    assert (outcome.passed, outcome.value) == (False, None)
    assert "no interval: one scored sample does not show" in outcome.message


# The number of flips


def outcomes_by_flips(rule: str, counts: list[tuple[int, int]]) -> int | None:
    """By trying every way to flip."""
    start = check(rule, *(sample(*each) for each in counts)).passed
    best = None
    for after in itertools.product(*(range(scored + 1) for _, scored in counts)):
        flips = sum(abs(new - old) for new, (old, _) in zip(after, counts, strict=True))
        results = [sample(new, scored) for new, (_, scored) in zip(after, counts, strict=True)]
        if (best is None or flips < best) and check(rule, *results).passed is not start:
            best = flips
    return best


@settings(max_examples=60)
@given(
    st.sampled_from(["adjusted", "mean", "pooled", "lowest", "above(0.5)", "at_least(0.5)"]),
    st.sampled_from([">=", ">", "<=", "<"]),
    st.sampled_from(["0.2", "0.5", "0.67", "0.75", "0.9"]),
    st.lists(
        st.integers(1, 4).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1, max_size=3
    ),
)
def test_the_flips_are_the_fewest_of_all_ways_to_flip(
    aggregate: str, comparison: str, number: str, counts: list[tuple[int, int]]
) -> None:
    rule = f"faithfulness.{aggregate} {comparison} {number}"
    assert check(rule, *(sample(*each) for each in counts)).flips == outcomes_by_flips(rule, counts)


def test_verdicts_near_the_threshold_of_the_judge_are_unstable() -> None:
    margins = (-0.3, 0.5, 0.9, 1.5, None)
    judged = tuple(
        JudgedStatement(
            statement=Statement(text="It is.", start=0, end=0, sentence=0),
            verdict=Verdict(value=1, margin=margin),
        )
        for margin in margins
    )
    result = sample(5, 5).model_copy(update={"statements": judged})
    gate = parse_gate("faithfulness >= 0.8")
    assert check_gates([gate], [result])[0].unstable == 1
    (outcome,) = check_gates([gate], [result], band=0.45, thresholds={"support": 0.6})
    assert outcome.unstable == 2
    assert "2 of 5 verdicts in the unstable band of 0.45 nats" in outcome.message


# A threshold finer than the counts


@pytest.mark.parametrize(
    ("rule", "acts"),
    [
        ("faithfulness.pooled >= 0.8", ">= 1.00 (3 of 3 verdicts)"),
        ("faithfulness.pooled > 0.5", ">= 0.67 (2 of 3 verdicts)"),
        ("faithfulness.pooled <= 0.5", "<= 0.33 (1 of 3 verdicts)"),
        ("faithfulness.lowest >= 0.9", ">= 1.00 (3 of 3 verdicts a sample)"),
        ("faithfulness.above(0.5) >= 0.9", ">= 1.00 (1 of 1 samples)"),
        ("faithfulness.mean >= 0.8", ">= 1.00"),
    ],
)
def test_a_threshold_that_the_counts_cannot_express_is_warned_of(rule: str, acts: str) -> None:
    warning = check(rule, sample(2, 3)).warning
    assert warning is not None
    assert acts in warning


@given(st.integers(1, 12), st.integers(1, 99), st.sampled_from([">=", ">", "<=", "<"]))
def test_the_rule_that_it_acts_as_is_right(scored: int, percent: int, comparison: str) -> None:
    rule = f"faithfulness.pooled {comparison} {percent}%"
    passing = [count for count in range(scored + 1) if check(rule, sample(count, scored)).passed]
    warning = check(rule, sample(0, scored)).warning
    if warning:
        edge = min(passing) if comparison.startswith(">") else max(passing)
        assert f"({edge} of {scored} verdicts)" in warning
    else:
        assert (Fraction(percent, 100) * scored).denominator == 1 or scored >= 10


@pytest.mark.parametrize("rule", ["faithfulness >= 0.8", "faithfulness.pooled >= 0.8", "faithfulness == 1"])
def test_counts_that_can_express_a_threshold_give_no_warning(rule: str) -> None:
    assert check(rule, *[sample(7, 11)] * 4).warning is None


# Stopping early


FEW = st.lists(
    st.integers(0, 2).flatmap(
        lambda n: st.tuples(st.integers(0, n), st.just(n), st.integers(0, 1) if n else st.just(0))
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=150)
@given(
    st.sampled_from(["mean", "pooled", "lowest", "above(0.5)", "at_least(0.5)", "unscored", "low", "high"]),
    st.sampled_from([">=", ">", "<=", "<", "=="]),
    st.sampled_from(["0.2", "0.5", "0.75"]),
    st.sampled_from([0.05, 0.4, 1.0]),
    FEW,
    FEW,
    st.integers(0, 3),
)
def test_what_is_settled_never_changes(
    aggregate: str,
    comparison: str,
    number: str,
    limit: float,
    before: list[tuple[int, int, int]],
    after: list[tuple[int, int, int]],
    rejected: int,
) -> None:
    gates = [parse_gate(f"faithfulness.{aggregate} {comparison} {number}")]
    results = [sample(*counts) for counts in before]
    if is_settled(gates, results, remaining=len(after), max_unscored=limit, rejected=rejected):
        everything = [*results, *(sample(*counts) for counts in after)]
        now, then = (
            check_gates(gates, chosen, max_unscored=limit, rejected=rejected)
            for chosen in (results, everything)
        )
        assert now[0].passed is then[0].passed


def test_a_mean_that_cannot_be_reached_any_more_is_settled() -> None:
    gate = parse_gate("faithfulness >= 0.8")
    results = [sample(0, 1)] * 3
    assert is_settled([gate], results, remaining=11)
    # 12 of 15 are exactly 0.8.
    assert not is_settled([gate], results, remaining=12)
    assert is_settled([gate, parse_gate("faithfulness.pooled > 0.1")], results, remaining=11)
    assert not is_settled([], results, remaining=11)


def test_skipped_rows_are_unscored_samples_of_every_gate() -> None:
    results = [sample(1, 1)] * 19
    gates = [parse_gate("faithfulness >= 0.8"), parse_gate("faithfulness.unscored <= 0.05")]
    one, two = (check_gates(gates, results, rejected=rejected) for rejected in (1, 2))
    assert [outcome.passed for outcome in (*one, *two)] == [True, True, False, False]
    assert one[1].value == 0.05
    assert one[1].interval is not None
    assert one[1].interval.high > 0.05
    assert "2 of 21 samples (2 bad rows skipped) unscored" in two[0].message
