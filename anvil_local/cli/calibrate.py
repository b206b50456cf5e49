"""`anvil-local calibrate`: how well the judge agrees with people, on rows that people labelled."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anvil_local.cli import console, options
from anvil_local.errors import ExitCode

if TYPE_CHECKING:
    from anvil_local.assess import Options
    from anvil_local.calibration import Judged, LabelledRow, LabelledTrace, Numbers
    from anvil_local.cards import Measurement
    from anvil_local.judge import Judge
    from anvil_local.records import Verdict


class Task(StrEnum):
    """What was labelled."""

    SUPPORT = "support"
    GOAL = "goal"


def calibrate(
    labelled: Annotated[
        str,
        typer.Argument(metavar="LABELLED.jsonl", help="Labelled rows, .jsonl, also .gz; - reads stdin."),
    ],
    task: Annotated[
        Task, typer.Option(help="support: statements against contexts; goal: traces.")
    ] = Task.SUPPORT,
    output: Annotated[
        list[Path] | None,
        typer.Option("--output", "-o", help="A judge card: .json or .md. Repeatable."),
    ] = None,
    formatter: Annotated[
        str | None, typer.Option(help="Trace formatter: anvil-trace/1, anvil-trace/2 or ragas/1.")
    ] = None,
    model: options.Model = None,
    prompts: options.Prompts = None,
    adapter: options.Adapter = None,
    window: options.Window = None,
    threads: options.Threads = None,
    gpu_layers: options.GpuLayers = None,
    threshold: options.Threshold = None,
    models_dir: options.ModelsDir = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> int:
    """Measure the judge against labels of people, set by set; write a judge card.

    A row for support has context (or retrieved_contexts), statement, label.
    A row for goal has the messages of a trace, label, and maybe a reference.
    A label is 0 or 1; a row may name its set. Exits with 3 if no row could be judged.
    """
    from anvil_local.assess import Options
    from anvil_local.calibration import choose_threshold, measure, read_labelled
    from anvil_local.cards import (
        Measurement,
        check_card_paths,
        data_of,
        make_card,
        render_card_json,
        write_card,
    )
    from anvil_local.config import load_config
    from anvil_local.runner import Progress
    from anvil_local.samples import DEFAULT_FORMATTER

    config = load_config(
        formatter=formatter,
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
    paths = check_card_paths(output or ())
    how = Options(formatter=config.formatter or DEFAULT_FORMATTER)
    file = read_labelled(labelled, task=task.value)
    started = time.perf_counter()
    with closing(options.build_judge(config)) as asked:
        with console.progress(len(file.rows), quiet=quiet) as on_progress:
            judged = []
            for row in judge_rows(file.rows, asked, how):
                judged.append(row)
                if on_progress:
                    on_progress(Progress(len(judged), len(judged), "judge"))
        seconds = time.perf_counter() - started
        fingerprint = asked.fingerprint
        in_force = asked.threshold_of(task.value)
    measurement = Measurement(
        title=f"{task.value.capitalize()} on {file.name}",
        task=task.value,
        data=data_of(file),
        measured=measure(judged),
        threshold=choose_threshold(judged, in_force=in_force),
        seconds_per_row=seconds / len(judged),
    )
    card = make_card(fingerprint, measurements=[measurement])
    write_card(card, paths)
    if json:
        console.show(render_card_json(card))
    else:
        console.show("\n".join([f"judge {card.name}, {fingerprint.short}", "", *table(measurement)]))
    if not quiet:
        for note in card.notes:
            console.say(f"note: {note}")
    scored = any(row.value is not None for row in judged)
    return ExitCode.OK if scored else ExitCode.INCOMPLETE


# Judging


def judge_rows(
    rows: Sequence[LabelledRow] | Sequence[LabelledTrace], judge: Judge, how: Options
) -> Iterator[Judged]:
    """A verdict for every row, those that share a context one after the other: it is decoded once.

    Each row is judged on its own, so its margin does not depend on what else is in the file.
    """
    # The places and not the rows are sorted: the rows are of two kinds.
    for number in sorted(range(len(rows)), key=lambda number: (rows[number].group, number)):
        yield judge_row(rows[number], judge, how)


def judge_row(row: LabelledRow | LabelledTrace, judge: Judge, how: Options) -> Judged:
    """The verdict that a run would give. A context that is longer than the window is read in windows."""
    from anvil_local.assess import judge_statements
    from anvil_local.calibration import LabelledRow
    from anvil_local.records import Statement

    if not isinstance(row, LabelledRow):
        return judge_trace(row, judge, how)
    statement = Statement(text=row.statement, start=0, end=0, sentence=0)
    (item,) = judge_statements([statement], row.context, judge)
    return _judged(row, item.verdict)


def judge_trace(row: LabelledTrace, judge: Judge, how: Options, *, use_reference: bool = True) -> Judged:
    """The headline verdict of a trace alone: was what was wanted reached?

    Args:
        row: the trace.
        judge: the judge.
        how: the formatter.
        use_reference: False asks about the goal that the model infers even when there is a reference.
    """
    from anvil_local.assess import ask_goal, first_words, prepare
    from anvil_local.metrics import METRICS
    from anvil_local.records import Verdict

    messages = row.sample.user_input
    assert isinstance(messages, tuple)
    desired = row.sample.reference if use_reference else None
    if desired is None:
        sample = row.sample.model_copy(update={"reference": None})
        prepared = prepare(sample, METRICS["goal_without_reference"], judge, how)
        if prepared.failure is not None:
            return _judged(row, Verdict(value=None, reason=prepared.failure))
        desired = prepared.workflow.user_goal if prepared.workflow else first_words(messages)
    # `ask_goal` is what a run asks; a whole run would also ask what was claimed and what was done.
    verdict, _ = ask_goal(messages, desired, "all", judge, how)
    return _judged(row, verdict)


def _judged(row: LabelledRow | LabelledTrace, verdict: Verdict) -> Judged:
    from anvil_local.calibration import Judged

    return Judged(
        label=row.label,
        margin=verdict.margin,
        value=verdict.value,
        p_supported=verdict.p_supported,
        mass=verdict.mass,
        set=row.set,
        kind=row.kind,
        id=row.id,
        group=row.group,
        weight=row.weight,
    )


# The table


def table(measurement: Measurement) -> Iterator[str]:
    """The numbers in lines of at most 80 columns."""
    from anvil_local.cards import show_estimate
    from anvil_local.reports.text import plural

    yield f"{'set':<28} {'rows':>5}  {'balanced accuracy':<20}  {'AUROC':>6}  {'kappa':>6}"
    yield from _lines(measurement.measured.sets)
    macro = measurement.measured.macro
    yield from _lines([macro])
    if macro.unscored:
        yield f"{macro.unscored} of {plural(macro.rows, 'row')} could not be judged; they are in no number"
    threshold = measurement.threshold
    yield ""
    yield f"threshold in force {threshold.in_force:+.2f}: {show_estimate(macro.balanced_accuracy)}"
    if threshold.best is None:
        yield f"best threshold: none ({threshold.cross_fitted.reason})"
        return
    yield f"best on these rows {threshold.best:+.2f}: {threshold.balanced_accuracy:.3f}, too good to be true"
    fitted = threshold.cross_fitted
    on_others = show_estimate(fitted) if fitted.value is not None else f"none ({fitted.reason})"
    yield f"the same, cross-fitted: {on_others}"


def _lines(numbers: Iterable[Numbers]) -> Iterator[str]:
    from anvil_local.cards import show_estimate, show_number
    from anvil_local.reports import excerpt

    for item in numbers:
        balanced, accuracy = item.balanced_accuracy, item.accuracy
        shown = show_estimate(balanced)
        if balanced.value is None and accuracy.value is not None and item.set != "macro":
            only = 1 if item.specificity.value is None else 0
            shown = f"only {only}s, {show_number(accuracy.value)} right"
        cells = f"{item.rows:>5}  {shown:<20}"
        cells += f"  {show_number(item.auroc.value):>6}  {show_number(item.kappa.value):>6}"
        # Escapes are longer than what they stand for: cut again.
        yield f"{excerpt(excerpt(item.set, 28), 28):<28} {cells}"
