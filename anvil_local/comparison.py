"""Two reports of the same data, compared: what changed, and is it more than chance?

    Report, Report -> pairs (by sample, by statement) -> MetricDiff, SampleDiff -> Diff -> Regression

A sample is paired with the one that has its id and asks the same; a statement with the one of its sample
that has the same words. Nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from anvil_local.errors import InputError, NothingToJudge, UsageError
from anvil_local.paired import (
    Interval,
    bootstrap_paired,
    fewest_losses,
    mcnemar,
    sign_flip_test,
    smallest_visible_drop,
)
from anvil_local.records import Record, Report, Role, Sample, SampleResult, Verdict
from anvil_local.replay import compare_fingerprints
from anvil_local.reports.text import plural
from anvil_local.scoring import exact_mean, exact_pooled, exact_score

__all__ = [
    "Change",
    "Diff",
    "MetricDiff",
    "Regression",
    "SampleDiff",
    "check_regression",
    "compare_reports",
]

POWER = 0.8
"""The chance at which a drop counts as visible."""


class Change(Record):
    """A statement (or a goal) whose verdict is not the same in both reports."""

    text: str
    """The statement, or the desired outcome."""
    old: Verdict | None
    """The verdict in BASE; None when the statement is new."""
    new: Verdict | None
    """The verdict in NEW; None when the statement is gone."""

    @property
    def flipped(self) -> bool:
        """Whether it was 0 and is 1, or was 1 and is 0."""
        values = {None if verdict is None else verdict.value for verdict in (self.old, self.new)}
        return values == {0, 1}

    @property
    def distance(self) -> float | None:
        """How far the margin moved, in nats, with its sign."""
        if self.old is None or self.new is None or self.old.margin is None or self.new.margin is None:
            return None
        return self.new.margin - self.old.margin


class SampleDiff(Record):
    """A sample that is in both reports and did not come out the same."""

    sample_id: str
    """The sample."""
    metric: str
    """The metric."""
    old_score: float | None
    """The score in BASE; None when unscored."""
    new_score: float | None
    """The score in NEW; None when unscored."""
    response_changed: bool
    """Whether the answer, or the trace, is another."""
    context_changed: bool
    """Whether the retrieved passages are others; False for traces."""
    changes: tuple[Change, ...]
    """Flips, statements that came, statements that went, and verdicts that became decided or undecided."""

    @property
    def change(self) -> float:
        """New score less old score; 0 when one of them is missing."""
        return 0.0 if self.old_score is None or self.new_score is None else self.new_score - self.old_score


class MetricDiff(Record):
    """A metric in both reports. Every number but the counts of what is not paired is of pairs alone."""

    metric: str
    """The metric."""
    pairs: int
    """Samples that are in both."""
    only_base: int
    """Samples that only BASE has."""
    only_new: int
    """Samples that only NEW has."""
    scored_pairs: int
    """Pairs with a score in both: the changes of scores are theirs."""
    became_unscored: int
    """Pairs whose score NEW lost."""
    became_scored: int
    """Pairs whose score NEW gained."""
    old_mean: float | None
    """The mean of the scored pairs in BASE."""
    new_mean: float | None
    """The mean of the scored pairs in NEW."""
    change: float | None
    """New mean less old mean."""
    low: float | None
    """The lower end of its 95 % interval: a bootstrap over whole samples; None for fewer than two."""
    high: float | None
    """The upper end."""
    old_pooled: float | None
    """Supported over scored verdicts of the scored pairs in BASE."""
    new_pooled: float | None
    """The same in NEW."""
    pooled_low: float | None
    """The lower end of the 95 % interval of new pooled less old pooled."""
    pooled_high: float | None
    """The upper end."""
    worse: int
    """Scored pairs with a lower score in NEW."""
    better: int
    """Scored pairs with a higher score in NEW."""
    p_drop: float | None
    """How often chance alone gives a mean change this low (one-sided sign-flip test over samples)."""
    visible_drop: float | None
    """The drop of the mean that this many samples, spread like these, would have shown 80 % of the time at
    the level of the comparison; None when no sample moved, or so few cannot show any."""
    verdict_pairs: int
    """Statements (goals) in both, decided in both."""
    lost: int
    """Of them, those that were 1 and are 0."""
    gained: int
    """Of them, those that were 0 and are 1."""
    p_mcnemar: float
    """Exact two-sided McNemar of lost and gained: takes each verdict for itself, although those of one
    sample hang together."""
    appeared: int
    """Statements of pairs that only NEW has."""
    appeared_supported: int
    """Of them, those with verdict 1."""
    disappeared: int
    """Statements of pairs that only BASE has."""
    disappeared_supported: int
    """Of them, those with verdict 1."""


class Diff(Record):
    """What NEW changed against BASE."""

    base: str
    """The fingerprint of BASE's judge."""
    new: str
    """The fingerprint of NEW's judge."""
    measuring: dict[str, tuple[Any, Any]]
    """What differs in how it was measured: path -> (BASE, NEW). Empty: any change is the data's."""
    metrics: tuple[MetricDiff, ...]
    """A row a metric, in the order of BASE."""
    samples: tuple[SampleDiff, ...]
    """The pairs that changed, the largest drop first."""
    only_base: tuple[str, ...]
    """`METRIC/ID` of samples that only BASE has."""
    only_new: tuple[str, ...]
    """`METRIC/ID` of samples that only NEW has."""
    contradictions: int
    """Questions that are the same to the letter, asked of the same judge, with other bits in the answer.
    This cannot happen to a deterministic judge: a report was edited, or the machine is at fault."""
    level: float
    """The level of the one-sided test of a drop."""
    incomplete: tuple[str, ...]
    """Which of the two was interrupted: `BASE`, `NEW`."""


