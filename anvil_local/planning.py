"""What a gate on a pooled share is worth before anything is judged: quorum, false alarms, false passes.

A statement is truly supported at a rate; the judge flips a verdict at another. A sample's statements go
wrong together (one context, one judge): within a sample the number of 1s is beta-binomial with the given
correlation, and samples are independent of each other. With samples of one size the mean of the sample
scores is the pooled share, so all of this holds for `faithfulness.mean` as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from anvil_local.errors import UsageError
from anvil_local.records import Record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = ["Plan", "Row", "chances", "count_distribution", "make_plan", "observed_rate", "quorum"]

SEARCHED = 3000
"""The largest number of statements that is looked at for a wanted flake rate."""

_CHART = (3, 5, 10, 20, 50, 100, 200, 500, 1000)


class Row(Record):
    """A number of statements and what the gate does with it."""

    statements: int
    """Statements."""
    quorum: int
    """The fewest 1s that pass."""
    false_fail: float
    """The chance that a good build fails."""
    false_pass: float
    """The chance that a bad build passes."""


class Plan(Record):
    """What a threshold means for a number of statements."""

    threshold: float
    """What the gate asks for, as `>=`."""
    true_rate: float
    """The share of supported statements of a build that should pass."""
    bad_rate: float
    """That of a build that should fail."""
    flip_rate: float
    """The chance that the judge says the other thing, for either label."""
    correlation: float
    """Of two verdicts in one sample."""
    per_sample: int
    """Statements of a sample."""
    design_effect: float
    """1 + (per_sample - 1) * correlation (Kish 1965): so many times the variance of independent verdicts."""
    observed_rate: float
    """The share of 1s to expect of the good build: flips pull every rate towards one half."""
    observed_bad_rate: float
    """That of the bad build."""
    here: Row
    """For the number of statements asked about."""
    chart: tuple[Row, ...]
    """For other numbers of statements."""
    wanted: float
    """The flake rate that is wanted: of false fails and of false passes alike."""
    needed: int | None
    """The fewest statements from which on both chances stay at or below it; None: see `reason`."""
    needed_samples: int | None
    """The same in samples."""
    reason: str | None = None
    """Why no number of statements does."""


def quorum(threshold: Fraction, statements: int) -> int:
    """The fewest supported statements that meet `>= threshold`: 3 of 3 for 0.8, 16 of 20."""
    return -(-threshold.numerator * statements // threshold.denominator)


def observed_rate(rate: float, flip_rate: float) -> float:
    """The share of 1s when a share `rate` is true and every verdict flips at `flip_rate`."""
    return rate * (1 - flip_rate) + (1 - rate) * flip_rate


def sample_distribution(rate: float, size: int, correlation: float) -> Floats:
    """The chance of 0 to `size` ones in a sample, shape (size + 1,): binomial, or beta-binomial.

    The beta distribution with a + b = (1 - correlation) / correlation gives two verdicts this correlation
    (Griffiths 1973, "Maximum likelihood estimation for the beta-binomial distribution").
    """
    import numpy as np
    from scipy.stats import betabinom, binom

    counts = np.arange(size + 1)
    if not 1e-12 < rate < 1 - 1e-12:
        # Both distributions overflow this close to an end, where all verdicts are alike.
        found = counts == (size if rate > 0.5 else 0)
    elif correlation == 0:
        found = binom.pmf(counts, size, rate)
    elif correlation == 1:
        found = np.zeros(size + 1)
        found[0], found[-1] = 1 - rate, rate
    else:
        weight = (1 - correlation) / correlation
        found = betabinom.pmf(counts, size, rate * weight, (1 - rate) * weight)
    return np.asarray(found, dtype=np.float64)


def count_distribution(rate: float, statements: int, correlation: float = 0, per_sample: int = 1) -> Floats:
    """The chance of 0 to `statements` ones over all samples, shape (statements + 1,); the last is smaller."""
    import numpy as np

    found = np.ones(1)
    for size in _sizes(statements, per_sample):
        found = np.convolve(found, sample_distribution(rate, size, correlation))
    return found


def _sizes(statements: int, per_sample: int) -> Iterator[int]:
    full, rest = divmod(statements, per_sample)
    yield from [per_sample] * full
    if rest:
        yield rest


def chances(
    threshold: Fraction, statements: int, *, good: float, bad: float, correlation: float, per_sample: int
) -> Row:
    """The row of one number of statements; `good` and `bad` are observed rates."""
    least = quorum(threshold, statements)
    passing = count_distribution(good, statements, correlation, per_sample)
    failing = count_distribution(bad, statements, correlation, per_sample)
    return Row(
        statements=statements,
        quorum=least,
        # Each from the terms of its own tail: 1 minus the other would round away small chances.
        false_fail=min(1.0, float(passing[:least].sum())),
        false_pass=min(1.0, float(failing[least:].sum())),
    )


def make_plan(
    threshold: Fraction,
    *,
    statements: int,
    true_rate: float,
    bad_rate: float | None = None,
    flip_rate: float = 0.0,
    correlation: float = 0.0,
    per_sample: int = 1,
    wanted: float = 0.01,
) -> Plan:
    """Plan a gate `>= threshold` on a pooled share.

    Args:
        threshold: above 0, at most 1.
        statements: how many statements are expected.
        true_rate: the share that is supported in a build that should pass: at least the threshold.
        bad_rate: that of a build that should fail, below the threshold; by default as far below the
            threshold as the true rate is above it, and at least 0.05.
        flip_rate: from `stability`, or the share of wrong verdicts on a judge card; below one half.
        correlation: of two verdicts in one sample, 0 to 1.
        per_sample: statements of a sample.
        wanted: the largest chance of a false fail and of a false pass.

    Raises:
        UsageError: a number out of range.
    """
    if not 0 < threshold <= 1:
        raise UsageError("the threshold must be above 0 and at most 1", value=str(threshold))
    if bad_rate is None:
        bad_rate = max(0.0, float(threshold) - max(0.05, true_rate - float(threshold)))
    limits = (
        ("statements", statements, 1, 10 * SEARCHED),
        ("per-sample", per_sample, 1, SEARCHED),
        ("true-rate", true_rate, 0, 1),
        ("bad-rate", bad_rate, 0, 1),
        ("correlation", correlation, 0, 1),
    )
    for name, value, low, high in limits:
        if not low <= value <= high:
            raise UsageError(f"--{name} must be between {low} and {high}", value=value)
    if not 0 <= flip_rate < 0.5:
        raise UsageError("--flip-rate must be at least 0 and below 0.5: a coin flips half", value=flip_rate)
    if not 0 < wanted < 0.5:
        raise UsageError("--flake-rate must be above 0 and below 0.5", value=wanted)
    if not bad_rate < threshold <= true_rate:
        raise UsageError(
            "the true rate must meet the threshold, and the bad rate must miss it",
            value=f"bad {bad_rate:g}, threshold {float(threshold):g}, true {true_rate:g}",
            hint="the chance of a false fail is that of a build that should pass",
        )
    good, bad = observed_rate(true_rate, flip_rate), observed_rate(bad_rate, flip_rate)

    def row(number: int) -> Row:
        return chances(threshold, number, good=good, bad=bad, correlation=correlation, per_sample=per_sample)

    needed, reason = _needed(threshold, good, bad, correlation, per_sample, wanted)
    return Plan(
        threshold=float(threshold),
        true_rate=true_rate,
        bad_rate=bad_rate,
        flip_rate=flip_rate,
        correlation=correlation,
        per_sample=per_sample,
        design_effect=1 + (per_sample - 1) * correlation,
        observed_rate=good,
        observed_bad_rate=bad,
        here=row(statements),
        chart=tuple(row(number) for number in _CHART),
        wanted=wanted,
        needed=needed,
        needed_samples=None if needed is None else -(-needed // per_sample),
        reason=reason,
    )


def _needed(
    threshold: Fraction, good: float, bad: float, correlation: float, per_sample: int, wanted: float
) -> tuple[int | None, str | None]:
    """The fewest statements, in whole samples, from which on up to SEARCHED both chances stay small."""
    import numpy as np

    if not bad < threshold <= good:
        return None, (
            f"flips pull the good build to {good:.3f} and the bad one to {bad:.3f}: the threshold does not "
            "part them, and more statements only make it surer to go wrong"
        )
    passing, failing = (sample_distribution(rate, per_sample, correlation) for rate in (good, bad))
    good_counts = bad_counts = np.ones(1)
    last_too_flaky = 0
    number = 0
    while number < SEARCHED:
        number += per_sample
        good_counts = np.convolve(good_counts, passing)
        bad_counts = np.convolve(bad_counts, failing)
        least = quorum(threshold, number)
        if good_counts[:least].sum() > wanted or bad_counts[least:].sum() > wanted:
            last_too_flaky = number
    if last_too_flaky == number:
        return None, f"more than {number} statements"
    return last_too_flaky + per_sample, None
