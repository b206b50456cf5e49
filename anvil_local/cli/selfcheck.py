"""`anvil-local selfcheck`: is the judge at hand any good?"""

from __future__ import annotations

import textwrap
from contextlib import closing
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from anvil_local.cli import console, options
from anvil_local.errors import ExitCode

if TYPE_CHECKING:
    from anvil_local.selfcheck import ProbeAnswer, SelfcheckResult

_BAR = 20
"""Columns of a kind's bar."""


class Bar(StrEnum):
    """What the judge must be for exit code 0."""

    FIT = "fit"
    WEAK = "weak"


def selfcheck(
    kind: Annotated[
        list[str] | None,
        typer.Option(help="Only this kind of probes, e.g. number or negation. Repeatable."),
    ] = None,
    require: Annotated[
        Bar, typer.Option(help="What the judge must be for exit code 0; `weak` admits `fit` too.")
    ] = Bar.WEAK,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Ask again, even if the result of this judge is remembered.")
    ] = False,
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
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="List the wrong answers.")] = False,
) -> int:
    """Ask the judge 166 probes with known answers; say whether it is fit, weak or unfit.

    Exits with 0 if the judge is fit or weak, with 1 if it is unfit; --require fit asks for more. The
    result is remembered for this very judge: model, adapters, prompts and settings.
    """
    from anvil_local.config import load_config
    from anvil_local.probes import load_probes
    from anvil_local.runner import Progress
    from anvil_local.selfcheck import find_selfcheck, remember_selfcheck, run_selfcheck

    config = load_config(
        # Kept verdicts would say nothing of the time it takes; the result itself is remembered.
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
    # An unknown kind is refused before a model is looked for.
    probes = load_probes(kind)
    with closing(options.build_judge(config)) as judge:
        result = None if fresh or kind else find_selfcheck(judge.fingerprint)
        if result is not None:
            if not quiet:
                console.say(f"note: remembered from {result.created}; --fresh asks again")
        else:
            with console.progress(len(probes), quiet=quiet) as update:

                def on_progress(done: int, total: int) -> None:
                    if update:
                        update(Progress(done, done, "judge"))

                result = run_selfcheck(judge, kinds=kind, on_progress=on_progress)
            remember_selfcheck(result)
    if json:
        console.show_json(result.model_dump(mode="json"))
    else:
        console.show(render_selfcheck(result, verbose=verbose))
    passed = result.verdict == "fit" or (result.verdict == "weak" and require is Bar.WEAK)
    return ExitCode.OK if passed else ExitCode.GATE_FAILED


def render_selfcheck(result: SelfcheckResult, *, verbose: bool = False, width: int = 80) -> str:
    """The result as text: a row a kind, the whole, the misses if `verbose`, and the verdict in words."""
    from anvil_local.probes import KINDS
    from anvil_local.selfcheck import name_judge

    lines = [f"{result.total} probes, {result.seconds:.1f} s, judge {name_judge(result.fingerprint)}", ""]
    for row in result.kinds:
        full = round(_BAR * row.right / row.total)
        # A label of 0 and one of 1 for each pair: half of them is what a coin gets.
        note = "  no better than a coin" if 2 * row.right <= row.total else ""
        counts = f"{row.right:>3}/{row.total:<3}  {row.balanced_accuracy:.2f}"
        lines.append(f"{row.kind:<{max(map(len, KINDS))}}  {counts}  {'#' * full:.<{_BAR}}{note}")
    interval = f"99 % interval {result.low:.2f} to {result.high:.2f}"
    lines += [
        "",
        f"balanced accuracy  {result.balanced_accuracy:.2f}  ({interval}; a coin has 0.50)",
        f"AUROC of margins   {'none' if result.auroc is None else f'{result.auroc:.2f}'}",
        f"pairs both right   {result.pairs_right}/{result.pairs}",
    ]
    if result.unscored:
        lines.append(f"not decided        {result.unscored}, counted as wrong")
    if verbose and result.misses:
        lines += ["", "wrong answers (margin: logit of 1 minus logit of 0)"]
        for miss in result.misses:
            lines += _miss_lines(miss, width)
    elif result.misses:
        lines.append(f"wrong answers      {len(result.misses)}, listed with -v")
    lines += ["", *textwrap.wrap(_words(result), width)]
    return "\n".join(lines)


def _miss_lines(miss: ProbeAnswer, width: int) -> list[str]:
    from anvil_local.reports import printable

    said = "not decided" if miss.value is None else f"judged {miss.value}"
    margin = "" if miss.margin is None else f", margin {miss.margin:+.2f}"
    text = textwrap.wrap(printable(miss.statement), width, initial_indent="    ", subsequent_indent="    ")
    return [f"  {miss.id}  is {miss.label}, {said}{margin}", *text]


def _words(result: SelfcheckResult) -> str:
    """The verdict and what to do next."""
    from anvil_local.selfcheck import FIT_AUROC

    own = "measure it on your own labels with `anvil-local calibrate`"
    bigger = "bring a bigger model (--model, see `anvil-local models list`)"
    if result.partial:
        own += ", and ask all probes"
    if result.verdict == "fit":
        return f"fit: this judge tells supported from unsupported. Your texts may be harder: {own}."
    if result.verdict == "weak":
        return (
            "weak: better than a coin, but too often wrong for single verdicts. "
            f"Compare means over many statements only, {bigger}, or {own}."
        )
    if result.auroc is not None and result.auroc >= FIT_AUROC:
        return (
            "unfit: a coin toss cannot be excluded. Yet the margins separate 1 from 0, so the threshold "
            "may be off: find a better one on your own labels with `anvil-local calibrate`."
        )
    given = result.fingerprint.parts.get("options")
    bare = isinstance(given, dict) and given.get("adapter") is False
    adapter = ", or leave out --no-adapter" if bare else ""
    return f"unfit: a coin toss cannot be excluded. Do not use its scores: {bigger}{adapter}."
