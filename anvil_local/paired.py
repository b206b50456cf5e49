"""Statistics of pairs: the same questions, answered twice.

A sample is the unit that is independent of the others; its statements are not independent of each
other. So the test and the interval of a score take samples whole (sign flips, cluster bootstrap), and
McNemar's test, which takes every verdict for itself, stands beside them and decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

__all__ = [
    "Interval",
    "bootstrap_paired",
    "fewest_losses",
    "mcnemar",
    "sign_flip_test",
    "smallest_visible_drop",
]

DRAWS = 10_000
"""Resamples of the bootstrap, and random sign patterns where there are too many to try them all."""

_ALL_PATTERNS = 13
"""Up to so many samples that differ, all 2^n sign patterns are tried: 8192."""

_CELLS = 4_000_000
"""Numbers held at once while resampling: 32 MB."""


class Interval(NamedTuple):
    """Where a number may lie."""

    low: float
    high: float


def mcnemar(lost: int, gained: int) -> float:
    """The exact two-sided p of McNemar's test: are losses and gains equally likely?

    The pairs that did not change say nothing about it; of those that did, `lost` is binomial with 1/2
    (McNemar 1947; the exact form is the sign test on discordant pairs). 1 when nothing changed.

    Args:
        lost: pairs that were 1 and are 0.
        gained: pairs that were 0 and are 1.
    """
    if not lost + gained:
        return 1.0
    from scipy.stats import binomtest

    return float(binomtest(lost, lost + gained, 0.5).pvalue)


def sign_flip_test(changes: Sequence[Fraction], *, seed: int = 0, draws: int = DRAWS) -> float:
    """The one-sided p of "nothing got worse": how often chance alone gives a mean change this low.

    A randomisation test: if the two runs are alike, each sample's change could as well have had the
    other sign (Fisher 1935, "The design of experiments", section 21). Samples are taken whole, so
    it holds for any dependence inside a sample. For changes of -1, 0 and 1 it is McNemar's exact test,
    one-sided. Sums are of whole numbers, so equal sums are equal. With more than 13 samples
    that changed, `draws` random patterns are tried and the p is (1 + hits) / (1 + draws), which
    never is too small (Phipson and Smyth 2010, "Permutation p-values should never be zero").

    Args:
        changes: new score less old score, one a sample.
        seed: of the random patterns.
        draws: their number.
    """
    moved = [change for change in changes if change]
    if not moved:
        return 1.0
    import numpy as np

    common = math.lcm(*(change.denominator for change in moved))
    steps = [int(change * common) for change in moved]
    # Whole numbers beyond 2^53 would be rounded; nobody's scores have such denominators together.
    exact = sum(map(abs, steps)) < 2**53
    sizes = np.array([float(abs(step)) for step in steps])
    observed = float(sum(steps)) if exact else float(np.sum([float(step) for step in steps]))
    slack = 0.0 if exact else 1e-9 * float(sizes.sum())
    if len(moved) <= _ALL_PATTERNS:
        patterns = np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved)) & 1
        return float(((2.0 * patterns - 1) @ sizes <= observed + slack).mean())
    random = np.random.default_rng(seed)
    hits, block = 0, max(1, _CELLS // len(moved))
    for first in range(0, draws, block):
        count = min(block, draws - first)
        signs = random.integers(0, 2, size=(count, len(moved))) * 2.0 - 1
        hits += int((signs @ sizes <= observed + slack).sum())
    return (1 + hits) / (1 + draws)


def bootstrap_paired(
    rows: Sequence[Sequence[float]],
    statistic: Callable[[Floats], Floats],
    *,
    seed: int = 0,
    draws: int = DRAWS,
    level: float = 0.95,
) -> Interval | None:
    """A bootstrap interval over whole samples: both scores of a sample are drawn together.

    Percentiles, moved outwards for small numbers of samples (Hesterberg 2015, "What teachers should know
    about the bootstrap", section 5.3, the expanded percentile interval).

    Args:
        rows: shape (n, k): the numbers of each sample.
        statistic: of sums over samples, shape (draws, k), to values of shape (draws,).
        seed: of the draws.
        draws: resamples.
        level: of the interval.

    Returns:
        None for fewer than two samples.
    """
    n = len(rows)
    if n < 2:
        return None
    import numpy as np
    from scipy.stats import norm, t

    table = np.array(rows, dtype=np.float64)
    random = np.random.default_rng(seed)
    found, block = [], max(1, _CELLS // n)
    for first in range(0, draws, block):
        count = min(block, draws - first)
        weights = random.multinomial(n, np.full(n, 1 / n), size=count).astype(np.float64)
        found.append(statistic(weights @ table))
    tail = float(norm.cdf(math.sqrt(n / (n - 1)) * t.ppf((1 - level) / 2, n - 1)))
    values = np.concatenate(found)
    low, high = np.quantile(values[np.isfinite(values)], [tail, 1 - tail])
    return Interval(float(low), float(high))


def fewest_losses(level: float) -> int:
    """How many samples must at least get worse, with none better, before a drop is significant.

    The p of n losses and no gain is 2^-n.
    """
    return max(1, math.ceil(-math.log2(level)))


def smallest_visible_drop(changes: Sequence[float], *, level: float, power: float = 0.8) -> float | None:
    """The drop of the mean that a set of this size and spread would show `power` of the time.

    (z_level + z_power) * s / sqrt(n), with s the standard deviation of the changes and Student's t for z:
    the usual formula of the paired design (Miller 2024, "Adding error bars to evals", section 5).

    Args:
        changes: new score less old score, one a sample.
        level: of the one-sided test.
        power: the chance of seeing it.

    Returns:
        None when the samples show no spread, or when so few samples cannot be significant at all.
    """
    n = len(changes)
    if n < max(2, fewest_losses(level)):
        return None
    import numpy as np
    from scipy.stats import t

    spread = float(np.std(np.array(changes, dtype=np.float64), ddof=1))
    if not spread:
        return None
    return float((t.ppf(1 - level, n - 1) + t.ppf(power, n - 1)) * spread / math.sqrt(n))
