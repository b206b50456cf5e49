"""Progress: what a person and a log are told while a run goes on."""

from __future__ import annotations

import io
import re

import pytest
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
