"""The report for a terminal: the numbers first, the worst sample and the gates where the eye lands, last."""

from __future__ import annotations

import io
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from anvil_local.records import MetricSummary, Report, SampleResult
from anvil_local.reports.findings import Finding, find, headline, note_rows
from anvil_local.reports.text import excerpt, judge_name, plural, printable, show_interval, show_score
from anvil_local.samples import DEFAULT_FORMATTER, render_trace
from anvil_local.scoring import rank_worst, tally

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

_STATEMENTS_SHOWN = 5
_ROWS_SHOWN = 5
# Below this the columns of the table no longer fit beside a metric's name.
_TABLE_WIDTH = 76


def render_terminal(
    report: Report,
    *,
    width: int = 80,
    color: bool = False,
    examples: int = 5,
    verbose: bool = False,
    whole: bool = False,
    path: str | None = None,
) -> str:
    """The report as lines of at most `width` cells.

    `examples` bounds the samples shown; `verbose` shows every sample below 1 with all its verdicts
    in full, and every unscored sample; `whole` shows every sample whatever its score, with the texts that it
    was judged by. `path` is the JSON file of the report, if there is one: the
    command that looks closer at the worst sample names it. Control characters in the data are shown
    as escapes. Colour only repeats what words say.
    """
    output = io.StringIO()
    console = _console(output, width, color)
    _print_head(console, report)
    _print_metrics(console, report.summaries)
    _print_notes(console, note_rows(tally(report.results), report))
    if whole:
        _print_whole(console, report.results)
    else:
        _print_unscored(console, report.results, verbose)
        _print_worst(console, report.results, None if verbose else max(0, examples), verbose)
    if path and not verbose and not whole:
        _print_closer(console, report.results, path)
    _print_gates(console, report)
    return "\n".join(line.rstrip() for line in output.getvalue().split("\n"))


def _console(output: io.StringIO, width: int, color: bool) -> Console:
    from rich.console import Console

    return Console(
        file=output,
        width=max(20, width),
        force_terminal=color,
        force_jupyter=False,
        color_system="standard" if color else None,
        no_color=not color,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
        # The output depends on the arguments alone, not on COLUMNS or TERM.
        _environ={},
    )


def _text(text: str, style: str = "") -> Text:
    from rich.text import Text

    return Text(text, style=style, overflow="fold")