class Regression(Record):
    """The rule `--fail-on regression`, for one metric."""

    metric: str
    """The metric."""
    failed: bool
    """Whether it got worse by more than chance, or cannot be told."""
    message: str
    """One line for people, with the level and the smallest drop that could have been seen."""


class _Asked(NamedTuple):
    """One question of a result."""

    text: str
    exact: tuple[Any, ...]
    verdict: Verdict
    headline: bool


_Key = tuple[str, str]


def compare_reports(
    base: Report, new: Report, *, allow_other_judge: bool = False, level: float = 0.05, seed: int = 0
) -> Diff:
    """Pair two reports and measure what changed.

    Args:
        base: the earlier report.
        new: the later one.
        allow_other_judge: compare although judge or settings differ.
        level: of the one-sided test of a drop, for `MetricDiff.visible_drop`.
        seed: of the resampling.

    Raises:
        UsageError: judge or settings differ, and that is not allowed.
        InputError: a report that holds a sample twice under one metric.
        NothingToJudge: no sample is in both.
    """
    measuring = _measuring(base, new)
    if measuring and not allow_other_judge:
        first = ", ".join(f"{path}: {old} -> {now}" for path, (old, now) in list(measuring.items())[:4])
        more = f", and {len(measuring) - 4} more" if len(measuring) > 4 else ""
        raise UsageError(
            f"the two reports were not measured alike, so their scores cannot be compared: {first}{more}",
            hint="judge BASE again as NEW was, or see them side by side with --allow-other-judge",
        )
    before, after = _by_key(base, "BASE"), _by_key(new, "NEW")
    keys = [key for key in before if key in after and _same_input(before[key].sample, after[key].sample)]
    if not keys:
        raise NothingToJudge(
            "nothing to compare: no sample is in both reports",
            hint="samples are paired by their id and their question; give the rows an `id`",
        )
    paired = set(keys)
    only_base = [key for key in before if key not in paired]
    only_new = [key for key in after if key not in paired]
    samples: list[SampleDiff] = []
    questions: dict[str, list[tuple[_Asked | None, _Asked | None]]] = {}
    contradictions = 0
    for key in keys:
        found = list(_pair_questions(before[key], after[key]))
        questions.setdefault(key[0], []).extend(found)
        contradictions += 0 if measuring else sum(_contradict(old, now) for old, now in found)
        sample = _sample_diff(before[key], after[key], found)
        if sample.changes or sample.old_score != sample.new_score:
            samples.append(sample)
    metrics = tuple(
        _metric_diff(
            metric,
            [(before[key], after[key]) for key in keys if key[0] == metric],
            questions.get(metric, []),
            only=(sum(key[0] == metric for key in only_base), sum(key[0] == metric for key in only_new)),
            level=level,
            seed=seed,
        )
        for metric in dict.fromkeys(key[0] for key in [*before, *after])
    )
    return Diff(
        base=base.judge.digest,
        new=new.judge.digest,
        measuring=measuring,
        metrics=metrics,
        samples=tuple(sorted(samples, key=lambda sample: sample.change)),
        only_base=tuple("/".join(key) for key in only_base),
        only_new=tuple("/".join(key) for key in only_new),
        contradictions=contradictions,
        level=level,
        incomplete=tuple(name for name, report in (("BASE", base), ("NEW", new)) if not report.complete),
    )


