"""A run: samples -> results -> report. It takes its judge as an argument and builds nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from anvil_local._version import __version__
from anvil_local.assess import Options, Prepared, judge_prepared, prepare
from anvil_local.errors import InputError, NothingToJudge, UsageError
from anvil_local.gates import Gate, check_gates
from anvil_local.judge import Judge
from anvil_local.metrics import Choice, choose_metrics, missing_fields
from anvil_local.records import Report, Sample, SampleResult, Settings
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


def run_samples(
    samples: Iterable[Sample],
    *,
    judge: Judge,
    choices: Sequence[Choice],
    options: Options,
    on_progress: Callable[[Progress], None] | None = None,
) -> Iterator[SampleResult]:
    """Judge samples; yields results in the order of the data, a group of samples at a time.

    Raises:
        InputError: a sample that no chosen metric fits, when metrics were left to be chosen.
        NothingToJudge: no samples.
        UsageError: a metric that the user named fits no sample.
    """
    used: set[str] = set()
    done = finished = verdicts = 0

    def report(stage: str) -> None:
        if on_progress:
            on_progress(Progress(finished, verdicts, stage))

    iterator = iter(samples)
    while group := list(islice(iterator, _TOGETHER)):
        prepared: list[Prepared] = []
        for sample in group:
            fitting = [choice.metric for choice in choices if choice.fits(sample)]
            if not fitting and not any(choice.named for choice in choices):
                raise _fits_nothing(sample, choices)
            used.update(metric.name for metric in fitting)
            for metric in fitting:
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
        done += len(group)
        yield from (results[number] for number in range(len(prepared)))
    if not done:
        raise NothingToJudge("nothing to judge: the data has no rows")
    unused = [choice.metric.name for choice in choices if choice.named and choice.metric.name not in used]
    if unused:
        raise UsageError(
            f"the metric {unused[0]} fits no row of the data",
            hint="it needs " + ", ".join(next(c.metric.needs for c in choices if c.metric.name == unused[0])),
        )
    if not used:
        raise NothingToJudge("nothing to judge: no chosen metric fits any row")


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
    data: Sequence[str] = (),
    created: datetime | None = None,
    complete: bool = True,
    rejected: Sequence[str] = (),
) -> Report:
    """Scores and gates over finished results."""
    outcomes = check_gates(gates, results, max_unscored=settings.max_unscored)
    return Report(
        version=__version__,
        created=(created or datetime.now(UTC)).isoformat(timespec="seconds"),
        data=tuple(data),
        judge=judge.fingerprint,
        settings=settings,
        summaries=summarize(results),
        gates=outcomes,
        passed=complete and all(outcome.passed for outcome in outcomes),
        complete=complete,
        rejected=tuple(rejected),
        results=tuple(results),
    )


def evaluate(
    samples: Iterable[Sample | Mapping[str, Any] | Any],
    *,
    judge: Judge,
    metrics: Iterable[str] | None = None,
    gates: Iterable[str | Gate] = (),
    max_unscored: float = 0.05,
    options: Options | None = None,
    on_progress: Callable[[Progress], None] | None = None,
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

    Raises:
        InputError: a sample that cannot be read or judged.
        NothingToJudge: no samples.
        UsageError: an unknown metric or gate, or a named metric that fits no sample.
    """
    from anvil_local.gates import parse_gate

    options = options or Options()
    created = datetime.now(UTC)
    rules = [parse_gate(gate) if isinstance(gate, str) else gate for gate in gates]
    choices = choose_metrics(metrics)
    results = list(
        run_samples(
            as_samples(samples), judge=judge, choices=choices, options=options, on_progress=on_progress
        )
    )
    settings = make_settings(results, options, rules, max_unscored)
    return build_report(results, judge=judge, settings=settings, gates=rules, created=created)


def make_settings(
    results: Sequence[SampleResult], options: Options, gates: Sequence[Gate], max_unscored: float
) -> Settings:
    """The settings record of a run, with the metrics that did run."""
    return Settings(
        metrics=tuple(dict.fromkeys(result.metric for result in results)),
        decomposition=options.decomposition,
        language=options.language,
        seed=options.seed,
        formatter=options.formatter,
        gates=tuple(gate.rule for gate in gates),
        max_unscored=max_unscored,
    )