def _rows(*rows: tuple[str, RenderableType]) -> RenderableType:
    """Labels on the left, wrapping texts on the right."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for label, renderable in rows:
        grid.add_row(_text(label), renderable)
    return grid


def _print_head(console: Console, report: Report) -> None:
    data = ", ".join(excerpt(path, 80) for path in report.data[:_ROWS_SHOWN]) or "none"
    if len(report.data) > _ROWS_SHOWN:
        data += f" and {len(report.data) - _ROWS_SHOWN} more"
    settings = report.settings
    parts = [
        *settings.metrics,
        f"statements by {settings.decomposition}",
        f"unscored limit {settings.max_unscored:g}",
    ]
    console.print(
        _rows(
            ("data", _text(data)),
            ("judge", _text(f"{judge_name(report.judge.parts)} ({excerpt(report.judge.short, 12)})")),
            ("settings", _text(", ".join(excerpt(part, 60) for part in parts))),
        )
    )
    console.print()


def _print_metrics(console: Console, summaries: tuple[MetricSummary, ...]) -> None:
    from rich.table import Table

    if not summaries:
        console.print(_text("no metric was scored"))
        return
    if console.width < _TABLE_WIDTH:
        console.print(_rows(*((excerpt(row.metric, 60), _text(_summary_line(row))) for row in summaries)))
        _print_intervals(console, summaries)
        return
    table = Table(
        box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold" if console.is_terminal else ""
    )
    table.add_column("metric", overflow="fold")
    for name in ("samples", "score", "pooled", "lowest", "supported", "unscored"):
        table.add_column(name, justify="right", no_wrap=True, overflow="fold")
    for summary in summaries:
        table.add_row(
            _text(excerpt(summary.metric, 60)),
            str(summary.samples),
            _text(show_score(summary.mean), "bold"),
            show_score(summary.pooled),
            show_score(summary.lowest),
            f"{summary.supported}/{summary.scored}",
            str(summary.unscored_samples),
        )
    console.print(table)
    _print_intervals(console, summaries)


def _print_intervals(console: Console, summaries: tuple[MetricSummary, ...]) -> None:
    rows = [
        (excerpt(row.metric, 60), _text(_interval_line(row)))
        for row in summaries
        if row.mean_interval is not None and row.pooled_interval is not None
    ]
    if rows:
        console.print()
        console.print(_text("95 % intervals, for other samples of the same kind"))
        _print_indented(console, 2, _rows(*rows))


def _interval_line(summary: MetricSummary) -> str:
    mean, pooled = show_interval(summary.mean_interval), show_interval(summary.pooled_interval)
    counts = f"{plural(summary.scored_samples, 'sample')}, {plural(summary.scored, 'verdict')}"
    # Where there is no interval, the reason is that of both.
    return f"{mean} ({counts})" if mean == pooled else f"score {mean}, pooled {pooled} ({counts})"


def _summary_line(summary: MetricSummary) -> str:
    return (
        f"score {show_score(summary.mean)}, pooled {show_score(summary.pooled)}, "
        f"lowest {show_score(summary.lowest)}, supported {summary.supported}/{summary.scored}, "
        f"{summary.unscored_samples} of {plural(summary.samples, 'sample')} unscored"
    )


def _print_notes(console: Console, rows: list[tuple[str, str]]) -> None:
    if rows:
        console.print()
        console.print(_rows(*((label, _text(text)) for label, text in rows)))


def _print_unscored(console: Console, results: tuple[SampleResult, ...], verbose: bool) -> None:
    unscored = [result for result in results if result.score is None]
    if not unscored:
        return
    console.print()
    console.print(_text(f"{plural(len(unscored), 'sample')} unscored"))
    shown = unscored if verbose else unscored[:_ROWS_SHOWN]
    for result in shown:
        _print_indented(console, 2, _text(headline(result)))
    if len(shown) < len(unscored):
        _print_indented(console, 2, _text(f"and {len(unscored) - len(shown)} more (-v shows all)"))


def _print_worst(
    console: Console, results: tuple[SampleResult, ...], examples: int | None, verbose: bool
) -> None:
    worst = rank_worst(results)
    shown = worst if examples is None else worst[:examples]
    if not shown:
        return
    count = f"{len(shown)} of {len(worst)}" if len(shown) < len(worst) else str(len(worst))
    console.print()
    console.print(_text(f"samples below 1, worst last ({count})"))
    for result in reversed(shown):
        console.print()
        _print_indented(console, 2, _text(headline(result)))
        findings = find(result, everything=verbose, limit=None if verbose else 160)
        cut = findings if verbose else findings[:_STATEMENTS_SHOWN]
        rows = _finding_rows(cut)
        if len(cut) < len(findings):
            rows.append(("", _text(f"and {len(findings) - len(cut)} more refused (-v shows all)")))
        if rows:
            _print_indented(console, 4, _rows(*rows))


def _finding_rows(findings: Sequence[Finding]) -> list[tuple[str, RenderableType]]:
    rows: list[tuple[str, RenderableType]] = []
    for finding in findings:
        rows.append((f"{finding.word} {finding.margin}", _text(finding.text, _style(finding))))
        rows += [("", _text(detail)) for detail in finding.details]
    return rows


def _print_whole(console: Console, results: Sequence[SampleResult]) -> None:
    """Each result with all its verdicts; the texts of a sample once, behind its last result."""
    last = {result.sample_id: number for number, result in enumerate(results)}
    for number, result in enumerate(results):
        console.print()
        console.print(_text(headline(result)))
        rows = _finding_rows(find(result, everything=True, limit=None))
        if rows:
            _print_indented(console, 2, _rows(*rows))
        if last[result.sample_id] != number:
            continue
        for label, text in _texts(result):
            console.print()
            console.print(_text(label))
            _print_indented(console, 2, _text(printable(text, keep="\n")))


def _texts(result: SampleResult) -> Iterator[tuple[str, str]]:
    sample = result.sample
    formatter = result.goal.formatter if result.goal else DEFAULT_FORMATTER
    if sample.question is not None:
        yield "question", sample.question
    if isinstance(sample.user_input, tuple):
        yield "trace", "\n".join(render_trace(sample.user_input, formatter=formatter))
    for number, context in enumerate(sample.retrieved_contexts or (), 1):
        yield f"context {number}", context
    if sample.response is not None:
        yield "response", sample.response
    if sample.reference is not None:
        yield "reference", sample.reference


def _print_closer(console: Console, results: tuple[SampleResult, ...], path: str) -> None:
    """The command that shows the worst sample, the last one above, in full."""
    for result in rank_worst(results)[:1]:
        words = (path, "--sample", result.sample_id)
        if all(word.isprintable() for word in words):
            console.print()
            console.print(_text("to look closer"))
            line = f"anvil-local report {' '.join(map(shlex.quote, words))}"
            _print_indented(console, 2, _text(line))


def _style(finding: Finding) -> str:
    return "bold" if finding.word in {"refused", "contradicted", "not stated", "not reached"} else ""


def _print_indented(console: Console, indent: int, renderable: RenderableType) -> None:
    from rich.padding import Padding

    console.print(Padding(renderable, (0, 0, 0, indent)))


def _print_gates(console: Console, report: Report) -> None:
    console.print()
    if not report.complete:
        console.print(_text("INCOMPLETE: the run was interrupted, these are a part of the results", "bold"))
    if report.not_judged:
        console.print(
            _text(
                f"STOPPED EARLY: {report.not_judged} more could not change the outcome, and were not judged",
                "bold",
            )
        )
    if not report.gates:
        shard = report.shard
        console.print(
            _text(
                f"part {shard.index} of {shard.count}: gates are checked when the parts are merged"
                if shard
                else "no gate given"
            )
        )
        return
    failed = sum(not gate.passed for gate in report.gates)
    verdict = f"{failed} of {len(report.gates)} failed" if failed else f"{len(report.gates)} passed"
    console.print(_text(f"gates: {verdict}"))
    for gate in report.gates:
        word, style = ("PASS", "bold green") if gate.passed else ("FAIL", "bold red")
        message = excerpt(gate.message, None)
        line = _text(message if word in message else f"{word}: {message}")
        line.highlight_words([word], style)
        _print_indented(console, 2, line)
