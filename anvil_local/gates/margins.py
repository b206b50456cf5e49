"""How many verdicts would have to flip to change what a rule says of the scores.

Every flip is of one scored verdict, from 0 to 1 or back. Counts are exact: of all ways to flip, the one
with the fewest. Verdicts without a value stay without one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

__all__ = ["Counts", "flips_of_lowest", "flips_of_mean", "flips_of_pooled", "flips_of_share"]

Test = Callable[[Fraction], bool]
"""A comparison with a threshold: one of >=, >, <=, <."""


class Counts(NamedTuple):
    """A scored sample."""

    supported: int
    """Verdicts that are 1."""
    scored: int
    """Verdicts that are 0 or 1, at least one."""


def flips_of_pooled(samples: Sequence[Counts], test: Test, *, rising: bool) -> int | None:
    """For supported / scored over all samples.

    Args:
        samples: the scored samples, at least one.
        test: what the rule asks of the number.
        rising: whether larger numbers pass (>=, >).

    Returns:
        None when no flip of any number of verdicts changes the outcome.
    """
    total = Counts(sum(sample.supported for sample in samples), sum(sample.scored for sample in samples))
    return _flips_of_one(total, test, rising=rising)


def flips_of_mean(samples: Sequence[Counts], test: Test, *, rising: bool) -> int | None:
    """For the mean of the sample scores: a flip in a sample of n verdicts moves it by 1 / n of a sample.

    All flips cost the same, so the largest steps first is the fewest flips. Arguments as `flips_of_pooled`.
    """
    mean = sum((Fraction(*sample) for sample in samples), Fraction(0)) / len(samples)
    passes = test(mean)
    up = passes is not rising
    for count, size in _steps(samples, up=up):
        mean += Fraction(1 if up else -1, size * len(samples))
        if test(mean) is not passes:
            return count
    return None


def _steps(samples: Sequence[Counts], *, up: bool) -> list[tuple[int, int]]:
    """(1, n), (2, n), ...: the flips in this direction, with the verdicts of their samples."""
    sizes = sorted(
        sample.scored
        for sample in samples
        for _ in range(sample.scored - sample.supported if up else sample.supported)
    )
    return list(enumerate(sizes, start=1))


def flips_of_lowest(samples: Sequence[Counts], test: Test, *, rising: bool) -> int | None:
    """For the lowest sample score. Arguments as `flips_of_pooled`."""
    passing = [test(Fraction(*sample)) for sample in samples]
    costs = [_flips_of_one(sample, test, rising=rising) for sample in samples]
    # Larger passes: all samples must pass. Smaller passes: one is enough.
    outcome = all(passing) if rising else any(passing)
    if outcome is rising:
        # One sample that changes decides.
        known = [cost for cost in costs if cost is not None]
        return min(known, default=None)
    return _sum(cost for cost, passes in zip(costs, passing, strict=True) if passes is outcome)


def flips_of_share(samples: Sequence[Counts], inside: Test, test: Test, *, rising: bool) -> int | None:
    """For the share of samples whose score is `inside`: above a value. Arguments as `flips_of_pooled`."""
    members = [inside(Fraction(*sample)) for sample in samples]
    needed = _flips_of_one(Counts(sum(members), len(samples)), test, rising=rising)
    if needed is None:
        return None
    passes = test(Fraction(sum(members), len(samples)))
    leaving = passes is rising
    costs = sorted(
        cost
        for sample, member in zip(samples, members, strict=True)
        if member is leaving and (cost := _flips_of_one(sample, inside, rising=True)) is not None
    )
    return sum(costs[:needed]) if len(costs) >= needed else None


def _sum(costs: Iterable[int | None]) -> int | None:
    total = 0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total


def _flips_of_one(counts: Counts, test: Test, *, rising: bool) -> int | None:
    """The fewest flips after which `test` of supported / scored says the other thing."""
    passes = test(Fraction(*counts))
    step = 1 if passes is not rising else -1
    room = counts.scored - counts.supported if step > 0 else counts.supported

    def changed(flips: int) -> bool:
        return test(Fraction(counts.supported + step * flips, counts.scored)) is not passes

    if not changed(room):
        return None
    low, high = 0, room
    # The test changes once on the way: bisect for the first flip after which it has.
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if changed(middle) else (middle, high)
    return high
