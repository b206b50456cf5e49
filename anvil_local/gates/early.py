"""Whether the outcome of a run can still change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from anvil_local.gates.check import number_of
from anvil_local.gates.rules import COMPARISONS, Gate
from anvil_local.records import SampleResult

__all__ = ["is_settled"]


def is_settled(
    gates: Iterable[Gate],
    results: Sequence[SampleResult],
    *,
    remaining: int,
    max_unscored: float = 0.05,
    rejected: int = 0,
) -> bool:
    """Whether no result of the remaining samples can change whether all gates pass.

    True when some gate fails whatever comes, or when all pass whatever comes. Every remaining sample may
    get any score or none, with any number of verdicts, so little can pass early: the share of unscored
    samples may still rise, and a pooled share can end up anywhere. What is settled holds for the results
    so far as well, so they can stand for the whole.

    Args:
        gates: the rules.
        results: so far.
        remaining: results still to come: one a sample and metric that fits it.
        max_unscored: as `check_gates`.
        rejected: as `check_gates`.
    """
    limit = Fraction(repr(max_unscored))
    standings = [_standing(gate, results, remaining, limit, rejected) for gate in gates]
    return False in standings or (bool(standings) and all(standings))


def _standing(
    gate: Gate, results: Sequence[SampleResult], remaining: int, limit: Fraction, rejected: int
) -> bool | None:
    """False or True: it fails or passes whatever comes. None: open."""
    chosen = gate.choose(results)
    low, high = _range(gate, chosen, remaining, rejected)
    can_pass, must_pass = _can_and_must(gate, low, high)
    unscored = sum(result.score is None for result in chosen) + rejected
    samples = len(chosen) + rejected
    if gate.aggregate != "unscored" and chosen:
        if Fraction(unscored, samples + remaining) > limit:
            return False
        # Undecided verdicts have no limit in number while samples are to come.
        scored = sum(result.scored for result in chosen)
        undecided = sum(result.unscored for result in chosen)
        too_many = scored + undecided > 0 and Fraction(undecided, scored + undecided) > limit
        must_pass = must_pass and not remaining and not too_many and Fraction(unscored, samples) <= limit
        if not remaining and not must_pass:
            return False
    if not can_pass:
        return False
    # One scored sample has no interval, which fails.
    return True if must_pass and chosen and not gate.bound else None


def _range(
    gate: Gate, chosen: Sequence[SampleResult], remaining: int, rejected: int
) -> tuple[Fraction, Fraction]:
    """What the number can still become."""
    now = number_of(gate, chosen, rejected=rejected)
    nothing = (Fraction(0), Fraction(1))
    if gate.aggregate == "pooled" and remaining:
        return nothing
    if now is None:
        return nothing
    if gate.aggregate == "lowest":
        return (Fraction(0) if remaining else now), now
    counted = (
        len(chosen) + rejected if gate.aggregate == "unscored" else sum(r.score is not None for r in chosen)
    )
    if gate.aggregate == "pooled":
        return now, now
    whole = counted + remaining
    return now * counted / whole, (now * counted + remaining) / whole


def _can_and_must(gate: Gate, low: Fraction, high: Fraction) -> tuple[bool, bool]:
    """Whether some number of the range passes, and whether all do."""
    compare, t = COMPARISONS[gate.comparison], gate.threshold
    # An interval holds its number: its low end is anywhere below it, its high end anywhere above.
    if gate.bound == "low":
        low = Fraction(0)
    elif gate.bound == "high":
        high = Fraction(1)
    if gate.comparison == "==":
        return low <= t <= high, low == t == high
    ends = (compare(low, t), compare(high, t))
    return any(ends), all(ends)