def check_regression(diff: Diff, *, max_unscored: float = 0.05) -> tuple[Regression, ...]:
    """Whether each metric got worse: the mean of its pairs fell by more than chance at the diff's level.

    A metric fails by itself when nothing can be compared, and when more than `max_unscored` of its
    scored samples lost their score: a drop must not hide there.
    """
    return tuple(_regression(row, diff.level, max_unscored) for row in diff.metrics)


def _regression(row: MetricDiff, level: float, max_unscored: float) -> Regression:
    scored_before = row.scored_pairs + row.became_unscored
    if row.p_drop is None or row.change is None:
        why = "no sample with a score in both reports"
        return Regression(metric=row.metric, failed=True, message=f"{row.metric}: FAIL, {why}")
    dropped = row.change < 0 and row.p_drop <= level
    pairs = plural(row.scored_pairs, "sample")
    said = f"change {row.change:+.3f} in {pairs}, p {row.p_drop:.4f}, level {level:g}"
    limits = []
    fewest = fewest_losses(level)
    if row.scored_pairs < fewest:
        limits.append(f"{pairs} cannot show any drop at this level, it takes {fewest}")
    elif row.visible_drop is None:
        limits.append(f"no spread to judge by; a drop shows from {fewest} samples that get worse")
    else:
        limits.append(f"a drop of {row.visible_drop:.3f} would have shown {POWER:.0%} of the time")
    hidden = scored_before and row.became_unscored > max_unscored * scored_before
    if hidden:
        limits.append(f"{row.became_unscored} of {plural(scored_before, 'sample')} lost their score")
    failed = dropped or bool(hidden)
    word = "FAIL" if failed else "PASS"
    return Regression(
        metric=row.metric, failed=failed, message=f"{row.metric}: {word}, {said}; {'; '.join(limits)}"
    )


# Pairs


def _by_key(report: Report, name: str) -> dict[_Key, SampleResult]:
    found: dict[_Key, SampleResult] = {}
    for result in report.results:
        key = (result.metric, result.sample_id)
        if key in found:
            raise InputError(
                f"{name} holds two samples with this id",
                field="id",
                value=result.sample_id,
                where=result.source,
            )
        found[key] = result
    return found


def _same_input(old: Sample, new: Sample) -> bool:
    """Whether two samples ask the same: ids that are row numbers shift when a row is put in."""
    return _input(old) == _input(new)


def _input(sample: Sample) -> str | None:
    if isinstance(sample.user_input, tuple):
        return next((message.content for message in sample.user_input if message.role is Role.HUMAN), None)
    return sample.user_input


def _questions(result: SampleResult) -> Iterator[_Asked]:
    sample = result.sample
    for item in result.statements:
        text = item.statement.text
        yield _Asked(text, (text, sample.retrieved_contexts), item.verdict, headline=True)
    if result.goal:
        goal = result.goal
        for name in ("reached", "claimed", "done"):
            exact = (name, goal.desired, sample.user_input)
            yield _Asked(goal.desired, exact, getattr(goal, name), headline=name == "reached")


def _pair_questions(old: SampleResult, new: SampleResult) -> Iterator[tuple[_Asked | None, _Asked | None]]:
    before, after = _numbered(old), _numbered(new)
    for key in dict.fromkeys([*before, *after]):
        yield before.get(key), after.get(key)


def _numbered(result: SampleResult) -> dict[tuple[str, int], _Asked]:
    """Questions by their words; the second of the same words has another number."""
    found: dict[tuple[str, int], _Asked] = {}
    for asked in _questions(result):
        # A goal is one question, however the outcome is worded; so are its two parts.
        name = str(asked.exact[0]) if result.goal else _words(asked.text)
        number = 0
        while (name, number) in found:
            number += 1
        found[name, number] = asked
    return found


def _words(text: str) -> str:
    return " ".join(text.split()).rstrip(" .。").casefold()


def _contradict(old: _Asked | None, new: _Asked | None) -> bool:
    return old is not None and new is not None and old.exact == new.exact and old.verdict != new.verdict


