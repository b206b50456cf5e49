"""A run that is killed, over and over, and what its disk does to it: nothing is lost, nothing is made up."""

from __future__ import annotations

import errno
import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from anvil_local.cli import app as cli
from anvil_local.cli import options
from anvil_local.judge import FakeJudge

KILLS = 4
"""In the suite; with 100 it was run once, with the same outcome."""

# A judge that takes its time, behind the real store; its answers depend on the question alone.
RUN = """
import hashlib, sys, time
from pathlib import Path
from anvil_local.cache import CachedJudge, Store
from anvil_local.cli import app, options
from anvil_local.judge import FakeJudge

def answer(task, fields):
    time.sleep(0.004)
    return hashlib.sha256(repr(sorted(fields.items())).encode()).digest()[0] % 2

options.build_judge = lambda config, **_: CachedJudge(FakeJudge(answer), Store(Path(sys.argv[1])))
app.main(["run", sys.argv[2], "--decomposition", "sentence", "--json", "-q"])
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    sentences = "It rained on day {0}. The street was wet on day {0}. Nobody came on day {0}."
    rows = [
        {"response": sentences.format(day), "retrieved_contexts": [f"Day {day}: rain."]} for day in range(60)
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def result(output: bytes) -> dict[str, Any]:
    report = json.loads(output)
    del report["created"]
    return dict(report)


def test_a_run_killed_at_random_moments_ends_with_the_same_report(tmp_path: Path, data: Path) -> None:
    def start(store: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", RUN, str(tmp_path / store), str(data)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    began = time.monotonic()
    whole, _ = start("whole").communicate(timeout=120)
    length = time.monotonic() - began
    moments = random.Random(7)
    killed = 0
    for _ in range(KILLS):
        process = start("killed")
        time.sleep(length * moments.uniform(0.3, 1))
        process.kill()
        process.communicate(timeout=60)
        killed += process.returncode == -signal.SIGKILL
    resumed, _ = start("killed").communicate(timeout=120)
    assert killed
    assert result(resumed) == result(whole)


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options, "build_judge", lambda config, **_: FakeJudge(lambda task, fields: 1))


def test_a_full_disk_costs_the_report_file_and_not_what_was_judged(
    data: Path,
    judge: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("anvil_local.reports.files.os.replace", full)
    with pytest.raises(SystemExit) as exit_:
        cli.main(["run", str(data), "--decomposition", "sentence", "-q", "-o", str(tmp_path / "out.json")])
    assert exit_.value.code == 3
    out, err = capsys.readouterr()
    assert "No space left on device" in err
    assert "180" in out
    assert not (tmp_path / "out.json").exists()
