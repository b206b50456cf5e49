"""`anvil-local run`: judge a file of samples."""

from __future__ import annotations

import sys
from contextlib import closing, nullcontext, redirect_stdout
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from anvil_local.cli import console, options
from anvil_local.errors import ExitCode, ModelError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anvil_local.cards import JudgeCard
    from anvil_local.config import Config
    from anvil_local.judge import Judge
    from anvil_local.records import GateOutcome, Report, SampleResult
    from anvil_local.runner import Executor


_CLUSTER = "Cluster"


class Where(StrEnum):
    """Where the judging is done."""

    LOCAL = "local"
    RAY = "ray"


class Decomposition(StrEnum):
    """How responses are cut into statements."""

    LLM = "llm"
    SENTENCE = "sentence"


def run(
    data: Annotated[str, typer.Argument(help="A file of samples (see --format); - reads stdin.")],
    metric: Annotated[
        list[str] | None,
        typer.Option(
            help="faithfulness, goal, goal_with_reference, goal_without_reference. "
            "Repeatable; by default whatever fits each sample."
        ),
    ] = None,
    gate: Annotated[
        list[str] | None,
        typer.Option(
            "--gate",
            "-g",
            help="A rule, e.g. 'faithfulness>=0.8', 'goal.pooled>0.5', 'faithfulness.above(0.5)>=90%', "
            "'faithfulness.mean.low>=0.7 where lang=de', 'judge.kappa.low>=0.6'. Repeatable.",
        ),
    ] = None,
    output: options.Output = None,
    min_sample_score: options.MinSampleScore = None,
    github: options.GitHub = False,
    judge_card: options.JudgeCard = None,
    judge_card_max_age: Annotated[
        float | None,
        typer.Option(help="Days above which the card is too old for a gate on the judge.", min=0),
    ] = None,
    max_unscored: Annotated[
        float | None,
        typer.Option(help="Unscored share above which a gate fails by itself (0.05).", min=0, max=1),
    ] = None,
    shard: Annotated[
        str | None,
        typer.Option(
            help="Judge part K of N alone, as K/N; `merge` makes the reports one and checks the gates."
        ),
    ] = None,
    stop_early: Annotated[
        bool | None,
        typer.Option("--stop-early", help="Stop when the outcome of the gates can no longer change."),
    ] = None,
    decomposition: Annotated[
        Decomposition | None,
        typer.Option(help="Who cuts the response: the model, or its sentences as they are."),
    ] = None,
    language: Annotated[
        str | None, typer.Option(help="ISO 639-1 code of the responses; detected by default.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Sample the statements with this seed; greedy by default.")
    ] = None,
    formatter: Annotated[
        str | None, typer.Option(help="Trace formatter: anvil-trace/1, anvil-trace/2 or ragas/1.")
    ] = None,
    shape: Annotated[
        bool | None,
        typer.Option("--shape", help="Ask of refused statements: contradicted, or only not stated?"),
    ] = None,
    padding: Annotated[
        bool | None,
        typer.Option(
            "--padding", help="Ask of statements: beside the question, or known without the context?"
        ),
    ] = None,
    data_format: options.DataFormat = None,
    map: options.Map = None,
    skip_bad_rows: options.SkipBadRows = None,
    model: options.Model = None,
    prompts: options.Prompts = None,
    adapter: options.Adapter = None,
    window: options.Window = None,
    threads: options.Threads = None,
    gpu_layers: options.GpuLayers = None,
    threshold: options.Threshold = None,
    models_dir: options.ModelsDir = None,
    cache: options.Cache = None,
    refresh: options.Refresh = False,
    cache_dir: options.CacheDir = None,
    selfcheck: Annotated[
        bool,
        typer.Option(
            "--selfcheck", help="Refuse a judge that `selfcheck` calls unfit.", rich_help_panel="Judge"
        ),
    ] = False,
    engine: Annotated[
        Where,
        typer.Option(
            help="Who judges: this process, or the workers of a Ray cluster.", rich_help_panel=_CLUSTER
        ),
    ] = Where.LOCAL,
    address: Annotated[
        str | None,
        typer.Option(
            help="HOST:PORT of the Ray cluster, or auto; by default one is started on this machine.",
            rich_help_panel=_CLUSTER,
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            help="Judges in the cluster; by default one a machine, or as many as their CPUs and GPUs allow.",
            min=1,
            rich_help_panel=_CLUSTER,
        ),
    ] = None,
    worker_cpus: Annotated[
        float | None,
        typer.Option(
            help="CPUs of each; by default the judges of a machine share its CPUs.",
            min=0.01,
            rich_help_panel=_CLUSTER,
        ),
    ] = None,
    worker_gpus: Annotated[
        float | None,
        typer.Option(
            help="GPUs of each, or a share of one; by default 1 with --gpu-layers, else none.",
            min=0,
            rich_help_panel=_CLUSTER,
        ),
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show every sample, not the worst ones.")
    ] = False,
) -> int:
    """Judge a file of answers and traces; print the report; exit 1 if a gate fails.

    A row is an answer (user_input, response, retrieved_contexts) or a trace (user_input as a list of
    messages, reference if there is one). The older names question, answer, contexts, ground_truth and
    OpenAI or LangChain messages are read too.
    """
    from datetime import UTC, datetime

    from anvil_local.assess import check_shape
    from anvil_local.cards import find_coins
    from anvil_local.config import load_config
    from anvil_local.gates import is_settled, parse_rules
    from anvil_local.judge_gates import check_judge_gates, open_card, tasks_of
    from anvil_local.metrics import choose_metrics
    from anvil_local.padding import check_padding
    from anvil_local.reports import check_report_paths
    from anvil_local.reports.text import plural
    from anvil_local.runner import build_report, check_fit, make_settings, run_samples
    from anvil_local.samples import SampleFile, parse_mapping
    from anvil_local.shards import cut, parse_shard, shard_of

    config = load_config(
        metrics=tuple(metric or ()),
        gates=tuple(gate or ()),
        output=tuple(str(path) for path in output or ()),
        judge_card=str(judge_card) if judge_card else None,
        judge_card_max_age=judge_card_max_age,
        max_unscored=max_unscored,
        stop_early=stop_early,
        decomposition=decomposition.value if decomposition else None,
        language=language,
        seed=seed,
        formatter=formatter,
        shape=shape,
        padding=padding,
        format=data_format,
        map=parse_mapping(map or ()),
        skip_bad_rows=skip_bad_rows,
        cache=cache,
        cache_dir=str(cache_dir) if cache_dir else None,
        **options.given(
            model=model,
            prompts=prompts,
            adapter=adapter,
            window=window,
            threads=threads,
            gpu_layers=gpu_layers,
            threshold=threshold,
            models_dir=models_dir,
        ),
    )
    # Everything that can be refused is refused before the first verdict.
    judge_gates, gates = parse_rules(config.gates)
    card = open_card(config.judge_card, judge_gates, max_age=config.judge_card_max_age)
    choices = choose_metrics(config.metrics)
    paths = check_report_paths(config.output)
    place = parse_shard(shard) if shard else None
    if place and config.stop_early:
        raise UsageError(
            "a shard cannot stop early: only the whole knows when the gates are settled",
            hint="leave out --stop-early or --shard",
        )
    how = options.judging(config)
    execute: Executor = run_samples
    given = {
        "--address": address,
        "--workers": workers,
        "--worker-cpus": worker_cpus,
        "--worker-gpus": worker_gpus,
    }
    if engine is Where.RAY:
        execute = _on_ray(config, address, workers, worker_cpus, worker_gpus, quiet=quiet)
    elif lone := [name for name, value in given.items() if value is not None]:
        raise UsageError(f"{lone[0]} is for a cluster", hint="add --engine ray, or leave it out")
    created = datetime.now(UTC)
    with SampleFile(
        data, skip_bad_rows=config.skip_bad_rows, format=config.format, mapping=config.map
    ) as samples:
        counts = samples.check()
        if counts.lone_contexts and not quiet:
            rows = plural(counts.lone_contexts, "row")
            console.say(f"note: contexts given as one text, taken as one context: {rows}")
        total = check_fit(samples, choices)
        part = shard_of(samples, *place) if place else None
        if part:
            total = sum(choice.fits(sample) for sample in cut(samples, part) for choice in choices)
        judge_outcomes: tuple[GateOutcome, ...] = ()
        results: list[SampleResult] = []
        complete = True
        not_judged = 0
        with closing(options.build_judge(config, refresh=refresh)) as judge:
            if config.shape:
                check_shape(judge)
            if config.padding:
                check_padding(judge)
            _check_judge(judge, required=selfcheck, quiet=quiet, models_dir=config.models_dir)
            if card is not None and judge_gates:
                fitting = {choice.metric.name for row in samples for choice in choices if choice.fits(row)}
                judge_outcomes = check_judge_gates(
                    judge_gates,
                    card,
                    judge.fingerprint,
                    tasks=tasks_of(fitting),
                    now=created,
                    max_age=config.judge_card_max_age,
                )
                _warn_of_judge(judge_outcomes, quiet=quiet)
            unfit = not all(outcome.passed for outcome in judge_outcomes)
            with (
                # Ray prints news of the cluster on stdout, which is for results.
                redirect_stdout(sys.stderr) if engine is Where.RAY else nullcontext(),
                console.progress(total, quiet=quiet, hits=lambda: getattr(judge, "hits", 0)) as on_progress,
            ):
                try:
                    for result in execute(
                        cut(samples, part) if part else samples,
                        judge=judge,
                        choices=choices,
                        options=how,
                        on_progress=on_progress,
                        part=part is not None,
                    ):
                        results.append(result)
                        if (
                            config.stop_early
                            and len(results) < total
                            and (
                                unfit
                                or is_settled(
                                    gates,
                                    results,
                                    remaining=total - len(results),
                                    max_unscored=config.max_unscored,
                                    rejected=len(samples.rejected),
                                )
                            )
                        ):
                            not_judged = total - len(results)
                            break
                except KeyboardInterrupt:
                    complete = False
            report = build_report(
                results,
                judge=judge,
                settings=make_settings(
                    results, how, [*judge_gates, *gates], config.max_unscored, config.unstable_band
                ),
                gates=gates,
                judge_outcomes=judge_outcomes,
                data=(samples.name,),
                created=created,
                complete=complete,
                rejected=[str(error) for error in samples.rejected],
                not_judged=not_judged,
                shard=part,
            )
        if card is not None and part is None:
            report = _correct(report, card, quiet=quiet)
        hits = getattr(judge, "hits", 0)
        if hits and not quiet:
            console.say(f"note: from the cache: {plural(hits, 'verdict')} (--refresh judges anew)")
    if not quiet:
        for name, accuracy in find_coins(
            report.judge, [summary.metric for summary in report.summaries], folder=config.models_dir
        ).items():
            console.say(
                f"warning: on {name} this judge's card does not tell it from a coin (balanced accuracy "
                f"{accuracy.value:.2f} [{accuracy.low:.2f}, {accuracy.high:.2f}]); bring a bigger model"
            )
        for outcome in report.gates:
            if outcome.warning:
                console.say(f"warning: {outcome.warning}")
    console.show_report(
        report, paths, json=json, verbose=verbose, github=github, min_sample_score=min_sample_score
    )
    if not complete:
        console.say("interrupted: the report holds what was finished")
        return ExitCode.INTERRUPTED
    return ExitCode.OK if report.passed else ExitCode.GATE_FAILED