def _sample_diff(
    old: SampleResult, new: SampleResult, found: Sequence[tuple[_Asked | None, _Asked | None]]
) -> SampleDiff:
    changes = tuple(
        Change(
            text=(now or was).text,  # type: ignore[union-attr]  # one of the two is there
            old=was.verdict if was else None,
            new=now.verdict if now else None,
        )
        for was, now in found
        if (now or was).headline  # type: ignore[union-attr]
        and (was is None or now is None or was.verdict.value != now.verdict.value)
    )
    trace = old.sample.is_trace
    return SampleDiff(
        sample_id=old.sample_id,
        metric=old.metric,
        old_score=old.score,
        new_score=new.score,
        response_changed=old.sample.user_input != new.sample.user_input
        if trace
        else old.sample.response != new.sample.response,
        context_changed=not trace and old.sample.retrieved_contexts != new.sample.retrieved_contexts,
        changes=changes,
    )


# Numbers


def _metric_diff(
    metric: str,
    pairs: Sequence[tuple[SampleResult, SampleResult]],
    questions: Sequence[tuple[_Asked | None, _Asked | None]],
    *,
    only: tuple[int, int],
    level: float,
    seed: int,
) -> MetricDiff:
    scored = [(old, new) for old, new in pairs if old.score is not None and new.score is not None]
    changes: list[Fraction] = []
    for old, new in scored:
        was, now = exact_score(old), exact_score(new)
        assert was is not None
        assert now is not None
        changes.append(now - was)
    floats = [float(change) for change in changes]
    span = bootstrap_paired(
        [[change, 1.0] for change in floats], lambda sums: sums[:, 0] / sums[:, 1], seed=seed
    )
    pooled = bootstrap_paired(
        [[old.supported, old.scored, new.supported, new.scored] for old, new in scored],
        lambda sums: sums[:, 2] / sums[:, 3] - sums[:, 0] / sums[:, 1],
        seed=seed,
    )
    old_mean, new_mean = (exact_mean(pair[side] for pair in scored) for side in (0, 1))
    both = [
        (old.verdict.value, new.verdict.value)
        for old, new in questions
        if old and new and old.headline and old.verdict.scored and new.verdict.scored
    ]
    lost, gained = both.count((1, 0)), both.count((0, 1))
    appeared = [new.verdict.value for old, new in questions if old is None and new and new.headline]
    disappeared = [old.verdict.value for old, new in questions if new is None and old and old.headline]
    return MetricDiff(
        metric=metric,
        pairs=len(pairs),
        only_base=only[0],
        only_new=only[1],
        scored_pairs=len(scored),
        became_unscored=sum(old.score is not None and new.score is None for old, new in pairs),
        became_scored=sum(old.score is None and new.score is not None for old, new in pairs),
        old_mean=_float(old_mean),
        new_mean=_float(new_mean),
        change=None if old_mean is None or new_mean is None else float(new_mean - old_mean),
        low=_end(span, 0),
        high=_end(span, 1),
        old_pooled=_float(exact_pooled(old for old, _ in scored)),
        new_pooled=_float(exact_pooled(new for _, new in scored)),
        pooled_low=_end(pooled, 0),
        pooled_high=_end(pooled, 1),
        worse=sum(change < 0 for change in changes),
        better=sum(change > 0 for change in changes),
        p_drop=sign_flip_test(changes, seed=seed) if changes else None,
        visible_drop=smallest_visible_drop(floats, level=level, power=POWER),
        verdict_pairs=len(both),
        lost=lost,
        gained=gained,
        p_mcnemar=mcnemar(lost, gained),
        appeared=len(appeared),
        appeared_supported=appeared.count(1),
        disappeared=len(disappeared),
        disappeared_supported=disappeared.count(1),
    )


def _float(number: Fraction | None) -> float | None:
    return None if number is None else float(number)


def _end(span: Interval | None, number: int) -> float | None:
    return None if span is None else span[number]


# How it was measured

_SETTINGS = ("decomposition", "language", "seed", "formatter")
"""The settings that can change a score."""


def _measuring(base: Report, new: Report) -> dict[str, tuple[Any, Any]]:
    """What differs in judge and settings."""
    found: dict[str, tuple[Any, Any]] = {
        f"judge.{path}": values for path, values in compare_fingerprints(base.judge, new.judge).items()
    }
    if base.judge.digest != new.judge.digest and not found:
        found["judge"] = (base.judge.short, new.judge.short)
    for name in _SETTINGS:
        old, now = getattr(base.settings, name), getattr(new.settings, name)
        if old != now:
            found[f"settings.{name}"] = (old, now)
    return found
