"""Gates over results: value, interval, counts, and how far the outcome is from the other one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import partial

from anvil_local.errors import UsageError
from anvil_local.gates.margins import (
    Counts,
    flips_of_lowest,
    flips_of_mean,
    flips_of_pooled,
    flips_of_share,
)
from anvil_local.gates.rules import (
    AGGREGATES,
    COMPARISONS,
    SHARES,
    TARGETS,
    Gate,
    compare,
    decimals,
    show_apart,
)
from anvil_local.metrics import METRICS
from anvil_local.records import GateOutcome, Interval, MetricSummary, SampleResult, Verdict
from anvil_local.scoring import exact_score, mean_interval, pooled_interval, summarize_group
from anvil_local.stats import clustered_interval

UNSTABLE_BAND = 0.4
"""The unstable band, in nats: a verdict whose margin is nearer than this to the judge's threshold may flip
with another quantisation or another build of llama.cpp, which moved margins by up to 0.41."""


def check_gates(
    gates: Iterable[Gate],
    results: Iterable[SampleResult],
    *,
    max_unscored: float = 0.05,
    band: float = UNSTABLE_BAND,
    thresholds: Mapping[str, float] | None = None,
    rejected: int = 0,
) -> tuple[GateOutcome, ...]:
    """Check each gate against the results, in the order of the gates.

    A gate fails by itself when nothing is scored, or when more than `max_unscored` of the metric's
    samples have no score or of its verdicts have no value. The one exception is a rule on
    `unscored`: it sets its own limit. Without gates nothing fails.

    Args:
        gates: the rules.
        results: of the run.
        max_unscored: the limit of unscored samples and verdicts.
        band: a verdict is unstable when its margin is nearer than this to the judge's threshold, in nats.
        thresholds: the judge's thresholds by task, `support` and `goal`; 0 by default.
        rejected: bad rows that were skipped. Which metrics they were meant for nobody knows, so each of
            them counts as an unscored sample of every gate, also of a rule on `unscored`.
    """
    if not 0 <= max_unscored <= 1:
        raise UsageError("the limit of unscored samples must be between 0 and 1", value=max_unscored)
    limit = Fraction(repr(max_unscored))
    everything = tuple(results)
    return tuple(_check_gate(gate, everything, limit, band, thresholds or {}, rejected) for gate in gates)


def _check_gate(
    gate: Gate,
    results: Sequence[SampleResult],
    limit: Fraction,
    band: float,
    thresholds: Mapping[str, float],
    rejected: int,
) -> GateOutcome:
    chosen = gate.choose(results)
    number = number_of(gate, chosen, rejected=rejected)
    interval = interval_of(gate, chosen, rejected=rejected)
    value = number
    if gate.bound:
        end = getattr(interval, gate.bound) if interval and number is not None else None
        value = None if end is None else Fraction(end)
    summary = summarize_group(gate.metric, chosen)
    holds, shown, reference = compare(value, gate.comparison, gate.threshold)
    complaints = [] if gate.aggregate == "unscored" else _excess(summary, limit, rejected)
    passed = holds and not complaints
    flips = None if complaints or value is None else _flips(gate, chosen)
    unstable = _unstable(chosen, band, thresholds)
    message = f"{gate.name} {shown} {gate.comparison} {reference}: {'PASS' if passed else 'FAIL'}"
    message += f" ({_counts(gate, summary)})"
    for clause in (_in_words(gate, number, interval), _flips_in_words(flips, passed)):
        message += f"; {clause}" if clause else ""
    if unstable:
        message += (
            f"; {unstable} of {_plural(summary.scored, 'verdict')} in the unstable band of {band:g} nats"
        )
    for complaint in complaints:
        message += f"; {complaint}"
    return GateOutcome(
        rule=gate.rule,
        passed=passed,
        value=None if value is None else float(value),
        message=message,
        threshold=float(gate.threshold),
        interval=interval,
        flips=flips,
        unstable=unstable,
        warning=_too_fine(gate, chosen),
    )


def number_of(gate: Gate, chosen: Sequence[SampleResult], *, rejected: int = 0) -> Fraction | None:
    """The exact number that the rule is about, of the results that it selects; None without any."""
    if gate.aggregate == "unscored" and rejected:
        unscored = sum(result.score is None for result in chosen)
        return Fraction(unscored + rejected, len(chosen) + rejected)
    if gate.value is None:
        return AGGREGATES[gate.aggregate](chosen)
    scores = [score for result in chosen if (score := exact_score(result)) is not None]
    if not scores:
        return None
    return Fraction(sum(SHARES[gate.aggregate](score, gate.value) for score in scores), len(scores))


def interval_of(gate: Gate, chosen: Sequence[SampleResult], *, rejected: int = 0) -> Interval | None:
    """The interval of that number; None for the lowest score, which has none."""
    if gate.aggregate in ("adjusted", "mean"):
        return mean_interval(chosen)
    if gate.aggregate == "pooled":
        return pooled_interval(chosen)
    if gate.aggregate == "unscored":
        missing = [result.score is None for result in chosen] + [True] * rejected
        return clustered_interval(((one, 1) for one in missing), noun="sample")
    if gate.value is None:
        return None
    inside = partial(_inside, gate)
    scores = [score for result in chosen if (score := exact_score(result)) is not None]
    return clustered_interval((inside(score), 1) for score in scores)


def _inside(gate: Gate, score: Fraction) -> bool:
    assert gate.value is not None
    return SHARES[gate.aggregate](score, gate.value)


def _in_words(gate: Gate, number: Fraction | None, interval: Interval | None) -> str | None:
    if interval is None or number is None:
        return None
    of = f" of {decimals(number, 2)}" if gate.bound else ""
    if interval.low is None or interval.high is None:
        return f"no interval: {interval.reason}"
    return f"95 % interval{of} [{interval.low:.2f}, {interval.high:.2f}]"


def _flips(gate: Gate, chosen: Sequence[SampleResult]) -> int | None:
    """The fewest verdicts that must flip for the other outcome; None when unknown or when none do."""
    samples = [Counts(result.supported, result.scored) for result in chosen if result.scored]
    exact = all(
        exact_score(result) == Fraction(result.supported, result.scored) for result in chosen if result.scored
    )
    # A rule on == changes in both directions, and the end of an interval does not rise with every flip.
    if not samples or not exact or gate.bound or gate.comparison == "==" or gate.aggregate == "unscored":
        return None
    rising = gate.comparison.startswith(">")
    compare = COMPARISONS[gate.comparison]

    def test(value: Fraction) -> bool:
        return compare(value, gate.threshold)

    if gate.value is not None:
        return flips_of_share(samples, partial(_inside, gate), test, rising=rising)
    flips = {
        "adjusted": flips_of_mean,
        "lowest": flips_of_lowest,
        "mean": flips_of_mean,
        "pooled": flips_of_pooled,
    }
    return flips[gate.aggregate](samples, test, rising=rising)


def _flips_in_words(flips: int | None, passed: bool) -> str | None:
    if flips is None:
        return None
    return f"{_plural(flips, 'flipped verdict')} would make it {'fail' if passed else 'pass'}"


def verdicts_of(result: SampleResult) -> list[Verdict]:
    """The verdicts that the score is made of."""
    return [judged.verdict for judged in result.statements] + ([result.goal.reached] if result.goal else [])


def _unstable(results: Sequence[SampleResult], band: float, thresholds: Mapping[str, float]) -> int | None:
    """Verdicts in the unstable band; None when no verdict has a margin."""
    distances = [
        abs(verdict.margin - thresholds.get("goal" if result.goal else "support", 0.0))
        for result in results
        for verdict in verdicts_of(result)
        if verdict.scored and verdict.margin is not None
    ]
    return sum(distance < band for distance in distances) if distances else None


def _too_fine(gate: Gate, chosen: Sequence[SampleResult]) -> str | None:
    """A threshold with finer digits than the counts can express acts as another threshold: say which."""
    scored = [result.scored for result in chosen if result.scored]
    if gate.bound or gate.comparison == "==" or gate.aggregate == "unscored" or not scored:
        return None
    steps = {
        "adjusted": (len(scored) * math.lcm(*scored), "steps"),
        "mean": (len(scored) * math.lcm(*scored), "steps"),
        "pooled": (sum(scored), "verdicts"),
        "lowest": (max(scored), "verdicts a sample"),
    }
    count, noun = steps.get(gate.aggregate, (len(scored), "samples"))
    resolution = gate.threshold.denominator
    scaled = gate.threshold * count
    # 0.8 is meant to a tenth: eleven verdicts and more are fine enough for it, whatever they divide to.
    digits = next((digits for digits in range(23) if 10**digits % resolution == 0), 23)
    if scaled.denominator == 1 or 10**digits <= count:
        return None
    floor = scaled.numerator // scaled.denominator
    # What passes with >= or > starts one step above; with <= or < it ends at the step below.
    step = floor + 1 if gate.comparison.startswith(">") else floor
    sign = ">=" if gate.comparison.startswith(">") else "<="
    of = f"{step} of {count} {noun}"
    if gate.aggregate in ("adjusted", "mean"):
        of = f"{len(scored)} samples can reach"
    return (
        f"{gate.rule}: {count} {noun} cannot express {decimals(gate.threshold)}; the rule acts as "
        f"{sign} {decimals(Fraction(step, count), max(2, digits))} ({of})"
    )


def _excess(summary: MetricSummary, limit: Fraction, rejected: int) -> list[str]:
    """What is unscored beyond the limit, in words."""
    complaints = []
    noun = f"samples ({_plural(rejected, 'bad row')} skipped)" if rejected else "samples"
    samples = (summary.unscored_samples + rejected, summary.samples + rejected, noun)
    # One decided statement gives a sample its score, so a sample can be scored and mostly undecided.
    verdicts = (summary.unscored, summary.scored + summary.unscored, "verdicts")
    # A goal has one verdict: the same complaint would stand there twice.
    for part, whole, noun in (samples,) if samples[:2] == verdicts[:2] else (samples, verdicts):
        if whole and Fraction(part, whole) > limit:
            share, allowed = show_apart(Fraction(part, whole), limit)
            complaints.append(f"{part} of {whole} {noun} unscored is {share}, above the limit {allowed}")
    return complaints


def _counts(gate: Gate, summary: MetricSummary) -> str:
    if not summary.samples:
        slices = "".join(gate.name.partition(" where ")[1:])
        return f"no sample was judged by {gate.metric}{slices}"
    words = [_plural(summary.samples, "sample")]
    of_statements = all(METRICS[name].kind == "statements" for name in TARGETS[gate.metric])
    if summary.scored:
        noun = "statements supported" if of_statements else "goals reached"
        words.append(f"{summary.supported} of {summary.scored} {noun}")
    else:
        words.append("nothing scored")
    if summary.unscored_samples:
        reasons = ", ".join(f"{reason} {count}" for reason, count in summary.reasons.items())
        words.append(f"{_plural(summary.unscored_samples, 'sample')} unscored: {reasons}")
    if summary.unscored and of_statements:
        words.append(f"{_plural(summary.unscored, 'statement')} undecided")
    return ", ".join(words)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
