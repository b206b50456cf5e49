"""What moves a verdict that should not: the data judged again under changes that mean the same.

    samples -> prepared once -> judged as ever, and under each axis -> flips, an unstable band, flaky gates

Some axes must be zero by construction (the same questions again, in another order, on other threads): a
bit that moves there is a fault of the machine. On the others a judge of people would say the same,
and this one may not.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from anvil_local.assess import Options, Prepared, judge_prepared, prepare
from anvil_local.calibration import estimate_share
from anvil_local.errors import NothingToJudge, UsageError
from anvil_local.gates import Gate, check_gates
from anvil_local.judge import Judge, Writing, digest
from anvil_local.metrics import METRICS, Choice
from anvil_local.records import Fingerprint, Record, Sample, SampleResult, Verdict
from anvil_local.runner import Progress
from anvil_local.samples import FORMATTERS

__all__ = ["AXES", "AxisResult", "Flip", "GateFlake", "RewordedJudge", "Stability", "measure_stability"]

AXES: Mapping[str, str] = {
    "repeat": "the same questions again",
    "order": "statements last to first",
    "threads": "another number of threads",
    "wording": "the question in other words",
    "labels": "the two answers named the other way round",
    "context": "the passages last to first",
    "formatter": "another trace formatter",
    "decomposition": "statements sampled with a seed",
    "model": "another model",
}
"""What is changed."""

ZERO = ("repeat", "order", "threads")
"""The axes on which every bit must stay."""

_JUDGE_ALONE = ("wording", "labels", "context", "formatter")
"""The axes whose flips make the flip rate: the same statement, the same judge, the same meaning."""

WORDINGS = (2, 3)
"""The numbers of the other wordings that a profile may have: `support@2`."""

_SEEDS = (1, 2, 3)
"""Seeds of the sampled decompositions."""

_RUNS = 1000
"""Simulated runs of each gate."""

_BAND = 0.95
"""The share of the flips that lie in the unstable band."""


class Flip(Record):
    """A verdict that an axis turned over."""

    axis: str
    """The axis and its variant: `wording 2`."""
    sample_id: str
    """The sample."""
    metric: str
    """The metric."""
    text: str
    """The statement, or the desired outcome."""
    old: Verdict
    """As ever."""
    new: Verdict
    """Under the axis."""


class AxisResult(Record):
    """One variant of one axis, against the verdicts as ever."""

    axis: str
    """The axis, a key of `AXES`."""
    variant: str
    """Which one: the wording's number, the formatter, the seed, the model."""
    must_be_zero: bool
    """Whether no bit may move."""
    samples: int
    """Samples judged under it."""
    questions: int
    """Verdicts in both, with a value in both."""
    flips: int
    """Of them, those that turned over."""
    moved: int
    """Verdicts in both that are not bit-equal."""
    unpaired: int
    """Statements that only one of the two has (decomposition)."""
    scores_moved: int
    """Samples whose score changed."""
    score_shift: float | None
    """Mean of the absolute changes of the sample scores."""
    gates_turned: tuple[str, ...]
    """The gate rules whose outcome changed."""

    @property
    def broken(self) -> bool:
        """Whether something moved that cannot move on a machine in order."""
        return self.must_be_zero and (self.moved > 0 or self.unpaired > 0)


class GateFlake(Record):
    """How surely a gate would say the same again."""

    rule: str
    """The rule."""
    passed: bool
    """Its outcome as ever."""
    flake: float
    """The share of simulated runs with the other outcome, each verdict turned over with the rate measured for
    its margin, one independently of the other."""
    flake_high: float
    """The upper end of its 95 % interval, for the number of simulated runs."""


class Stability(Record):
    """How firm the verdicts of a judge on this data are."""

    judge: Fingerprint
    """The judge."""
    samples: int
    """Samples judged."""
    verdicts: int
    """Verdicts as ever, with a value."""
    axes: tuple[AxisResult, ...]
    """A row a variant."""
    skipped: dict[str, str]
    """Axes that were not run, and why."""
    flip_rate: float | None
    """Flips over questions on the axes wording, context and formatter."""
    band: float | None
    """The distance of a margin from the threshold that 95 % of those flips do not exceed; None without."""
    in_band: int | None
    """Verdicts as ever within the band."""
    gates: tuple[GateFlake, ...]
    """A row a rule."""
    flips: tuple[Flip, ...]
    """Every flip, the surest verdict first."""

    @property
    def broken(self) -> bool:
        """Whether an axis moved that cannot move."""
        return any(axis.broken for axis in self.axes)


