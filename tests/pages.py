"""The commands that README and docs show, with the output that they show, and a way to run them.

```console              every line `$ anvil-local ...` runs; the output, if any is shown, is compared
```console real-model   the same with the default judge; without a model only that it runs
$ echo $?               shows the exit code of the command before
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from anvil_local.cli.app import main

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Shown:
    """One command of a page."""

    line: str
    output: str
    real: bool


def shown(page: Path) -> list[Shown]:
    """The commands of a page in order."""
    found = []
    text = page.read_text(encoding="utf-8")
    for flags, block in re.findall(r"```console([^\n]*)\n(.*?)```", text, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            found.append(Shown(line.strip(), output.rstrip(), "real-model" in flags))
    return found


def run(line: str) -> tuple[int, str]:
    """Exit code and output, stdout and stderr as they come, without warnings about the judge."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            main(shlex.split(line, comments=True)[1:])
        except SystemExit as exit_:
            code = int(exit_.code or 0)
    lines = [each.rstrip() for each in out.getvalue().splitlines() if not each.startswith("warning: ")]
    return code, "\n".join(lines).rstrip()


def mask(text: str) -> str:
    """Without margins and fingerprints, which another build may change, and without dates."""
    return re.sub(r"[+-]\d+\.\d\d|\b[0-9a-f]{12}\b|\b\d{4}-\d\d-\d\d\b", "#", text)
