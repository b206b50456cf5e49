"""Reports into files: the suffix chooses the format, and a file is whole or not there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from anvil_local.errors import AnvilError, UsageError
from anvil_local.records import Report
from anvil_local.reports.html_report import render_html
from anvil_local.reports.json_report import json_pieces, render_json
from anvil_local.reports.junit import render_junit
from anvil_local.reports.markdown import render_markdown
from anvil_local.reports.sarif import render_sarif

FORMATS: dict[str, Callable[[Report], str]] = {
    ".html": render_html,
    ".json": render_json,
    ".md": render_markdown,
    ".sarif": render_sarif,
    ".xml": render_junit,
}
"""Suffix -> the function that writes the format."""


def check_report_paths(paths: Iterable[str | Path]) -> tuple[Path, ...]:
    """The paths, if a report can be written to each: before an hour of judging, not after it.

    Raises `UsageError` for an unknown suffix, a missing folder, a folder, or a path given twice.
    """
    checked: list[Path] = []
    for path in map(Path, paths):
        suffix = path.suffix.lower()
        if suffix not in FORMATS:
            raise UsageError(
                "unknown kind of report", value=str(path), hint=f"known suffixes: {', '.join(FORMATS)}"
            )
        if path.is_dir():
            raise UsageError("this is a folder, not a file to write a report to", value=str(path))
        if not path.parent.is_dir():
            raise UsageError(
                "the folder of this report does not exist",
                value=str(path),
                hint=f"create it first: mkdir -p '{path.parent}'",
            )
        if any(os.path.realpath(path) == os.path.realpath(other) for other in checked):
            raise UsageError("the same report file is given twice", value=str(path))
        checked.append(path)
    return tuple(checked)


def write_reports(
    report: Report, paths: Iterable[str | Path], *, min_sample_score: float | None = None
) -> tuple[Path, ...]:
    """Write the report to each path, in the format of its suffix, and return the paths.

    `min_sample_score` is for JUnit: a sample below it is a failed case.

    All paths are checked before the first is written. Each file is written beside its place and
    then moved there, so a reader sees the old report or the new one, never a part.
    """
    checked = check_report_paths(paths)
    for path in checked:
        render = FORMATS[path.suffix.lower()]
        if render is render_json:
            write_whole(path, json_pieces(report))
        elif render is render_junit:
            write_whole(path, render_junit(report, min_sample_score=min_sample_score))
        else:
            write_whole(path, render(report))
    return checked


def write_whole(path: Path, text: str | Iterable[str]) -> None:
    """Write a file so that a reader sees the old text or the new one, never a part."""
    # Through a link: the file it points to is replaced, not the link.
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name[:100]}.{os.getpid()}.tmp")
    try:
        # Not `tempfile`: its files are readable by the owner alone, and a report is for others too.
        with open(temporary, "w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
            file.writelines([text] if isinstance(text, str) else text)
        os.replace(temporary, target)
    except OSError as error:
        raise AnvilError(f"cannot write this report: {error.strerror}", where=str(path)) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
