"""Intervals and corrections: what a rate that a noisy judge measured on few samples is worth.

Statements of one sample share a context and an author, so they are not independent: the sample is the
cluster, and every interval here rests on how much samples differ. The clustered standard error (Miller
2024, "Adding error bars to evals", section 2.2) was chosen over a cluster bootstrap: it is a formula, so
a report needs no seed and no resamples, and the bootstrap of few or of equal samples has no width at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from anvil_local.records import Interval

__all__ = ["LEVEL", "clustered_interval", "wilson"]

LEVEL = 0.95
"""The level of every interval."""


def clustered_interval(
    clusters: Iterable[tuple[float, float]], *, most: float | None = None, noun: str = "scored sample"
) -> Interval:
    """The interval of sum(parts) / sum(sizes) over independent clusters, at `LEVEL`.

    The variance is that of Miller 2024 (section 2.2), sum over clusters of (part - rate * size)^2 over
    (sum of sizes)^2, times k / (k - 1) for k clusters. It gives an effective sample size, rate * (1 - rate)
    / variance, with which the Wilson interval is taken (Korn and Graham 1998, "Confidence intervals for
    proportions with small expected number of positive counts estimated from survey data"; Franco, Little,
    Louis and Slud 2019 compare it with others), with Student's t of k - 1 degrees in place of the normal
    quantile. So it stays within 0 and 1.

    The effective size is never above `most`: negative correlation is not counted on. Where all clusters
    agree on 0 or on 1, nothing is known of the correlation, and a cluster counts as one.

    Args:
        clusters: for each cluster (part, size) with 0 <= part <= size. (score, 1) gives the interval of a
            mean of scores, (supported, scored) that of a pooled share.
        most: how many verdicts there are; the sum of sizes by default.
        noun: what a cluster is, for the reason.

    Returns:
        Ends of None with a reason when there are fewer than two clusters: one says nothing about spread.
    """
    found = [(part, size) for part, size in clusters if size > 0]
    count = len(found)
    if count < 2:
        reason = f"one {noun} does not show how {noun}s differ" if count else f"no {noun}"
        return Interval(low=None, high=None, reason=reason)
    total = math.fsum(size for _, size in found)
    rate = min(1.0, max(0.0, math.fsum(part for part, _ in found) / total))
    squares = math.fsum((part - rate * size) ** 2 for part, size in found)
    variance = count / (count - 1) * squares / total**2
    spread = rate * (1 - rate)
    if spread <= 1e-15:
        effective = float(count)
    else:
        limit = total if most is None else most
        effective = spread / variance if variance > spread / limit else limit
    low, high = wilson(rate, effective, student(count - 1))
    return Interval(low=low, high=high)


def student(degrees: int) -> float:
    """The quantile of Student's t for a two-sided interval at `LEVEL`."""
    # `scipy.special` alone loads several times faster than `scipy.stats`.
    from scipy.special import stdtrit

    return float(stdtrit(degrees, (1 + LEVEL) / 2))


def normal() -> float:
    """The quantile of the normal distribution for a two-sided interval at `LEVEL`."""
    from scipy.special import ndtri

    return float(ndtri((1 + LEVEL) / 2))


def wilson(rate: float, size: float, z: float) -> tuple[float, float]:
    """The score interval of Wilson 1927 for a sample size that need not be whole, and any quantile."""
    centre = rate + z * z / (2 * size)
    half = z * math.sqrt(max(0.0, rate * (1 - rate)) / size + (z / (2 * size)) ** 2)
    scale = 1 + z * z / size
    # Rounding must not put an end beyond the rate, which may be 0 or 1.
    return max(0.0, min(rate, (centre - half) / scale)), min(1.0, max(rate, (centre + half) / scale))
