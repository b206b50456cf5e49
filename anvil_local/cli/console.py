"""stdout for results, stderr for notes and progress."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from typing import IO, TYPE_CHECKING, Any

from anvil_local.errors import AnvilError

if TYPE_CHECKING:
    from anvil_local.records import Report
    from anvil_local.runner import Progress

_EVERY = 30.0
"""Seconds between progress lines when stderr is not a terminal."""


def prepare_streams() -> None:
    """Text that a terminal's encoding cannot show is escaped, never a crash."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def say(text: str) -> None:
    """A note, to stderr."""
    print(text, file=sys.stderr, flush=True)


def show(text: str) -> None:
    """A result, to stdout. A reader that has gone away (`| head`) is no failure of the run."""
    try:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # The interpreter flushes stdout at exit: give it something that cannot fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show_json(value: Any) -> None:
    """One JSON document, to stdout."""
    show(json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False))


def show_github(report: Report) -> None:
    """Annotations for GitHub Actions to stderr, and the step's summary into the file that it names."""
    from anvil_local.reports.github import append_summary, render_annotations

    sys.stderr.write(render_annotations(report))
    sys.stderr.flush()
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        append_summary(report, summary)


def show_error(error: AnvilError) -> None:
    """An error of ours, to stderr."""
    say(f"error: {error}")


def use_color(stream: IO[str]) -> bool:
    """Whether to colour: a terminal, and neither NO_COLOR nor a dumb one."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width() -> int:
    """Columns of the terminal, 80 when there is none; wider than 120 helps nobody."""
    return min(120, shutil.get_terminal_size((80, 24)).columns)


@contextlib.contextmanager
def progress(total: int | None, *, quiet: bool) -> Iterator[Callable[[Progress], None] | None]:
    """Progress on stderr: a bar on a terminal, else a line every 30 seconds."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _bar(total) as update:
            yield update
    else:
        yield _lines(total)


@contextlib.contextmanager
def _bar(total: int | None) -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("samples"),
        TextColumn("{task.fields[verdicts]} verdicts"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=total, verdicts=0)

        def update(state: Progress) -> None:
            words = {"prepare": "reading", "judge": "judging"}
            bar.update(
                task, completed=state.finished, description=words[state.stage], verdicts=state.verdicts
            )

        yield update


def _lines(total: int | None) -> Callable[[Progress], None]:
    started = last = time.monotonic()

    def update(state: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < _EVERY:
            return
        last = now
        of = f" of {total}" if total is not None else ""
        rate = state.verdicts / (now - started)
        left = ""
        if total and state.finished:
            left = f", about {(total - state.finished) * (now - started) / state.finished:.0f} s left"
        say(f"{state.finished}{of} samples, {state.verdicts} verdicts, {rate:.1f} a second{left}")

    return update
