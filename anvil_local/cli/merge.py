"""`anvil-local merge`: the reports of all shards made one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from anvil_local.cli import console, options
from anvil_local.errors import ExitCode


def merge(
    parts: Annotated[list[Path], typer.Argument(help="The reports of all shards, in any order.")],
    output: options.Output = None,
    min_sample_score: options.MinSampleScore = None,
    github: options.GitHub = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show every sample, not the worst ones.")
    ] = False,
    json: options.Json = False,
) -> int:
    """Make the reports of `run --shard K/N` one, and check its gates.

    Parts of other data, another judge or other settings, and parts that are missing or there twice, are
    refused. Exits with 1 if a gate fails.
    """
    from anvil_local.errors import UsageError
    from anvil_local.reports import check_report_paths, load_report
    from anvil_local.shards import merge as merge_reports

    paths = check_report_paths(output or ())
    if len({str(path) for path in parts}) < len(parts):
        raise UsageError("a part is named twice", value=" ".join(map(str, parts)))
    report = merge_reports({str(path): load_report(path) for path in parts})
    for outcome in report.gates:
        if outcome.warning:
            console.say(f"warning: {outcome.warning}")
    console.show_report(
        report, paths, json=json, verbose=verbose, github=github, min_sample_score=min_sample_score
    )
    return ExitCode.OK if report.passed else ExitCode.GATE_FAILED