class RewordedJudge:
    """A judge that asks the same in other words."""

    def __init__(self, judge: Judge, wording: int | Literal["labels"]) -> None:
        self._judge, self._wording = judge, wording

    def _task(self, task: str) -> str:
        return f"{task}@{self._wording}" if task in ("support", "goal") else task

    @property
    def fingerprint(self) -> Fingerprint:
        """The judge's, and the number of the wording."""
        parts = {"judge": self._judge.fingerprint.model_dump(), "wording": self._wording}
        return Fingerprint(digest=digest(parts), parts=parts)

    def ask(self, task: str, fields: Mapping[str, str]) -> Verdict:
        """See `Judge.ask`."""
        return self._judge.ask(self._task(task), fields)

    def write(self, task: str, fields: Mapping[str, str], *, limit: int, seed: int | None = None) -> Writing:
        """See `Judge.write`."""
        return self._judge.write(task, fields, limit=limit, seed=seed)

    def count_tokens(self, text: str) -> int:
        """See `Judge.count_tokens`."""
        return self._judge.count_tokens(text)

    def room(self, task: str, fields: Mapping[str, str]) -> int:
        """See `Judge.room`."""
        return self._judge.room(self._task(task), fields)

    def threshold_of(self, task: str) -> float:
        """See `Judge.threshold_of`."""
        return self._judge.threshold_of(task)

    def close(self) -> None:
        """See `Judge.close`."""
        self._judge.close()


@dataclass(frozen=True)
class _Variant:
    """Samples to judge again, by their place among all, and who judges them."""

    axis: str
    name: str
    items: list[tuple[int, Prepared]]
    judge: Judge


def measure_stability(
    samples: Iterable[Sample],
    *,
    judge: Judge,
    choices: Sequence[Choice],
    options: Options,
    gates: Sequence[Gate] = (),
    max_unscored: float = 0.05,
    axes: Iterable[str] | None = None,
    others: Sequence[tuple[str, str, Judge]] = (),
    seed: int = 0,
    on_progress: Callable[[Progress], None] | None = None,
) -> Stability:
    """Judge samples as ever and under each axis.

    Args:
        samples: the data.
        judge: the judge, without a store of verdicts: every question must be asked again.
        choices: the metrics.
        options: how samples are assessed.
        gates: rules whose flake probability is wanted.
        max_unscored: as in a run.
        axes: names of `AXES`; all by default.
        others: axis (`threads` or `model`), name and judge of further engines. The first judge is closed
            before they are asked, so that one model is in memory at a time.
        seed: of the simulated runs.
        on_progress: called after every result.

    Raises:
        UsageError: an unknown axis.
        NothingToJudge: no sample fits a metric.
    """
    wanted = tuple(AXES) if axes is None else tuple(axes)
    for name in wanted:
        if name not in AXES:
            raise UsageError("no such axis", value=name, hint="known: " + ", ".join(AXES))
    prepared = [
        prepare(sample, choice.metric, judge, options)
        for sample in samples
        for choice in choices
        if choice.fits(sample)
    ]
    if not prepared:
        raise NothingToJudge("nothing to judge: no metric fits a row of the data")
    done = verdicts = 0

    def assess(item: Prepared, by: Judge) -> SampleResult:
        nonlocal done, verdicts
        result = judge_prepared(item, by)
        done, verdicts = done + 1, verdicts + result.scored + result.unscored
        if on_progress:
            on_progress(Progress(done, verdicts, "judge"))
        return result

    base = [assess(item, judge) for item in prepared]
    outcomes = [outcome.passed for outcome in check_gates(gates, base, max_unscored=max_unscored)]
    skipped: dict[str, str] = {}
    rows: list[AxisResult] = []
    flips: list[tuple[str, Flip]] = []
    asked: list[tuple[str, Verdict]] = []
    for variant in _variants(prepared, judge, options, wanted, skipped, others):
        again = {place: assess(item, variant.judge) for place, item in variant.items}
        mixed = [again.get(place, result) for place, result in enumerate(base)]
        turned = [
            gate.rule
            for gate, before, after in zip(
                gates, outcomes, check_gates(gates, mixed, max_unscored=max_unscored), strict=True
            )
            if before != after.passed
        ]
        row, found, compared = _compare(variant, base, again)
        if variant.axis in _JUDGE_ALONE:
            asked += compared
        rows.append(row.model_copy(update={"gates_turned": tuple(turned)}))
        flips += [(variant.axis, flip) for flip in found]
    threshold = {result.metric: judge.threshold_of(_task(result)) for result in base}
    counted = [flip for axis, flip in flips if axis in _JUDGE_ALONE]
    flipped = [_distance(flip.old, threshold[flip.metric]) for flip in counted]
    band = _band(flipped)
    distances = [
        _distance(verdict, threshold[result.metric])
        for result in base
        for _, verdict in _headlines(result)
        if verdict.scored
    ]
    rates = _rates([_distance(old, threshold[metric]) for metric, old in asked], flipped, band)
    return Stability(
        judge=judge.fingerprint,
        samples=len(prepared),
        verdicts=len(distances),
        axes=tuple(rows),
        skipped=skipped,
        flip_rate=len(counted) / len(asked) if asked else None,
        band=band,
        in_band=None if band is None else sum(distance <= band for distance in distances),
        gates=_flakes(gates, outcomes, base, rates, band, threshold, max_unscored, seed) if asked else (),
        flips=tuple(
            sorted((flip for _, flip in flips), key=lambda f: -_distance(f.old, threshold[f.metric]))
        ),
    )


