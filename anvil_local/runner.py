"""A run: samples -> results -> report. It takes judge and executor as arguments and builds nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Protocol

from anvil_local._version import __version__
from anvil_local.assess import Options, Prepared, check_shape, judge_prepared, prepare
from anvil_local.errors import InputError, NothingToJudge, UsageError
from anvil_local.gates import UNSTABLE_BAND, Gate, JudgeGate, check_gates
from anvil_local.judge import Judge
from anvil_local.metrics import GROUPS, Choice, Metric, choose_metrics, missing_fields
from anvil_local.padding import check_padding
from anvil_local.records import GateOutcome, Report, Sample, SampleResult, Settings, Shard
from anvil_local.samples import as_samples
from anvil_local.scoring import summarize

_TOGETHER = 32
"""Samples prepared before they are judged: adapters change twice per so many samples, not twice each."""


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    finished: int
    """Results finished: one a sample and metric."""
    verdicts: int
    """Verdicts given so far."""
    stage: str
    """`prepare` or `judge`."""


class Executor(Protocol):
    """Who judges the samples of a run: `run_samples` does it in this process.

    Another one may spread them over processes and machines. It gives the same results in the same order,
    reads the data as it goes, and raises the same errors.
    """

    def __call__(
        self,
        samples: Iterable[Sample],
        *,
        judge: Judge,
        choices: Sequence[Choice],
        options: Options,
        on_progress: Callable[[Progress], None] | None = None,
        part: bool = False,
    ) -> Iterator[SampleResult]:
        """See `run_samples`."""
        ...


def run_samples(
    samples: Iterable[Sample],
    *,
    judge: Judge,
    choices: Sequence[Choice],
    options: Options,
    on_progress: Callable[[Progress], None] | None = None,
    part: bool = False,
) -> Iterator[SampleResult]:
    """Judge samples; yields results in the order of the data, a group of samples at a time.

    `part` says that these are not all samples of the data, so a metric may fit none of them.

    Raises:
        InputError: a sample that no metric fits, when metrics were left to be chosen.
        NothingToJudge: no samples.
        UsageError: a metric that the user named fits no sample. Known only when all samples are judged;
            `check_fit` knows it before.
    """
    fit = Fit(choices)
    finished = verdicts = 0

    def report(stage: str) -> None:
        if on_progress:
            on_progress(Progress(finished, verdicts, stage))

    iterator = iter(samples)
    while group := list(islice(iterator, _TOGETHER)):
        prepared: list[Prepared] = []
        for sample in group:
            for metric in fit.metrics_for(sample):
                prepared.append(prepare(sample, metric, judge, options))
                report("prepare")
        results: dict[int, SampleResult] = {}
        # Samples that share a context follow each other, so it is decoded once.
        order = sorted(range(len(prepared)), key=lambda i: (prepared[i].metric.name, prepared[i].context, i))
        for number in order:
            results[number] = result = judge_prepared(prepared[number], judge)
            finished += 1
            verdicts += result.scored + result.unscored
            report("judge")
        yield from (results[number] for number in range(len(prepared)))
    if not part:
        fit.check()


def check_fit(samples: Iterable[Sample], choices: Sequence[Choice]) -> int:
    """Find out before the first verdict whether the chosen metrics fit the data.

    Returns:
        The number of results that the run will have.

    Raises:
        InputError, NothingToJudge, UsageError: as `run_samples`.
    """
    fit = Fit(choices)
    count = sum(len(fit.metrics_for(sample)) for sample in samples)
    fit.check()
    return count


class Fit:
    """Which metrics judge which samples."""

    def __init__(self, choices: Sequence[Choice]) -> None:
        self._choices = choices
        self._used: set[str] = set()
        self._samples = 0

    def metrics_for(self, sample: Sample) -> list[Metric]:
        """The metrics of one sample. Raises `InputError` when there are none and none was named."""
        self._samples += 1
        fitting = [choice.metric for choice in self._choices if choice.fits(sample)]
        if not fitting and not any(choice.asked for choice in self._choices):
            raise _fits_nothing(sample, self._choices)
        self._used.update(metric.name for metric in fitting)
        return fitting

    def check(self) -> None:
        """Raise if there was nothing to judge, or nothing for a name that the user gave."""
        if not self._samples:
            raise NothingToJudge("nothing to judge: the data has no rows")
        for choice in self._choices:
            if choice.asked and self._used.isdisjoint(GROUPS.get(choice.asked, (choice.asked,))):
                raise UsageError(
                    f"the metric {choice.asked} fits no row of the data",
                    hint="it needs " + " and ".join(choice.metric.needs),
                )


def _fits_nothing(sample: Sample, choices: Sequence[Choice]) -> InputError:
    kind = "goal" if sample.is_trace else "statements"
    metric = next((choice.metric for choice in choices if choice.metric.kind == kind), choices[0].metric)
    missing = missing_fields(metric, sample)
    return InputError(
        f"no metric fits this row: {metric.name} needs {', '.join(missing)}",
        where=sample.source or f"sample {sample.id}",
        field=missing[0] if missing else None,
        hint="an answer needs `response` and `retrieved_contexts`; a trace needs `user_input` as messages",
    )


def build_report(
    results: Sequence[SampleResult],
    *,
    judge: Judge,
    settings: Settings,
    gates: Sequence[Gate] = (),
    judge_outcomes: Sequence[GateOutcome] = (),
    data: Sequence[str] = (),
    created: datetime | None = None,
    complete: bool = True,
    rejected: Sequence[str] = (),
    not_judged: int = 0,
    shard: Shard | None = None,
) -> Report:
    """Scores and gates over finished results; what became of rules about the judge stands first.

    The gates of a `shard` are left to `shards.merge`.
    """
    outcomes = check_gates(
        () if shard else gates,
        results,
        max_unscored=settings.max_unscored,
        band=settings.unstable_band,
        rejected=len(rejected),
        thresholds={task: judge.threshold_of(task) for task in ("support", "goal")},
    )
    return Report(
        version=__version__,
        created=(created or datetime.now(UTC)).isoformat(timespec="seconds"),
        data=tuple(data),
        judge=judge.fingerprint,
        settings=settings,
        summaries=summarize(results),
        gates=(*judge_outcomes, *outcomes),
        passed=complete and all(outcome.passed for outcome in (*judge_outcomes, *outcomes)),
        complete=complete,
        rejected=tuple(rejected),
        not_judged=not_judged,
        shard=shard,
        results=tuple(results),
    )


def join_reports(
    reports: Sequence[Report],
    *,
    results: Sequence[SampleResult],
    gates: Sequence[GateOutcome],
    complete: bool,
) -> Report:
    """One report of several of the same judge and settings; `results` and `gates` are all of theirs."""
    first = reports[0]
    return first.model_copy(
        update={
            "created": min(report.created for report in reports),
            "settings": first.settings.model_copy(
                update={"metrics": tuple(dict.fromkeys(result.metric for result in results))}
            ),
            "summaries": summarize(results),
            "gates": tuple(gates),
            "passed": complete and all(gate.passed for gate in gates),
            "complete": complete,
            "shard": None,
            "corrected": {},
            "results": tuple(results),
        }
    )


def evaluate(
    samples: Iterable[Sample | Mapping[str, Any] | Any],
    *,
    judge: Judge,
    metrics: str | Iterable[str] | None = None,
    gates: str | Iterable[str | Gate] = (),
    max_unscored: float = 0.05,
    options: Options | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    executor: Executor | None = None,
) -> Report:
    """Judge samples and report.

    Args:
        samples: `Sample` records, or mappings and Ragas sample objects with the same field names.
        judge: see `judge.GgufJudge.load`.
        metrics: names from `metrics.METRICS` or `metrics.GROUPS`; None judges each sample by what fits it.
        gates: rules such as `faithfulness>=0.8`.
        max_unscored: the share of unscored samples above which a gate fails by itself.
        options: how responses are cut and traces are formatted.
        on_progress: called after every piece of work.
        executor: who judges; this process by default, a Ray cluster with `distributed.RayExecutor`.

    Raises:
        InputError: a sample that cannot be read or judged.
        NothingToJudge: no samples.
        UsageError: an unknown metric or gate, or a named metric that fits no sample.
    """
    from anvil_local.gates import parse_gate

    options = options or Options()
    created = datetime.now(UTC)
    gates = [gates] if isinstance(gates, str) else gates
    rules = [parse_gate(gate) if isinstance(gate, str) else gate for gate in gates]
    choices = choose_metrics(metrics)
    # Everything that can be refused is refused before the first verdict.
    rows = list(as_samples(samples))
    check_fit(rows, choices)
    if options.shape:
        check_shape(judge)
    if options.padding:
        check_padding(judge)
    judging = executor or run_samples
    results = list(judging(rows, judge=judge, choices=choices, options=options, on_progress=on_progress))
    settings = make_settings(results, options, rules, max_unscored)
    return build_report(results, judge=judge, settings=settings, gates=rules, created=created)


def make_settings(
    results: Sequence[SampleResult],
    options: Options,
    gates: Sequence[Gate | JudgeGate],
    max_unscored: float,
    band: float = UNSTABLE_BAND,
) -> Settings:
    """The settings record of a run, with the metrics that did run."""
    return Settings(
        metrics=tuple(dict.fromkeys(result.metric for result in results)),
        decomposition=options.decomposition,
        language=options.language,
        seed=options.seed,
        formatter=options.formatter,
        shape=options.shape,
        padding=options.padding,
        gates=tuple(gate.rule for gate in gates),
        max_unscored=max_unscored,
        unstable_band=band,
    )
