"""Statistics of pairs: against exact sums, against scipy, and by simulation with a seed."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, permutation_test

from anvil_local.paired import (
    bootstrap_paired,
    fewest_losses,
    mcnemar,
    sign_flip_test,
    smallest_visible_drop,
)

CHANGES = st.lists(st.fractions(min_value=-1, max_value=1, max_denominator=12), min_size=2, max_size=9)


def test_mcnemar_looks_at_what_changed_alone() -> None:
    assert mcnemar(0, 0) == 1
    assert mcnemar(5, 0) == pytest.approx(2 * 0.5**5)
    assert mcnemar(3, 1) == pytest.approx(2 * (1 + 4) / 16)
    assert mcnemar(3, 1) == mcnemar(1, 3)


@pytest.mark.parametrize(("lost", "gained"), [(5, 0), (6, 2), (1, 4), (3, 3), (0, 7)])
def test_for_verdicts_the_sign_flip_test_is_mcnemar_one_sided(lost: int, gained: int) -> None:
    changes = [Fraction(-1)] * lost + [Fraction(1)] * gained + [Fraction(0)] * 20
    exact = binomtest(gained, lost + gained, 0.5, alternative="less").pvalue
    assert sign_flip_test(changes) == pytest.approx(exact)


@given(CHANGES)
def test_the_sign_flip_test_agrees_with_scipy(changes: list[Fraction]) -> None:
    found = permutation_test(
        (np.array([float(change) for change in changes]),),
        lambda values, axis: np.round(np.sum(values, axis=axis), 9),
        permutation_type="samples",
        alternative="less",
        vectorized=True,
        n_resamples=np.inf,
    )
    assert sign_flip_test(changes) == pytest.approx(found.pvalue)


@given(CHANGES)
def test_better_scores_never_look_more_like_a_drop(changes: list[Fraction]) -> None:
    raised = [abs(change) for change in changes]
    assert sign_flip_test(raised) >= sign_flip_test(changes)


def test_many_samples_use_random_patterns_and_the_seed_decides() -> None:
    changes = [Fraction(-1, 3)] * 14 + [Fraction(1, 3)] * 9
    exact = binomtest(9, 23, 0.5, alternative="less").pvalue
    assert sign_flip_test(changes, seed=1) == sign_flip_test(changes, seed=1)
    assert sign_flip_test(changes, seed=1) == pytest.approx(exact, abs=0.015)
    assert sign_flip_test([Fraction(-1)] * 60) == pytest.approx(1 / 10_001)


def test_scores_with_huge_denominators_are_no_trouble() -> None:
    changes = [Fraction(-1, prime) for prime in (101, 103, 107, 109, 113, 127, 131, 137, 139, 149)]
    assert sign_flip_test(changes) == pytest.approx(0.5**10)


def test_the_sign_flip_test_cries_wolf_as_often_as_its_level_says() -> None:
    # Scores of clustered statements, no true change: the error must not pass 5 % by more than chance.
    random = np.random.default_rng(20)
    wolf = 0
    for number in range(600):
        quality = random.beta(6, 3, size=30)
        old, new = (random.binomial(5, quality) for _ in range(2))
        changes = [Fraction(int(now - was), 5) for was, now in zip(old, new, strict=True)]
        wolf += sign_flip_test(changes, seed=number, draws=400) <= 0.05
    assert wolf / 600 == pytest.approx(0.05, abs=0.025)


def mean(sums: np.ndarray) -> np.ndarray:
    return sums[:, 0] / sums[:, 1]


def test_the_interval_holds_the_true_change_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(3)
    held = 0
    for number in range(400):
        quality = random.beta(6, 3, size=25)
        old = random.binomial(6, quality) / 6
        new = random.binomial(6, np.clip(quality - 0.1, 0, 1)) / 6
        truth = float(np.mean(np.clip(quality - 0.1, 0, 1) - quality))
        span = bootstrap_paired([[x, 1.0] for x in new - old], mean, seed=number, draws=500)
        assert span is not None
        held += span.low <= truth <= span.high
    assert held / 400 >= 0.93


def test_one_sample_has_no_interval() -> None:
    assert bootstrap_paired([], mean) is None
    assert bootstrap_paired([[0.5, 1.0]], mean) is None


def test_samples_that_all_moved_alike_have_an_interval_of_no_width() -> None:
    span = bootstrap_paired([[0.25, 1.0]] * 8, mean)
    assert span == (0.25, 0.25)


@pytest.mark.parametrize(("level", "fewest"), [(0.05, 5), (0.01, 7), (0.5, 1), (0.25, 2)])
def test_the_fewest_losses_are_just_enough(level: float, fewest: int) -> None:
    assert fewest_losses(level) == fewest
    assert sign_flip_test([Fraction(-1)] * fewest) <= level
    assert fewest == 1 or sign_flip_test([Fraction(-1)] * (fewest - 1)) > level


def test_the_smallest_visible_drop_is_seen_four_times_in_five() -> None:
    true_drop = 0.1203  # (1.685 + 0.851) * 0.3 / sqrt(40)
    random = np.random.default_rng(8)
    seen, promised = 0, []
    for number in range(300):
        values = random.normal(-true_drop, 0.3, size=40)
        promised.append(smallest_visible_drop(list(values), level=0.05))
        changes = [Fraction(float(value)).limit_denominator(1000) for value in values]
        seen += sign_flip_test(changes, seed=number, draws=400) <= 0.05
    assert np.mean([drop for drop in promised if drop]) == pytest.approx(true_drop, abs=0.005)
    assert seen / 300 == pytest.approx(0.8, abs=0.06)


def test_without_spread_or_with_too_few_samples_no_drop_is_promised() -> None:
    assert smallest_visible_drop([0.0] * 50, level=0.05) is None
    assert smallest_visible_drop([0.1, -0.2, 0.3, 0.1], level=0.05) is None
