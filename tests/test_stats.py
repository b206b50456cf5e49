"""Intervals: what the formulas give, and, by simulation, that they cover what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from anvil_local.stats import clustered_interval, wilson

RUNS = 800
# Below 0.95 by less than three standard errors of a coverage over 800 runs, 0.023.
LOWEST_COVERAGE = 0.93


def simulate(seed: int, rate: float, correlation: float, samples: int) -> list[tuple[int, int]]:
    """Samples of 1 to 6 statements whose rate is drawn from a beta distribution of this correlation."""
    random = np.random.default_rng(seed)
    sizes = random.integers(1, 7, size=samples)
    if correlation:
        weight = (1 - correlation) / correlation
        rates = random.beta(rate * weight, (1 - rate) * weight, size=samples)
    else:
        rates = np.full(samples, rate)
    return [(int(random.binomial(n, p)), int(n)) for n, p in zip(sizes, rates, strict=True)]


def covers(low: float | None, high: float | None, rate: float) -> bool:
    assert low is not None
    assert high is not None
    return low <= rate <= high


@pytest.mark.parametrize("correlation", [0.0, 0.2, 0.6])
@pytest.mark.parametrize(("rate", "samples"), [(0.5, 10), (0.8, 30), (0.95, 30), (0.8, 100)])
def test_the_clustered_interval_covers_the_true_rate(rate: float, samples: int, correlation: float) -> None:
    pooled = mean = 0
    for seed in range(RUNS):
        data = simulate(seed, rate, correlation, samples)
        found = clustered_interval(data)
        pooled += covers(found.low, found.high, rate)
        found = clustered_interval([(part / size, 1) for part, size in data], most=sum(n for _, n in data))
        mean += covers(found.low, found.high, rate)
    assert pooled / RUNS >= LOWEST_COVERAGE
    assert mean / RUNS >= LOWEST_COVERAGE


def test_an_interval_that_takes_statements_as_independent_does_not_cover() -> None:
    naive = 0
    for seed in range(RUNS):
        data = simulate(seed, 0.8, 0.6, 100)
        found = binomtest(sum(part for part, _ in data), sum(size for _, size in data))
        interval = found.proportion_ci(method="wilson")
        naive += covers(interval.low, interval.high, 0.8)
    assert naive / RUNS < 0.85


def test_scores_that_hardly_differ_have_a_narrow_interval() -> None:
    found = clustered_interval([(0.5, 1)] * 20 + [(0.6, 1)] * 20, most=400)
    assert found.low is not None
    assert found.high is not None
    # The spread of 0.05 over 40 samples would allow 0.016; 400 verdicts allow 0.05.
    assert found.high - found.low < 0.11


@pytest.mark.parametrize(("part", "rate"), [(0, 0.0), (3, 1.0)])
def test_samples_that_all_agree_count_as_one_verdict_each(part: int, rate: float) -> None:
    found = clustered_interval([(part, 3)] * 5)
    assert covers(found.low, found.high, rate)
    assert found.low is not None
    assert found.high is not None
    # Student's t of 4 degrees is 2.776: 5 / (5 + 2.776^2) of the way.
    assert found.high - found.low == pytest.approx(7.7086 / (5 + 7.7086), abs=1e-3)


def test_one_sample_has_no_interval_and_says_why() -> None:
    found = clustered_interval([(3, 4)])
    assert (found.low, found.high) == (None, None)
    assert found.reason == "one scored sample does not show how scored samples differ"
    assert clustered_interval([]).reason == "no scored sample"
    assert clustered_interval([(0, 0), (1, 2)]).low is None


def test_two_samples_leave_nearly_everything_open() -> None:
    found = clustered_interval([(1, 1), (0, 1)])
    assert found.low is not None
    assert found.high is not None
    assert found.low < 0.01
    assert found.high > 0.99


@given(st.lists(st.integers(1, 9).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=2))
def test_the_interval_holds_the_rate_and_stays_between_0_and_1(data: list[tuple[int, int]]) -> None:
    found = clustered_interval(data)
    rate = sum(part for part, _ in data) / sum(size for _, size in data)
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= rate + 1e-12
    assert rate - 1e-12 <= found.high <= 1
    assert found == clustered_interval(list(reversed(data)))


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_that_of_scipy_for_whole_sizes(data: tuple[int, int]) -> None:
    part, whole = data
    expected = binomtest(part, whole).proportion_ci(method="wilson")
    assert wilson(part / whole, whole, 1.959963984540054) == pytest.approx(
        (expected.low, expected.high), abs=1e-9
    )