# Variants


def _variants(
    prepared: Sequence[Prepared],
    judge: Judge,
    options: Options,
    wanted: Sequence[str],
    skipped: dict[str, str],
    others: Sequence[tuple[str, str, Judge]],
) -> Iterator[_Variant]:
    everything = list(enumerate(prepared))
    statements = [(place, item) for place, item in everything if item.decomposition]
    traces = [(place, item) for place, item in everything if item.metric.kind == "goal"]
    if "repeat" in wanted:
        yield _Variant("repeat", "again", everything, judge)
    if "order" in wanted and statements:
        items = [(place, _with_statements_reversed(item)) for place, item in statements]
        yield _Variant("order", "reversed", items, judge)
    if "wording" in wanted:
        numbers = [number for number in WORDINGS if _knows(judge, number, prepared)]
        if not numbers:
            skipped["wording"] = "the judge's prompt profile has no other wording"
        for number in numbers:
            yield _Variant("wording", str(number), everything, RewordedJudge(judge, number))
    if "labels" in wanted:
        if _knows(judge, "labels", prepared):
            yield _Variant("labels", "1 or 0", everything, RewordedJudge(judge, "labels"))
        else:
            skipped["labels"] = "the judge's prompt names no answers"
    if "context" in wanted:
        several = [(place, item) for place, item in statements if _passages(item.sample) > 1]
        if several:
            items = [(place, _with_passages_reversed(item)) for place, item in several]
            yield _Variant("context", "reversed", items, judge)
        else:
            skipped["context"] = "no sample has more than one passage"
    if "formatter" in wanted:
        if not traces:
            skipped["formatter"] = "there is no trace"
        for name in FORMATTERS if traces else ():
            if name != options.formatter:
                # What was inferred from the trace stays: the question alone sees another text.
                how = dataclasses.replace(options, formatter=name)
                items = [(place, dataclasses.replace(item, options=how)) for place, item in traces]
                yield _Variant("formatter", name, items, judge)
    if "decomposition" in wanted:
        if not statements or options.decomposition != "llm":
            skipped["decomposition"] = "no statement is written by the model"
        else:
            for number in _SEEDS:
                how = dataclasses.replace(options, seed=number)
                items = [(place, prepare(item.sample, item.metric, judge, how)) for place, item in statements]
                yield _Variant("decomposition", f"seed {number}", items, judge)
    for axis, name, other in others:
        if axis in wanted:
            judge.close()
            yield _Variant(axis, name, everything, other)
            other.close()
    for axis in ("threads", "model"):
        if axis in wanted and axis not in {other for other, _, _ in others}:
            skipped[axis] = "no other engine was given"


def _knows(judge: Judge, number: int | Literal["labels"], prepared: Sequence[Prepared]) -> bool:
    """Whether the judge has this wording for what is asked here."""
    try:
        for task in {"goal" if item.metric.kind == "goal" else "support" for item in prepared}:
            RewordedJudge(judge, number).room(task, {})
    except UsageError:
        return False
    return True


def _with_statements_reversed(item: Prepared) -> Prepared:
    assert item.decomposition is not None
    turned = item.decomposition.model_copy(update={"statements": item.decomposition.statements[::-1]})
    return dataclasses.replace(item, decomposition=turned)


def _passages(sample: Sample) -> int:
    return sum(bool(text.strip()) for text in sample.retrieved_contexts or ())


def _with_passages_reversed(item: Prepared) -> Prepared:
    passages = (item.sample.retrieved_contexts or ())[::-1]
    return dataclasses.replace(item, sample=item.sample.model_copy(update={"retrieved_contexts": passages}))


# Comparing


def _task(result: SampleResult) -> str:
    return "goal" if METRICS[result.metric].kind == "goal" else "support"


def _headlines(result: SampleResult) -> list[tuple[str, Verdict]]:
    """The verdicts that make the score, each with its text; texts are unique in a sample."""
    found = [(item.statement.text, item.verdict) for item in result.statements]
    return [*found, (result.goal.desired, result.goal.reached)] if result.goal else found


