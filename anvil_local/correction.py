"""What a rate would be without the judge's errors, as far as labels of people tell.

    supported verdicts of a report + sensitivity, specificity of a card -> correct_by_card
    supported verdicts of a report + labels of some of its statements   -> correct_by_labels

The first needs no label of this report, but the card's errors must be those that the judge makes here,
which nothing here can check. The second rests on labels of the very report.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from anvil_local.calibration import Estimate, LabelledRow, Numbers
from anvil_local.cards import JudgeCard
from anvil_local.errors import InputError, UsageError
from anvil_local.judge_gates import card_complaints, tasks_of
from anvil_local.records import CorrectedRate, Interval, Report, SampleResult
from anvil_local.scoring import pooled_interval
from anvil_local.stats import LEVEL, clustered_interval, normal, wilson

__all__ = [
    "correct_by_card",
    "correct_by_labels",
    "correct_report",
    "prediction_powered",
    "rogan_gladen",
]

DRAWS = 20_000
_FEW = 10


def correct_report(
    report: Report, card: JudgeCard, *, labelled_set: str | None = None, now: datetime | None = None
) -> dict[str, CorrectedRate]:
    """Correct the pooled share of each metric of a report that a judge card speaks of.

    Args:
        report: a whole one.
        card: of the same judge.
        labelled_set: the card's set that is most like the report's data; the mean over its sets if None.
        now: the time to hold the card's date against.

    Raises:
        UsageError: the card is of another judge, measured nothing that the report holds, or measured it in
            several ways without a set that says which.
    """
    for complaint in card_complaints(
        card, report.judge, tasks_of(report.settings.metrics), now or datetime.now(UTC)
    ):
        raise UsageError(
            complaint,
            hint="its errors are not those of this report: `anvil-local calibrate` with the report's judge "
            "writes its card",
        )
    found, fitting = {}, 0
    for name in report.settings.metrics:
        measured = [
            item.measured
            for item in card.measurements
            if item.task in tasks_of([name]) and item.metric in (None, name)
        ]
        if labelled_set is None:
            numbers = [item.macro for item in measured]
        else:
            numbers = [one for item in measured for one in item.sets if one.set == labelled_set]
        if len(numbers) > 1:
            raise UsageError(
                f"the card has {len(numbers)} measurements for {name}",
                hint="`anvil-local correct --set NAME` says which",
            )
        fitting += len(numbers)
        for one in numbers:
            rate = correct_by_card([result for result in report.results if result.metric == name], one)
            if rate:
                found[name] = rate
    if not fitting:
        known = sorted({one.set for item in card.measurements for one in item.measured.sets})
        raise UsageError(
            "the card measured nothing that this report holds",
            value=labelled_set,
            hint=f"its sets: {', '.join(known)}",
        )
    return found


def correct_by_card(results: Iterable[SampleResult], numbers: Numbers) -> CorrectedRate | None:
    """Correct the pooled share of results by the errors that a judge card shows.

    Args:
        results: of one metric.
        numbers: of the judge on a set of labelled rows like these, or the macro numbers.

    Returns:
        None when nothing is scored.
    """
    found = list(results)
    counts = [_judged(result) for result in found]
    judged = sum(size for _, size in counts)
    if not judged:
        return None
    rate = sum(part for part, _ in counts) / judged
    corrected, interval = rogan_gladen(
        rate, clustered_interval(counts), numbers.sensitivity, numbers.specificity
    )
    return _over_all(
        found,
        judged,
        corrected,
        interval,
        method="Rogan-Gladen",
        labels=sum(numbers.confusion.model_dump().values()),
    )


def _judged(result: SampleResult) -> tuple[int, int]:
    """Supported and scored verdicts of the model: a 0 for an empty context is no error of its."""
    verdicts = [item.verdict for item in result.statements] + ([result.goal.reached] if result.goal else [])
    values = [v.value for v in verdicts if v.value is not None and v.margin is not None]
    return sum(values), len(values)


def _over_all(
    results: list[SampleResult],
    judged: int,
    corrected: float | None,
    interval: Interval,
    *,
    method: str,
    labels: int,
) -> CorrectedRate:
    """The rate over all scored verdicts; those that stand by rule are 0 and stay so."""
    scored = sum(result.scored for result in results)
    share = judged / scored
    if corrected is not None and interval.low is not None and interval.high is not None:
        corrected, interval = (
            corrected * share,
            Interval(low=interval.low * share, high=interval.high * share),
        )
    return CorrectedRate(
        raw=sum(result.supported for result in results) / scored,
        raw_interval=pooled_interval(results),
        corrected=corrected,
        interval=interval,
        method=method,
        labels=labels,
    )


def rogan_gladen(
    rate: float, rate_interval: Interval, sensitivity: Estimate, specificity: Estimate, *, seed: int = 0
) -> tuple[float | None, Interval]:
    """The true rate behind the rate of a test with known errors (Rogan and Gladen 1978).

    (rate + specificity - 1) / (sensitivity + specificity - 1), kept within 0 and 1. The three rates are
    unsure and independent of each other. Each gets the Beta distribution of Jeffreys' prior with as many
    rows as its interval is worth (so the clusters of the rate count), and the interval of the
    corrected rate is that of its draws, seeded.

    Returns:
        None and a reason when the errors are unknown, or when draws do not tell the judge from a coin:
        its verdicts then say nothing of the true rate.
    """
    ends: tuple[Interval | Estimate, ...] = (rate_interval, sensitivity, specificity)
    for what, end in zip(("the raw rate", "sensitivity", "specificity"), ends, strict=True):
        if end.low is None or end.high is None:
            return None, Interval(low=None, high=None, reason=f"{what} has no interval: {end.reason}")
    if sensitivity.value is None or specificity.value is None:
        return None, Interval(low=None, high=None, reason="the card has no sensitivity or no specificity")
    import numpy as np

    random = np.random.default_rng(seed)
    draws = []
    for value, end in zip((rate, sensitivity.value, specificity.value), ends, strict=True):
        assert end.low is not None
        assert end.high is not None
        size = effective_size(value, end.high - end.low)
        draws.append(random.beta(size * value + 0.5, size * (1 - value) + 0.5, DRAWS))
    youden = draws[1] + draws[2] - 1
    tail = (1 - LEVEL) / 2
    # At this bound the interval would be everything or nearly so.
    if float(np.mean(youden <= 0)) > tail or sensitivity.value + specificity.value <= 1:
        return None, Interval(
            low=None,
            high=None,
            reason="the card does not tell the judge from a coin, so nothing is left to correct",
        )
    inside = youden > 0
    found = np.clip((draws[0] + draws[2] - 1)[inside] / youden[inside], 0.0, 1.0)
    low, high = np.quantile(found, [tail, 1 - tail])
    value = (rate + specificity.value - 1) / (sensitivity.value + specificity.value - 1)
    value = min(1.0, max(0.0, value))
    return value, Interval(low=min(value, float(low)), high=max(value, float(high)))


def effective_size(rate: float, width: float) -> float:
    """The number of independent rows whose Wilson interval (1927) of this rate is so wide; at least 1."""
    low, high = 1.0, 1e9
    for _ in range(100):
        middle = math.sqrt(low * high)
        ends = wilson(rate, middle, normal())
        if ends[1] - ends[0] > width:
            low = middle
        else:
            high = middle
    return low


def correct_by_labels(results: Iterable[SampleResult], rows: Sequence[LabelledRow]) -> CorrectedRate | None:
    """Correct the pooled share of a report by labels of some of its statements.

    Args:
        results: of faithfulness.
        rows: what `label` wrote for this report: ids `SAMPLE#NUMBER`, with weights.

    Returns:
        None when nothing is scored.

    Raises:
        InputError: a label that is of no statement of the report that the model judged.
    """
    found = list(results)
    verdicts: dict[str, tuple[str, int]] = {
        f"{result.sample_id}#{number}": (item.statement.text, item.verdict.value)
        for result in found
        for number, item in enumerate(result.statements, 1)
        if item.verdict.value is not None and item.verdict.margin is not None
    }
    if not verdicts:
        return None
    errors, weights = [], []
    for row in rows:
        statement, value = verdicts.get(row.id, (None, None))
        if value is None or statement != row.statement:
            raise InputError(
                "this label is of no statement that the model judged in this report",
                value=row.id,
                hint="labels must be what `anvil-local label` wrote for this very report",
            )
        errors.append(row.label - value)
        weights.append(row.weight)
    rate = sum(value for _, value in verdicts.values()) / len(verdicts)
    spread = clustered_interval(map(_judged, found))
    corrected, interval = prediction_powered(rate, spread, errors, weights)
    return _over_all(found, len(verdicts), corrected, interval, method="prediction-powered", labels=len(rows))


def prediction_powered(
    rate: float, rate_interval: Interval, errors: Sequence[int], weights: Sequence[float]
) -> tuple[float | None, Interval]:
    """The true rate from all verdicts and the errors of some (Angelopoulos and others 2023, algorithm 1).

    The raw rate plus the weighted mean of label minus verdict. The variances of both add up; that of
    the raw rate is taken from its interval, so that clusters count.

    Args:
        rate: share of all verdicts that are 1.
        rate_interval: its interval.
        errors: label minus verdict of each labelled statement: -1, 0 or 1.
        weights: how many verdicts each stands for.
    """
    if len(errors) < _FEW:
        return None, Interval(low=None, high=None, reason=f"{len(errors)} labels are fewer than {_FEW}")
    if rate_interval.low is None or rate_interval.high is None:
        return None, Interval(low=None, high=None, reason=f"the raw rate: {rate_interval.reason}")
    total = math.fsum(weights)
    mean = math.fsum(w * e for w, e in zip(weights, errors, strict=True)) / total
    # Where all labels agree with the verdicts, the next one may not: one error each way among two more rows.
    spread = [w * w * (e - mean) ** 2 for w, e in zip(weights, errors, strict=True)]
    largest = max(weights)
    extra = 2 * largest * largest if len(set(errors)) == 1 else 0.0
    variance = len(errors) / (len(errors) - 1) * (math.fsum(spread) + extra) / total**2
    variance += ((rate_interval.high - rate_interval.low) / (2 * normal())) ** 2
    half = normal() * math.sqrt(variance)
    value = min(1.0, max(0.0, rate + mean))
    return value, Interval(
        low=max(0.0, min(value, rate + mean - half)), high=min(1.0, max(value, rate + mean + half))
    )
