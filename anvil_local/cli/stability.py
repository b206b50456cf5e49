"""`anvil-local stability`: judge data again under changes that should not matter."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anvil_local.cli import console, options
from anvil_local.cli.run import Decomposition
from anvil_local.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from anvil_local.config import Config
    from anvil_local.judge import Judge
    from anvil_local.stability import AxisResult, Stability

_FLIPS_SHOWN = 8


def stability(
    data: Annotated[str, typer.Argument(help="A file of samples, as in `run`; - reads stdin.")],
    metric: Annotated[list[str] | None, typer.Option(help="As in `run`. Repeatable.")] = None,
    gate: Annotated[
        list[str] | None,
        typer.Option("--gate", "-g", help="A rule whose flake probability is wanted. Repeatable."),
    ] = None,
    axis: Annotated[
        list[str] | None,
        typer.Option(
            help="repeat, order, threads, wording, labels, context, formatter, decomposition, model. "
            "Repeatable; all by default."
        ),
    ] = None,
    other_model: Annotated[
        list[str] | None, typer.Option(help="Another model, for the axis model. Repeatable.")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Only the first so many samples.", min=1)] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The result as .json.")] = None,
    decomposition: Annotated[
        Decomposition | None,
        typer.Option(help="Who cuts the response: the model, or its sentences as they are."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the simulated runs.", min=0)] = 0,
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
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show every flip, not the surest ones.")
    ] = False,
) -> int:
    """Judge data again in ways that should not matter; say which verdicts turn over.

    Everything is judged about ten times, without the cache. Exits with 1 if a bit moved that cannot move on
    a machine in order: the same questions again, in another order, on other threads.
    """
    from anvil_local.gates import parse_rules
    from anvil_local.metrics import choose_metrics
    from anvil_local.reports.files import write_whole
    from anvil_local.samples import SampleFile
    from anvil_local.stability import measure_stability

    if output is not None and (output.suffix != ".json" or not output.absolute().parent.is_dir()):
        raise UsageError("the result is a .json file in a folder that exists", value=str(output))
    config = options.load(
        metrics=tuple(metric or ()),
        gates=tuple(gate or ()),
        decomposition=decomposition.value if decomposition else None,
        cache=False,
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
    # Rules about the judge are about its card: no data can turn them over.
    _, gates = parse_rules(config.gates)
    choices = choose_metrics(config.metrics)
    # Whether a refused statement is contradicted is another question.
    how = replace(options.judging(config), shape=False, padding=False)
    with SampleFile(data, format=config.format, mapping=config.map) as file:
        file.check()
        samples = list(islice(file, limit))
    others = list(_others(config, axis, other_model or ()))
    with (
        closing(options.build_judge(config)) as judge,
        console.progress(None, quiet=quiet) as on_progress,
    ):
        found = measure_stability(
            samples,
            judge=judge,
            choices=choices,
            options=how,
            gates=gates,
            max_unscored=config.max_unscored,
            axes=axis or None,
            others=others,
            seed=seed,
            on_progress=on_progress,
        )
    if output is not None:
        write_whole(output, found.model_dump_json(indent=2) + "\n")
    if json:
        console.show_json(found.model_dump(mode="json"))
    else:
        console.show("\n".join(_describe(found, verbose=verbose)))
    return ExitCode.GATE_FAILED if found.broken else ExitCode.OK


def _others(
    config: Config, axes: list[str] | None, models: list[str] | tuple[str, ...]
) -> Iterator[tuple[str, str, Judge]]:
    """The engines of the axes threads and model; none is loaded before it is asked."""
    if axes is None or "threads" in axes:
        count = 2 if config.threads == 1 else 1
        changed = config.model_copy(update={"threads": count})
        yield "threads", str(count), options.build_judge(changed)
    for name in models:
        yield "model", name, options.build_judge(config.model_copy(update={"model": (name,)}))


def _describe(found: Stability, *, verbose: bool) -> Iterator[str]:
    from anvil_local.reports import excerpt
    from anvil_local.reports.text import judge_name, plural, show_margin

    judge = f"{judge_name(found.judge.parts)} ({found.judge.short})"
    yield f"judge     {judge}"
    yield f"data      {plural(found.samples, 'sample')}, {plural(found.verdicts, 'verdict')}"
    yield ""
    yield f"{'axis':<24} {'verdicts':>8} {'flips':>6} {'rate':>6} {'scores':>7} {'shift':>6}"
    for row in found.axes:
        yield _row(row)
    for axis, why in found.skipped.items():
        yield f"{axis:<24} not run: {why}"
    yield ""
    if found.flip_rate is not None:
        yield f"flip rate      {found.flip_rate:.3f}, of wording, labels, context and formatter"
    if found.band is not None:
        yield (
            f"unstable band  {found.band:.2f} from the threshold: 95 % of the flips, "
            f"{found.in_band} of {found.verdicts} verdicts"
        )
    for gate in found.gates:
        word = "PASS" if gate.passed else "FAIL"
        yield (
            f"gate           {excerpt(gate.rule, 40)}: {word}, the other outcome in {gate.flake:.1%} of "
            f"simulated runs (at most {gate.flake_high:.1%})"
        )
    turned = {rule for row in found.axes for rule in row.gates_turned}
    for rule in sorted(turned):
        names = ", ".join(f"{row.axis} {row.variant}" for row in found.axes if rule in row.gates_turned)
        yield f"turned over    {excerpt(rule, 40)} by {names}"
    if found.broken:
        yield "BROKEN: a bit moved that cannot move. Look at memory, overclocking, and what else is loaded."
    flips = found.flips if verbose else found.flips[:_FLIPS_SHOWN]
    if flips:
        count = f"{len(flips)} of {len(found.flips)}" if len(flips) < len(found.flips) else str(len(flips))
        yield ""
        yield f"verdicts that turned over, the surest first ({count})"
    for flip in flips:
        change = f"{show_margin(flip.old.margin)} -> {show_margin(flip.new.margin)}"
        yield f"  {flip.axis:<22} {change}  sample {excerpt(flip.sample_id, 40)}"
        yield f"      {excerpt(flip.text, 120)}"


def _row(row: AxisResult) -> str:
    from anvil_local.reports.text import plural

    name = f"{row.axis} {row.variant}"
    rate = f"{row.flips / row.questions:.3f}" if row.questions else "none"
    shift = "none" if row.score_shift is None else f"{row.score_shift:.3f}"
    line = f"{name[:24]:<24} {row.questions:>8} {row.flips:>6} {rate:>6} {row.scores_moved:>7} {shift:>6}"
    if row.must_be_zero:
        line += f"  BROKEN, {row.moved} moved" if row.broken else "  bit-equal"
    if row.unpaired and not row.must_be_zero:
        line += f"  {plural(row.unpaired, 'statement')} in one only"
    return line