def _correct(report: Report, card: JudgeCard, *, quiet: bool) -> Report:
    """The report with the rates that its judge's card corrects, or a note why there are none."""
    from anvil_local.correction import correct_report

    try:
        return report.model_copy(update={"corrected": correct_report(report, card)})
    except UsageError as error:
        if not quiet:
            console.say(f"note: no corrected rates: {error.message}")
        return report


def _on_ray(
    config: Config,
    address: str | None,
    workers: int | None,
    cpus: float | None,
    gpus: float | None,
    *,
    quiet: bool,
) -> Executor:
    """The workers of a cluster, each with the judge of these settings."""
    from functools import partial

    from anvil_local.distributed import RayExecutor

    return RayExecutor(
        partial(options.build_worker, options.for_workers(config)),
        address=address,
        workers=workers,
        cpus=cpus,
        gpus=gpus if gpus is not None else float(config.gpu_layers != 0),
        say=(lambda _: None) if quiet else console.say,
    )


def _warn_of_judge(outcomes: Sequence[GateOutcome], *, quiet: bool) -> None:
    """Say before hours of judging that the judge fails; what it says of the data is wanted all the same."""
    from anvil_local.reports import excerpt

    for outcome in outcomes:
        if not outcome.passed and not quiet:
            console.say(f"warning: {excerpt(outcome.message, None)}")


def _check_judge(judge: Judge, *, required: bool, quiet: bool, models_dir: str | None) -> None:
    """Refuse an unfit judge if asked to; else say when nobody knows how good it is."""
    from anvil_local.selfcheck import ensure_selfcheck, judge_standing

    say = (lambda _: None) if quiet else console.say
    if not required:
        if warning := judge_standing(judge.fingerprint, models_dir=models_dir):
            say(f"warning: {warning}")
        return
    checked = ensure_selfcheck(judge, say)
    if checked.verdict == "unfit":
        raise ModelError(
            f"this judge is unfit: {checked.right} of {checked.total} probes right",
            value=judge.fingerprint.short,
            hint="`anvil-local selfcheck -v` shows what it gets wrong; bring another model with -m",
        )
