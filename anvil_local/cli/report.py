"""`anvil-local report`: write a saved report in other formats, or look at one sample."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anvil_local.cli import console, options
from anvil_local.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from anvil_local.records import Report


def report(
    saved: Annotated[Path, typer.Argument(help="A report that `run -o out.json` wrote.")],
    output: options.Output = None,
    min_sample_score: options.MinSampleScore = None,
    sample: Annotated[
        str | None, typer.Option(help="Show this sample alone: every verdict, question, contexts, response.")
    ] = None,
    github: options.GitHub = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show every sample, not the worst ones.")
    ] = False,
) -> int:
    """Write a saved report as HTML, JUnit, Markdown or SARIF; without -o, print it. Nothing is judged.

    Exits with 0 whatever the gates said: `run` told it.
    """
    from anvil_local.reports import check_report_paths, load_report, render_terminal, write_reports

    paths = check_report_paths(output or ())
    loaded = load_report(saved)
    if sample is not None:
        loaded = _only(loaded, sample)
    write_reports(loaded, paths, min_sample_score=min_sample_score)
    if github:
        console.show_github(loaded)
    if not paths and not github:
        console.show(
            render_terminal(
                loaded,
                width=console.width(),
                color=console.use_color(sys.stdout),
                verbose=verbose,
                whole=sample is not None,
                path=str(saved),
            )
        )
    return ExitCode.OK


def _only(report: Report, sample_id: str) -> Report:
    """The results of one sample; the gates stay those of the whole run."""
    import difflib

    from anvil_local.scoring import summarize

    results = tuple(result for result in report.results if result.sample_id == sample_id)
    if not results:
        close = difflib.get_close_matches(sample_id, {result.sample_id for result in report.results}, 1)
        raise UsageError(
            "this report has no such sample",
            value=sample_id,
            hint=f"did you mean {close[0]!r}?" if close else "ids stand in the field `id` of each sample",
        )
    return report.model_copy(update={"results": results, "summaries": summarize(results)})
