"""`anvil-local label`: a person checks verdicts of a report, one by one."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anvil_local.cli import console, options
from anvil_local.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from anvil_local.labels import Label, Pick, Selection

_KEYS = "1 supported   0 not supported   s skip   u undo   q quit"


def label(
    report: Annotated[Path, typer.Argument(help="A report that `run -o out.json` wrote.")],
    count: Annotated[int, typer.Option("--count", "-n", help="Verdicts to label.", min=1)] = 50,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The labels; an earlier sitting is taken up again.")
    ] = Path("labels.jsonl"),
    random_share: Annotated[
        float, typer.Option(help="Share drawn at random; the rest is nearest to the threshold.")
    ] = 0.5,
    seed: Annotated[int, typer.Option(help="Seed of the random part and of the order.", min=0)] = 0,
    quiet: options.Quiet = False,
) -> int:
    """Label the verdicts that teach most about the judge, for `calibrate`.

    Each statement is shown with its context, without what the judge said. Keys: 1 the context supports it;
    0 it does not; s skip (asked again next time); u take the last label back; q quit. Every label is
    written at once: a sitting can end anywhere.
    """
    from anvil_local.labels import Label, read_labels, select_verdicts
    from anvil_local.reports import load_report

    if output.is_dir() or not output.absolute().parent.is_dir():
        raise UsageError("labels cannot be written there: no such folder", value=str(output))
    selection = select_verdicts(load_report(report), count=count, random_share=random_share, seed=seed)
    labels = read_labels(output, selection)
    known = {item.pick.id for item in labels}
    if known and not quiet:
        console.say(f"note: {len(known)} of {len(selection.picks)} are labelled already in {output}")
    open_picks = [pick for pick in selection.picks if pick.id not in known]
    sitting: list[Label | None] = []  # None: skipped
    quit_asked = False
    while len(sitting) < len(open_picks) and not quit_asked:
        pick = open_picks[len(sitting)]
        place = len(known) + sum(item is not None for item in sitting) + 1
        console.show("\n".join(_card(pick, f"{place} of {len(selection.picks)}")))
        key = _ask()
        if key == "q":
            quit_asked = True
        elif key == "u" and not sitting:
            console.show("nothing to take back in this sitting")
        elif key == "u":
            sitting.pop()
        elif key == "s":
            sitting.append(None)
        else:
            sitting.append(Label(pick=pick, label=1 if key == "1" else 0))
        if key in "01u":
            _write(output, [*labels, *(item for item in sitting if item)], selection)
    labels += [item for item in sitting if item]
    if not quiet:
        for line in _end(labels, selection, output):
            console.say(line)
    return ExitCode.OK


def _write(path: Path, labels: list[Label], selection: Selection) -> None:
    from anvil_local.labels import render_labels
    from anvil_local.reports.files import write_whole

    write_whole(path, render_labels(labels, selection))


def _card(pick: Pick, place: str) -> Iterator[str]:
    """One pick on the screen; the statement is last, next to the keys."""
    from anvil_local.reports import printable

    width = console.width()
    yield ""
    yield f"--- {place} ".ljust(width, "-")
    for name, text in (("context", pick.context), ("question", pick.question), ("statement", pick.statement)):
        if not text:
            continue
        yield f"{name}:"
        for line in printable(text, keep="\n").split("\n"):
            yield from textwrap.wrap(line, width - 2, initial_indent="  ", subsequent_indent="  ") or [""]
        yield ""
    yield "Can the statement be inferred directly from the context?"
    yield _KEYS


def _ask() -> str:
    """A key that means something: at once on a terminal, else the first letter of a line; q at the end."""
    while True:
        key = _read_key()
        if key in tuple("10suq"):
            return key
        console.show(_KEYS)


def _read_key() -> str:
    if not sys.stdin.isatty():
        line = sys.stdin.readline()
        return line.strip().lower()[:1] if line else "q"
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)  # Ctrl-C still interrupts
        key = sys.stdin.read(1)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
    return "q" if key in ("", "\x04") else key.lower()


def _end(labels: list[Label], selection: Selection, output: Path) -> Iterator[str]:
    from anvil_local.labels import count_strata
    from anvil_local.reports.text import plural

    done, wanted = count_strata(item.pick for item in labels), count_strata(selection.picks)
    population = selection.population
    yield (
        f"{len(labels)} of {len(selection.picks)} labelled: {done['near']} of {wanted['near']} nearest to "
        f"the threshold, {done['random']} of {wanted['random']} drawn from {population['random']} others"
    )
    if selection.aside:
        yield f"{plural(selection.aside, 'statement')} without a model's verdict cannot be picked"
    if not labels:
        return
    if not done["random"]:
        yield (
            "note: none of the random part is labelled yet: these labels say nothing of verdicts far "
            "from the threshold"
        )
    yield f"next: anvil-local calibrate {output}"
