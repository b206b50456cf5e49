"""What a reader is told about one result, the same in every format for people."""

from __future__ import annotations

from typing import NamedTuple

from anvil_local.records import GoalVerdicts, JudgedStatement, Report, SampleResult, Verdict
from anvil_local.reports.text import excerpt, plural, show_counts, show_interval, show_margin, show_score
from anvil_local.scoring import Tally

_ROWS_SHOWN = 5

_WORDS = {0: "refused", 1: "supported", None: "undecided"}
_GOAL_WORDS = {0: "not reached", 1: "reached", None: "undecided"}


class Finding(NamedTuple):
    """One verdict in words; every part is printable."""

    word: str
    """`refused` (with a known shape `contradicted` or `not stated`), `supported`, `not reached`, `reached` or
    `undecided`."""
    margin: str
    """The margin, or the reason why the model gave none."""
    text: str
    """The statement or the desired outcome."""
    details: tuple[str, ...] = ()
    """Further lines, each with its label: the place in the response, the end state."""


def find(result: SampleResult, *, everything: bool = False, limit: int | None = 160) -> list[Finding]:
    """The refused verdicts of a result in the order of the response, or all of them."""
    findings = [
        _statement(judged, result.response, limit)
        for judged in result.statements
        if everything or judged.verdict.value == 0
    ]
    if result.goal and (everything or result.goal.reached.value == 0):
        findings.append(_goal(result.goal, limit))
    return findings


def headline(result: SampleResult) -> str:
    """`sample 7 (answers.jsonl:7), faithfulness 0.33, 1 of 3 supported`."""
    place = f" ({excerpt(result.source, 60)})" if result.source else ""
    line = f"sample {excerpt(result.sample_id, 60)}{place}, {excerpt(result.metric, 60)} "
    if result.score is None:
        return f"{line}unscored: {result.reason or 'no reason given'}"
    line += show_score(result.score)
    if result.statements:
        line += f", {result.supported} of {result.scored} supported"
        if result.unscored:
            line += f", {result.unscored} undecided"
    if result.flags:
        line += f" [{', '.join(excerpt(flag, 40) for flag in result.flags)}]"
    return line


def note_rows(notes: Tally, report: Report) -> list[tuple[str, str]]:
    """What a reader of the scores should know besides: label and text."""
    rows: list[tuple[str, str]] = [("corrected", line) for line in describe_corrected(report)]
    if notes.dropped:
        rows.append(("dropped statements", _total(notes.dropped)))
    if notes.without_claim:
        rows.append(("without a claim", f"{notes.without_claim} of {plural(notes.sentences, 'sentence')}"))
    if notes.fallbacks:
        rows.append(("sentences kept whole", f"{notes.fallbacks} of {plural(notes.sentences, 'sentence')}"))
    if notes.padding:
        rows.append(("padding", describe_padding(notes, report)))
    if notes.undecided:
        rows.append(("undecided verdicts", _total(notes.undecided)))
    if notes.windowed:
        rows.append(("context in windows", plural(notes.windowed, "verdict")))
    if notes.cut_traces:
        rows.append(("traces cut to fit", str(notes.cut_traces)))
    if notes.flags:
        rows.append(("flags", show_counts(notes.flags)))
    rows += [("row refused", excerpt(line, 200)) for line in report.rejected[:_ROWS_SHOWN]]
    if len(report.rejected) > _ROWS_SHOWN:
        rows.append(("row refused", f"and {len(report.rejected) - _ROWS_SHOWN} more"))
    return rows


def describe_corrected(report: Report) -> list[str]:
    """The pooled shares without the judge's errors, beside the raw ones, a line a metric."""
    lines = []
    for name, rate in report.corrected.items():
        raw = f"{excerpt(name, 60)} pooled {show_score(rate.raw)}"
        if rate.corrected is None:
            lines.append(f"{raw}: no corrected rate, {rate.interval.reason}")
        else:
            lines.append(
                f"{raw}; without the judge's errors {show_score(rate.corrected)} "
                f"{show_interval(rate.interval)} ({rate.method}, {plural(rate.labels, 'label')} of its card)"
            )
    return lines


def describe_padding(notes: Tally, report: Report) -> str:
    """How many supported statements are padding, and the score without them, with its interval."""
    lines = []
    for summary in report.summaries:
        if summary.padded:
            line = f"{show_score(summary.adjusted)} {show_interval(summary.adjusted_interval)}".rstrip()
            if summary.only_padding:
                line += f", {plural(summary.only_padding, 'sample')} nothing but padding"
            lines.append(line)
    return f"{_total(notes.padding)} supported; score without them {'; '.join(lines)}"


def _total(counts: dict[str, int]) -> str:
    return f"{sum(counts.values())} ({show_counts(counts)})"


def _statement(judged: JudgedStatement, response: str | None, limit: int | None) -> Finding:
    statement, verdict = judged.statement, judged.verdict
    text = excerpt(statement.text, limit)
    details = []
    if response is not None:
        span = excerpt(response[statement.start : statement.end], limit)
        if span and span != text:
            details.append(f"in: {span}")
    if judged.padding:
        details.append("padding: " + ", ".join(str(way).replace("_", " ") for way in judged.padding))
    word = str(judged.shape).replace("_", " ") if judged.shape else _WORDS[verdict.value]
    return Finding(word, _margin(verdict), text, tuple(details))


def _goal(goal: GoalVerdicts, limit: int | None) -> Finding:
    source = "reference" if goal.desired_from == "reference" else "inferred goal"
    details = []
    if goal.workflow:
        if goal.desired_from == "reference":
            details.append(f"inferred goal: {excerpt(goal.workflow.user_goal, limit)}")
        details.append(f"end state: {excerpt(goal.workflow.end_state, limit)}")
    parts = (("claimed", goal.claimed), ("done", goal.done))
    details.append(", ".join(f"{name}: {_GOAL_WORDS[part.value]} ({_margin(part)})" for name, part in parts))
    if goal.cut_tokens:
        details.append(f"the trace was cut by {plural(goal.cut_tokens, 'token')}{_cut(goal)}")
    return Finding(
        _GOAL_WORDS[goal.reached.value],
        _margin(goal.reached),
        f"{source}: {excerpt(goal.desired, limit)}",
        tuple(details),
    )


def _cut(goal: GoalVerdicts) -> str:
    """Which messages that were."""
    parts = [
        f"{word} {', '.join(map(str, numbers[:_ROWS_SHOWN]))}"
        f"{' and more' if len(numbers) > _ROWS_SHOWN else ''}"
        for word, numbers in (("shortened", goal.shortened), ("left out", goal.left_out))
        if numbers
    ]
    return f" (messages {'; '.join(parts)})" if parts else ""


def _margin(verdict: Verdict) -> str:
    if verdict.margin is None and verdict.reason:
        return str(verdict.reason)
    return show_margin(verdict.margin)
