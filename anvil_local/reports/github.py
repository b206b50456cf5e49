"""The report where GitHub Actions shows it: annotations in the log, a summary of the step.

Formats: docs.github.com, "Workflow commands for GitHub Actions". The runner reads commands from
stdout and from stderr, so annotations need not stand between results.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from anvil_local.errors import AnvilError
from anvil_local.records import Report, SampleResult
from anvil_local.reports.findings import find, headline
from anvil_local.reports.markdown import SIZE_LIMIT, render_markdown
from anvil_local.reports.text import excerpt, plural, printable
from anvil_local.scoring import rank_worst

SHOWN = 10
"""GitHub shows ten annotations of each level a step and drops the rest."""

_STATEMENTS_SHOWN = 5


def render_annotations(report: Report) -> str:
    """Workflow commands, a line each: an error a failed gate, a warning a bad sample, worst first.

    A sample's warning stands at its line of the data file. Beyond ten of a level a notice says how
    many are missing. No text of the data can begin a command of its own.
    """
    lines = []
    if not report.complete:
        lines.append(_command("error", "the results are a part of what was asked", title="Run interrupted"))
    failed = [gate for gate in report.gates if not gate.passed]
    room = SHOWN - len(lines)
    lines += [_command("error", excerpt(gate.message, None), title="Gate failed") for gate in failed[:room]]
    worst = rank_worst(report.results)
    lines += [_warning(result) for result in worst[:SHOWN]]
    missing = []
    if len(failed) > room:
        missing.append(plural(len(failed) - room, "failed gate"))
    if len(worst) > SHOWN:
        missing.append(f"{plural(len(worst) - SHOWN, 'sample')} below 1")
    if missing:
        lines.append(_command("notice", f"not shown: {', '.join(missing)}", title="anvil-local"))
    return "".join(line + "\n" for line in lines)


def append_summary(report: Report, path: str | Path) -> None:
    """Append the Markdown summary to the file that GITHUB_STEP_SUMMARY names.

    What other commands of the step wrote stays, and counts: the file as a whole keeps GitHub's limit,
    above which it would show nothing. Raises `AnvilError` if the file cannot be written.
    """
    path = Path(path)
    try:
        taken = path.stat().st_size if path.exists() else 0
        with path.open("ab") as file:
            if taken:
                file.write(b"\n")
            limit = max(0, SIZE_LIMIT - taken - 1)
            file.write(render_markdown(report, size_limit=limit).encode("utf-8", "backslashreplace")[:limit])
    except OSError as error:
        raise AnvilError(
            f"cannot write the summary of this step: {error.strerror}",
            where=str(path),
            hint="GITHUB_STEP_SUMMARY names the file; GitHub's runner sets it",
        ) from error


def place(source: str) -> tuple[str, int] | None:
    """The file and the line of a sample's source, `FILE:LINE`; None if there is no line."""
    parts = re.fullmatch(r"(.+):([1-9][0-9]{0,8})", source, re.DOTALL)
    if not parts or "\n" in source or parts[1] in {"-", "stdin", "<stdin>"}:
        return None
    return os.path.normpath(parts[1]), int(parts[2])


def _warning(result: SampleResult) -> str:
    findings = find(result)
    lines = [headline(result)]
    lines += [f"{item.word} ({item.margin}): {item.text}" for item in findings[:_STATEMENTS_SHOWN]]
    if len(findings) > _STATEMENTS_SHOWN:
        lines.append(f"and {len(findings) - _STATEMENTS_SHOWN} more")
    where = place(result.source)
    properties = {"file": where[0], "line": str(where[1])} if where else {}
    return _command(
        "warning", "\n".join(lines), **properties, title=f"Sample {excerpt(result.sample_id, 60)}"
    )


def _command(level: str, message: str, **properties: str) -> str:
    settings = ",".join(f"{name}={_escape_property(value)}" for name, value in properties.items())
    return f"::{level} {settings}::{_escape(printable(message, keep=chr(10)))}"


def _escape(text: str) -> str:
    # As @actions/core does (packages/core/src/command.ts); the per cent sign first.
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_property(text: str) -> str:
    return _escape(printable(text)).replace(":", "%3A").replace(",", "%2C")
