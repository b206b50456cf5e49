"""Verdicts -> scores: per sample, and over all samples of a metric.

Sums are exact fractions, so a mean depends neither on the order of the samples nor on rounding:
each float in a record is the float nearest to the true number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

from anvil_local.records import Interval, MetricSummary, Reason, Record, SampleResult, Verdict
from anvil_local.stats import clustered_interval

__all__ = [
    "Tally",
    "exact_adjusted",
    "exact_lowest",
    "exact_mean",
    "exact_pooled",
    "exact_score",
    "mean_interval",
    "pooled_interval",
    "rank_worst",
    "score_goal",
    "score_statements",
    "summarize",
    "summarize_group",
    "tally",
    "without_padding",
]


def score_statements(result: SampleResult) -> SampleResult:
    """Fill the counts and the score of a faithfulness result from its judged statements.

    The score is supported / scored. Without statements it is None with the reason
    `no_statements`, unless the result already says why it has none (its response could not be cut).
    When no statement could be decided it is None with the reason of the verdicts.
    """
    verdicts = [judged.verdict for judged in result.statements]
    scored = _score(result, verdicts, if_none=result.reason or Reason.NO_STATEMENTS)
    padded = sum(bool(judged.padding) and judged.verdict.value == 1 for judged in result.statements)
    adjusted = exact_adjusted(scored.model_copy(update={"padded": padded}))
    return scored.model_copy(update={"padded": padded, "adjusted": _nearest(adjusted)})


def score_goal(result: SampleResult) -> SampleResult:
    """Fill the counts and the score of a goal accuracy result: the headline verdict is the score.

    A result without `goal` (inferring the goal failed) counts as one undecided verdict.
    """
    missing = Verdict(value=None, reason=result.reason or Reason.ENGINE_ERROR)
    return _score(result, [result.goal.reached if result.goal else missing], if_none=Reason.ENGINE_ERROR)


def _score(result: SampleResult, verdicts: Sequence[Verdict], *, if_none: Reason) -> SampleResult:
    supported = sum(verdict.value == 1 for verdict in verdicts)
    scored = sum(verdict.scored for verdict in verdicts)
    reason = None
    if not verdicts:
        reason = if_none
    elif not scored:
        reasons = [verdict.reason or Reason.ENGINE_ERROR for verdict in verdicts]
        # The failure that a rerun may mend is the one to show first.
        reason = Reason.ENGINE_ERROR if Reason.ENGINE_ERROR in reasons else reasons[0]
    return result.model_copy(
        update={
            "score": float(Fraction(supported, scored)) if scored else None,
            "reason": reason,
            "supported": supported,
            "scored": scored,
            "unscored": len(verdicts) - scored,
        }
    )


def exact_score(result: SampleResult) -> Fraction | None:
    """The score as a fraction: supported / scored where that is the score, else its shortest decimal."""
    if result.score is None:
        return None
    if result.scored:
        ratio = Fraction(result.supported, result.scored)
        if float(ratio) == result.score:
            return ratio
    return Fraction(repr(result.score))


def exact_adjusted(result: SampleResult) -> Fraction | None:
    """The score without supported statements that are padding; None when nothing is left.

    Refused statements stay, padding or not: what the context does not bear out is a fault whatever was
    asked. So it is never above the score.
    """
    if result.goal or result.scored <= result.padded:
        return None
    return Fraction(result.supported - result.padded, result.scored - result.padded)


def without_padding(results: Iterable[SampleResult]) -> list[SampleResult]:
    """The results as if supported statements that are padding had not been written; a sample of nothing
    else is unscored."""
    return [
        result.model_copy(
            update={
                "score": _nearest(exact_adjusted(result)),
                "reason": result.reason
                or (Reason.ONLY_PADDING if 0 < result.scored <= result.padded else None),
                "supported": result.supported - result.padded,
                "scored": result.scored - result.padded,
            }
        )
        for result in results
    ]


def exact_mean(results: Iterable[SampleResult]) -> Fraction | None:
    """The mean of the sample scores; None when no sample is scored."""
    scores = _exact_scores(results)
    return sum(scores, Fraction(0)) / len(scores) if scores else None


def exact_lowest(results: Iterable[SampleResult]) -> Fraction | None:
    """The lowest sample score; None when no sample is scored."""
    return min(_exact_scores(results), default=None)


def exact_pooled(results: Iterable[SampleResult]) -> Fraction | None:
    """Supported verdicts over scored verdicts, all samples together; None when none is scored."""
    supported = scored = 0
    for result in results:
        supported += result.supported
        scored += result.scored
    return Fraction(supported, scored) if scored else None


def _exact_scores(results: Iterable[SampleResult]) -> list[Fraction]:
    return [score for result in results if (score := exact_score(result)) is not None]


def summarize(results: Iterable[SampleResult]) -> tuple[MetricSummary, ...]:
    """One summary a metric, in the order in which the metrics first appear."""
    groups: dict[str, list[SampleResult]] = {}
    for result in results:
        groups.setdefault(result.metric, []).append(result)
    return tuple(summarize_group(metric, group) for metric, group in groups.items())


def summarize_group(metric: str, results: Sequence[SampleResult]) -> MetricSummary:
    """All `results` as one summary under the name `metric`."""
    unscored = [result for result in results if result.score is None]
    reasons = Counter(str(result.reason or Reason.ENGINE_ERROR) for result in unscored)
    padded = sum(result.padded for result in results)
    # Without padding both are the same number; of goals there is none.
    bare = [] if any(result.goal for result in results) else without_padding(results)
    return MetricSummary(
        metric=metric,
        samples=len(results),
        scored_samples=len(results) - len(unscored),
        unscored_samples=len(unscored),
        mean=_nearest(exact_mean(results)),
        lowest=_nearest(exact_lowest(results)),
        pooled=_nearest(exact_pooled(results)),
        supported=sum(result.supported for result in results),
        scored=sum(result.scored for result in results),
        unscored=sum(result.unscored for result in results),
        reasons=dict(sorted(reasons.items())),
        padded=padded,
        adjusted=_nearest(exact_mean(bare)),
        only_padding=sum(
            one.score is None and two.score is not None for one, two in zip(bare, results, strict=False)
        ),
        adjusted_interval=mean_interval(bare) if bare else None,
        mean_interval=mean_interval(results),
        pooled_interval=pooled_interval(results),
    )


def mean_interval(results: Iterable[SampleResult]) -> Interval:
    """The interval of the mean of the sample scores."""
    scored = [result for result in results if result.score is not None]
    return clustered_interval(
        ((result.score or 0.0, 1) for result in scored), most=sum(max(1, result.scored) for result in scored)
    )


def pooled_interval(results: Iterable[SampleResult]) -> Interval:
    """The interval of the pooled share; the verdicts of a sample are not taken as independent."""
    return clustered_interval((result.supported, result.scored) for result in results)


def _nearest(number: Fraction | None) -> float | None:
    return None if number is None else float(number)


class Tally(Record):
    """What a reader should know about how the numbers came about, counted over all results."""

    sentences: int
    """Sentences in the responses."""
    without_claim: int
    """Sentences that make no claim."""
    fallbacks: int
    """Sentences that stand for themselves because what the model wrote did not cover them."""
    dropped: dict[str, int]
    """Candidate statements that were not judged, by reason."""
    undecided: dict[str, int]
    """Verdicts without a value, by reason; the headline verdict only for goal accuracy."""
    windowed: int
    """Verdicts whose context was cut into more than one window."""
    cut_traces: int
    """Traces of which a part was left out because they are longer than the window."""
    flags: dict[str, int]
    """How many samples carry each flag."""
    padding: dict[str, int]
    """Supported statements that are padding, by the first way in which they are."""


def tally(results: Iterable[SampleResult]) -> Tally:
    """Count the notes of all results; the dictionaries are in the order of their keys."""
    sentences = without_claim = fallbacks = windowed = cut_traces = 0
    dropped: Counter[str] = Counter()
    undecided: Counter[str] = Counter()
    flags: Counter[str] = Counter()
    padding: Counter[str] = Counter()
    for result in results:
        flags.update(set(result.flags))
        if result.decomposition:
            sentences += result.decomposition.sentences
            without_claim += result.decomposition.without_claim
            fallbacks += result.decomposition.fallbacks
            dropped.update(str(candidate.reason) for candidate in result.decomposition.dropped)
        padding.update(
            str(judged.padding[0])
            for judged in result.statements
            if judged.padding and judged.verdict.value == 1
        )
        verdicts = [judged.verdict for judged in result.statements]
        if result.goal:
            verdicts.append(result.goal.reached)
            cut_traces += result.goal.cut_tokens > 0
        for verdict in verdicts:
            windowed += verdict.windows > 1
            if not verdict.scored:
                undecided[str(verdict.reason or Reason.ENGINE_ERROR)] += 1
    return Tally(
        sentences=sentences,
        without_claim=without_claim,
        fallbacks=fallbacks,
        dropped=dict(sorted(dropped.items())),
        undecided=dict(sorted(undecided.items())),
        windowed=windowed,
        cut_traces=cut_traces,
        flags=dict(sorted(flags.items())),
        padding=dict(sorted(padding.items())),
    )


def rank_worst(results: Iterable[SampleResult]) -> tuple[SampleResult, ...]:
    """The results with a score below 1, worst first.

    Equal scores: more refused verdicts first, then the order of the data.
    """
    below = [result for result in results if result.score is not None and result.score < 1]
    return tuple(sorted(below, key=lambda result: (result.score, result.supported - result.scored)))
