"""The report as Markdown: the summary of a pull request or of a CI step."""

from __future__ import annotations

import re
from collections.abc import Iterable

from anvil_local.records import Interval, MetricSummary, Report
from anvil_local.reports.findings import describe_corrected, describe_padding, find, headline
from anvil_local.reports.text import excerpt, judge_name, plural, show_counts, show_interval, show_score
from anvil_local.scoring import rank_worst, tally

SIZE_LIMIT = 1024 * 1024
"""GitHub refuses a step summary above 1 MiB (docs.github.com, workflow commands, job summaries)."""

_STATEMENTS_SHOWN = 10


def render_markdown(report: Report, *, examples: int = 20, size_limit: int = SIZE_LIMIT) -> str:
    """A summary of at most `size_limit` bytes of UTF-8, the worst `examples` samples first.

    What does not fit is left out whole, and the last line says how much that is. Data of users is
    shown as code: no link, mention, formatting or HTML of theirs takes effect.
    """
    worst = rank_worst(report.results)
    blocks = [_title(report), _metrics(report.summaries), *_gates(report), *_notes(report)]
    if worst:
        blocks.append("### Worst samples")
    head = len(blocks)
    # Room for the closing note, whose numbers are short.
    room = size_limit - 200
    kept: list[str] = []
    shown = 0
    for block in blocks:
        room -= len(block.encode("utf-8")) + 2
        if room < 0:
            break
        kept.append(block)
    if len(kept) == head:
        items: list[str] = []
        for item in _sample_items(report, examples):
            room -= len(item.encode("utf-8")) + 1
            if room < 0:
                break
            items.append(item)
        shown = len(items)
        if items:
            kept.append("\n".join(items))
    notes = []
    if len(kept) < head:
        notes.append("Parts of this summary do not fit and were left out.")
    if shown < len(worst):
        notes.append(f"{len(worst) - shown} more samples with refused verdicts are not shown.")
    if notes:
        kept.append(f"_{' '.join(notes)}_")
    return "\n\n".join(kept) + "\n"


def code(text: str) -> str:
    """Text as inline code that holds in a paragraph, a list and a table cell.

    Character references instead of a backtick fence: inside a table a fence cannot hold a backslash
    before a pipe, and inside `<code>` GitHub makes neither mentions nor issue links.
    """
    escaped = re.sub(r"[!-/:-@\[-`{-~]", lambda match: _reference(match.group()), text)
    # GitHub links a bare `www.` even inside `<code>`.
    escaped = re.sub(r"(?i)(?<=www)\.", "&#46;", escaped)
    return f"<code>{escaped}</code>"


def _reference(char: str) -> str:
    # Harmless inside a line, and the source stays legible.
    return char if char in ",.;-/%?" else f"&#{ord(char)};"


def _title(report: Report) -> str:
    if not report.complete:
        word = "INCOMPLETE: the run was interrupted"
    elif not report.gates:
        word = "no gate"
    else:
        word = "PASS" if report.passed else "FAIL"
    data = ", ".join(code(excerpt(path, 80)) for path in report.data[:10]) or "no file"
    if len(report.data) > 10:
        data += f" and {len(report.data) - 10} more"
    judge = code(judge_name(report.judge.parts))
    return (
        f"## anvil-local: {word}\n\n"
        f"Data: {data}. Judge: {judge}, fingerprint {code(excerpt(report.judge.short, 12))}. "
        f"Version {code(excerpt(report.version, 20))}."
    )


def _metrics(summaries: Iterable[MetricSummary]) -> str:
    rows = [
        "| metric | samples | score | pooled | lowest | supported | unscored |",
        "| :-- | --: | --: | --: | --: | --: | --: |",
    ]
    for summary in summaries:
        cells = (
            code(excerpt(summary.metric, 60)),
            str(summary.samples),
            _with_interval(f"**{show_score(summary.mean)}**", summary.mean_interval),
            _with_interval(show_score(summary.pooled), summary.pooled_interval),
            show_score(summary.lowest),
            f"{summary.supported} of {summary.scored}",
            _unscored(summary),
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) if len(rows) > 2 else "No metric was scored."


def _with_interval(shown: str, interval: Interval | None) -> str:
    """An end below 0.01 is shown with `<`, so the interval is code."""
    return f"{shown} {code(text)}" if (text := show_interval(interval)) else shown


def _unscored(summary: MetricSummary) -> str:
    if not summary.reasons:
        return str(summary.unscored_samples)
    return f"{summary.unscored_samples} ({code(show_counts(summary.reasons))})"


def _gates(report: Report) -> list[str]:
    if not report.gates:
        return []
    rows = [
        f"- {'PASS' if gate.passed else '**FAIL**'} {code(excerpt(gate.message, 800))}"
        for gate in report.gates
    ]
    return ["### Gates", "\n".join(rows)]


def _notes(report: Report) -> list[str]:
    notes = []
    if report.not_judged:
        notes.append(
            f"Stopped early: {report.not_judged} more could not change the outcome and were not judged."
        )
    notes += [f"Corrected: {code(line)}." for line in describe_corrected(report)]
    if (counts := tally(report.results)).padding:
        notes.append(f"Padding: {code(describe_padding(counts, report))}.")
    if report.rejected:
        notes.append(f"{plural(len(report.rejected), 'row')} of the data refused and skipped.")
    return notes


def _sample_items(report: Report, examples: int) -> Iterable[str]:
    for result in rank_worst(report.results)[: max(0, examples)]:
        findings = find(result)
        lines = [f"- {code(headline(result))}"]
        for finding in findings[:_STATEMENTS_SHOWN]:
            lines.append(f"  - {finding.word} ({finding.margin}): {code(finding.text)}")
            lines.extend(f"    - {code(detail)}" for detail in finding.details)
        if len(findings) > _STATEMENTS_SHOWN:
            lines.append(f"  - and {len(findings) - _STATEMENTS_SHOWN} more")
        yield "\n".join(lines)