def _compare(
    variant: _Variant, base: Sequence[SampleResult], again: Mapping[int, SampleResult]
) -> tuple[AxisResult, list[Flip], list[tuple[str, Verdict]]]:
    """The row, the flips, and every question with a verdict in both: its metric and its verdict as ever."""
    flips: list[Flip] = []
    compared: list[tuple[str, Verdict]] = []
    moved = unpaired = scores_moved = 0
    shifts: list[float] = []
    for place, new in again.items():
        old = base[place]
        before, after = dict(_headlines(old)), dict(_headlines(new))
        unpaired += len(before.keys() ^ after.keys())
        for text in before.keys() & after.keys():
            was, now = before[text], after[text]
            moved += was != now
            if was.scored and now.scored:
                compared.append((old.metric, was))
                if was.value != now.value:
                    flips.append(
                        Flip(
                            axis=f"{variant.axis} {variant.name}",
                            sample_id=old.sample_id,
                            metric=old.metric,
                            text=text,
                            old=was,
                            new=now,
                        )
                    )
        scores_moved += old.score != new.score
        if old.score is not None and new.score is not None:
            shifts.append(abs(new.score - old.score))
    row = AxisResult(
        axis=variant.axis,
        variant=variant.name,
        must_be_zero=variant.axis in ZERO,
        samples=len(again),
        questions=len(compared),
        flips=len(flips),
        moved=moved,
        unpaired=unpaired,
        scores_moved=scores_moved,
        score_shift=math.fsum(shifts) / len(shifts) if shifts else None,
        gates_turned=(),
    )
    return row, flips, compared


def _distance(verdict: Verdict, threshold: float) -> float:
    """From the threshold; infinite for a verdict without a model, which nothing turns over."""
    return math.inf if verdict.margin is None else abs(verdict.margin - threshold)


def _band(distances: Sequence[float]) -> float | None:
    """The smallest of the flips' distances that 95 % of them do not exceed."""
    if not distances:
        return None
    ordered = sorted(distances)
    return ordered[math.ceil(_BAND * len(ordered)) - 1]


# Flaky gates


def _rates(distances: Sequence[float], flipped: Sequence[float], band: float | None) -> tuple[float, float]:
    """How often a verdict inside the band turned over, and one outside: (k + 1/2) / (n + 1), never quite 0.

    Args:
        distances: from the threshold, of every question of the axes.
        flipped: the same, of those that turned over.
        band: as in `Stability.band`.
    """

    def rate(inside: bool) -> float:
        asked = sum((band is not None and distance <= band) is inside for distance in distances)
        turned = sum((band is not None and distance <= band) is inside for distance in flipped)
        return (turned + 0.5) / (asked + 1)

    return rate(True), rate(False)


def _flakes(
    gates: Sequence[Gate],
    outcomes: Sequence[bool],
    base: Sequence[SampleResult],
    rates: tuple[float, float],
    band: float | None,
    threshold: Mapping[str, float],
    max_unscored: float,
    seed: int,
) -> tuple[GateFlake, ...]:
    if not gates:
        return ()

    def chance(result: SampleResult, verdict: Verdict) -> float:
        distance = _distance(verdict, threshold[result.metric])
        if math.isinf(distance):
            return 0.0
        return rates[0] if band is not None and distance <= band else rates[1]

    chances = [
        [(v.value or 0, chance(result, v)) for _, v in _headlines(result) if v.scored] for result in base
    ]
    stream = random.Random(seed)
    runs = max(100, min(_RUNS, 1_000_000 // max(1, sum(map(len, chances)))))
    turned = [0] * len(gates)
    for _ in range(runs):
        drawn = [_redraw(result, own, stream) for result, own in zip(base, chances, strict=True)]
        for number, outcome in enumerate(check_gates(gates, drawn, max_unscored=max_unscored)):
            turned[number] += outcome.passed != outcomes[number]
    found = []
    for gate, passed, count in zip(gates, outcomes, turned, strict=True):
        estimate = estimate_share(count, runs, "no run")
        assert estimate.high is not None
        found.append(GateFlake(rule=gate.rule, passed=passed, flake=count / runs, flake_high=estimate.high))
    return tuple(found)


def _redraw(
    result: SampleResult, chances: Sequence[tuple[int, float]], stream: random.Random
) -> SampleResult:
    """The result with each verdict turned over by its chance."""
    if not chances:
        return result
    supported = sum(value != (stream.random() < chance) for value, chance in chances)
    return result.model_copy(update={"supported": supported, "score": supported / len(chances)})
