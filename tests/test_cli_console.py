"""Progress: what a person and a log are told while a run goes on."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from anvil_local.cli import console
from anvil_local.runner import Progress


class Clock:
    """Stands in for `time.monotonic`."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(console.time, "monotonic", clock)
    return clock


def test_a_log_gets_one_line_in_30_seconds_with_rate_cache_and_time_left(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    with console.progress(40, quiet=False, hits=lambda: 20) as update:
        assert update
        for second in range(1, 65):
            clock.now = 100.0 + second
            update(Progress(finished=second // 6, verdicts=second * 2, stage="judge"))
    assert capsys.readouterr().err.splitlines() == [
        "5 of 40 samples, 60 verdicts, 20 cached, 2.0/s, 3 m 30 s left",
        "10 of 40 samples, 120 verdicts, 20 cached, 2.0/s, 3 m 0 s left",
    ]


def test_quiet_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with console.progress(3, quiet=True) as update:
        assert update is None
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("total", [None, 12345])
def test_the_bar_fits_80_columns_and_leaves_nothing_behind(clock: Clock, total: int | None) -> None:
    output = io.StringIO()
    terminal = Console(file=output, force_terminal=True, width=80, height=24, _environ={})
    with console._bar(total, lambda: 98765, terminal) as update:
        clock.now += 4000
        update(Progress(finished=1234, verdicts=123456, stage="judge"))
        lines = terminal.render_lines(terminal._live_stack[-1].get_renderable())
    shown = "".join(segment.text for segment in lines[0])
    assert len(lines) == 1
    assert len(shown) <= 80
    for words in ("judging", "1234", "123456 verdicts", "98765 cached", "30.9/s"):
        assert words in shown
    if total:
        assert "10 h 0 m left" in shown
    # The line is erased at the end.
    assert output.getvalue().endswith("\x1b[2K")


def test_nothing_is_divided_by_zero_at_the_start() -> None:
    start = Progress(finished=0, verdicts=0, stage="prepare")
    assert console.describe_progress(start, 0, 0.0, 0) == "0 verdicts"
    assert console.describe_progress(start, 5, 1.0, 3) == "0 verdicts, 3 cached, 0.0/s"


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.2, "0 s"), (59.6, "1 m 0 s"), (80, "1 m 20 s"), (7500, "2 h 5 m")]
)
def test_a_duration_is_short(seconds: float, shown: str) -> None:
    assert re.fullmatch(r"(\d+ [hms] ?){1,2}", shown)
    assert console.show_duration(seconds) == shown


PROGRAM = """
import sys, time
sys.path.insert(0, {root!r})
from anvil_local.cli import main, options
from anvil_local.judge import FakeJudge
def answer(task, fields):
    time.sleep(0.05)
    return int("nine" in fields["statement"])
options.build_judge = lambda config, **_: FakeJudge(answer)
main(["run", "answers.jsonl", "--decomposition", "sentence", "--no-cache"])
"""


def test_a_real_terminal_shows_the_work_in_one_line_of_80_columns_and_then_the_report(tmp_path: Path) -> None:
    rows = [
        {"response": f"It opens at nine. Room {n} is free.", "retrieved_contexts": [f"Nine, {n}."]}
        for n in range(40)
    ]
    (tmp_path / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("COLUMNS")
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(root=str(Path(__file__).parents[1]))],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        written = b""
        # A terminal whose program is gone gives an error, not an end.
        with contextlib.suppress(OSError):
            while piece := os.read(ours, 65536):
                written += piece
    os.close(ours)
    assert process.returncode == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.decode("utf-8"))
    lines = re.split(r"[\r\n]+", text)
    # Warnings are for logs too: the terminal wraps them.
    assert max(cell_len(line) for line in lines if not line.startswith("warning: ")) <= 80
    bars = [line for line in lines if line.startswith("judging")]
    middle = bars[len(bars) // 2]
    assert re.fullmatch(r"judging .*\d+/40 \d+ verdicts, \d+\.\d/s, (\d+ [ms] ?)+ left *", middle)
    # The bar is gone when the report comes, whose last lines are the worst sample and the gates.
    report = lines[lines.index("data      answers.jsonl") :]
    assert not [line for line in report if line.startswith("judging")]
    worst = max(number for number, line in enumerate(report) if "refused" in line and "is free." in line)
    assert worst < report.index("no gate given")
