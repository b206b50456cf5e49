"""stdout for results, stderr for notes and progress."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from anvil_local.errors import AnvilError

if TYPE_CHECKING:
    from rich.console import Console

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


def show_report(
    report: Report,
    paths: Sequence[Path],
    *,
    json: bool,
    verbose: bool,
    github: bool,
    min_sample_score: float | None,
) -> None:
    """Show a report and write its files, in this order: a full disk must not cost what was judged."""
    from anvil_local.reports import render_json, render_terminal, write_reports

    if github:
        show_github(report)
    if json:
        show(render_json(report))
    else:
        saved = next((str(path) for path in paths if path.suffix.lower() == ".json"), None)
        color = use_color(sys.stdout)
        show(render_terminal(report, width=width(), color=color, verbose=verbose, path=saved))
    write_reports(report, paths, min_sample_score=min_sample_score)


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
def progress(
    total: int | None, *, quiet: bool, hits: Callable[[], int] = lambda: 0
) -> Iterator[Callable[[Progress], None] | None]:
    """Progress on stderr: a bar on a terminal, else a line every 30 seconds.

    `hits` tells how many verdicts came from the cache so far.
    """
    if quiet:
        yield None
    elif sys.stderr.isatty():
        from rich.console import Console

        with _bar(total, hits, Console(stderr=True)) as update:
            yield update
    else:
        yield _lines(total, hits)


@contextlib.contextmanager
def _bar(
    total: int | None, hits: Callable[[], int], terminal: Console
) -> Iterator[Callable[[Progress], None]]:
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("{task.fields[state]}"),
    )
    started = time.monotonic()
    with Bar(*columns, console=terminal, transient=True) as bar:
        task = bar.add_task("starting", total=total, state="")

        def update(state: Progress) -> None:
            words = {"prepare": "reading", "judge": "judging"}
            bar.update(
                task,
                completed=state.finished,
                description=words[state.stage],
                state=describe_progress(state, total, time.monotonic() - started, hits()),
            )

        yield update


def _lines(total: int | None, hits: Callable[[], int]) -> Callable[[Progress], None]:
    from anvil_local.reports.text import plural

    started = last = time.monotonic()

    def update(state: Progress) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < _EVERY:
            return
        last = now
        of = f"{state.finished} of " if total is not None else ""
        samples = plural(state.finished if total is None else total, "sample")
        say(f"{of}{samples}, {describe_progress(state, total, now - started, hits())}")

    return update


def describe_progress(state: Progress, total: int | None, seconds: float, hits: int) -> str:
    """`132 verdicts, 20 cached, 1.6/s, 1 m 20 s left`, after that many seconds.

    The rate is of all verdicts, cached ones too; answers found in the cache can outnumber verdicts,
    since a long context or a trace takes several. The time left is that of the samples so far,
    carried on; before the first sample is finished nobody knows it.
    """
    from anvil_local.reports.text import plural

    parts = [plural(state.verdicts, "verdict")]
    if hits:
        parts.append(f"{hits} cached")
    if seconds > 0:
        parts.append(f"{state.verdicts / seconds:.1f}/s")
    if total and state.finished:
        parts.append(f"{show_duration((total - state.finished) * seconds / state.finished)} left")
    return ", ".join(parts)


def show_duration(seconds: float) -> str:
    """`45 s`, `1 m 20 s`, `2 h 5 m`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} m {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} m"
