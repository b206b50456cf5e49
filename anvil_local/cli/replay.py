"""`anvil-local replay`: judge a report again and compare bit by bit."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anvil_local.cli import console, options
from anvil_local.errors import ExitCode

if TYPE_CHECKING:
    from anvil_local.records import Verdict
    from anvil_local.replay import Replay


def replay(
    report: Annotated[Path, typer.Argument(help="A report that `run -o out.json` wrote.")],
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if any bit moved, not only if a verdict flipped.")
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
) -> int:
    """Judge a report's samples again, without the cache, and say what moved.

    The judge is the one of the report, as far as it is installed here; options change it. Exits with 1
    if a verdict flipped, or with --strict if any bit moved.
    """
    from anvil_local import replay as replaying
    from anvil_local.reports import load_report

    before = load_report(report)
    given = options.given(
        model=model,
        prompts=prompts,
        adapter=adapter,
        window=window,
        threads=threads,
        gpu_layers=gpu_layers,
        threshold=threshold,
        models_dir=models_dir,
    )
    config = options.load(**(options.of_judge(before.judge) | _set(given)), cache=False)
    with closing(options.build_judge(config)) as judge:
        with console.progress(len(before.results), quiet=quiet) as on_progress:
            found = replaying.replay(before, judge, on_progress=on_progress)
        name = judge.fingerprint.short
    if json:
        console.show_json(
            found.model_dump(mode="json") | {"flips": len(found.flips), "bit_equal": not found.moves}
        )
    else:
        console.show(_describe(found, before.judge.short, name))
    failed = bool(found.moves) if strict else bool(found.flips)
    return ExitCode.GATE_FAILED if failed else ExitCode.OK


def _set(given: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if value not in (None, ())}


def _describe(found: Replay, old: str, new: str) -> str:
    from anvil_local.reports import excerpt

    lines = [f"judge     {old} -> {new}" if old != new else f"judge     {old}, the same"]
    lines += [f"  {path}: {before} -> {after}" for path, (before, after) in found.judge.items()]
    equal = found.questions - len(found.moves)
    lines.append(f"verdicts  {equal} of {found.questions} bit-equal, {len(found.flips)} flipped")
    distances = [move.distance for move in found.moves if move.distance is not None]
    if distances:
        mean = sum(distances) / len(distances)
        lines.append(
            f"margins   {len(distances)} moved, by {mean:.4f} on average, {max(distances):.4f} at most"
        )
    for move in found.flips:
        lines.append(f"  {_value(move.old)} -> {_value(move.new)}  sample {excerpt(move.sample_id, 40)}")
        lines.append(f"      {excerpt(move.question)}")
    return "\n".join(lines)


def _value(verdict: Verdict | None) -> str:
    if verdict is None:
        return "absent"
    if verdict.margin is None:
        return str(verdict.reason or verdict.value)
    return f"{verdict.value} ({verdict.margin:+.3f} = {verdict.margin.hex()})"
