"""A run that is killed, over and over, and what its disk does to it: nothing is lost, nothing is made up."""

from __future__ import annotations

import errno
import json
import random
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
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


# Notes and progress are shown: progress as a line for every event.
TELL = (
    RUN.replace("0.004", "0.01")
    .replace(', "--json", "-q"', ', "--json", *sys.argv[3:]')
    .replace("app.main(", "from anvil_local.cli import console\nconsole._EVERY = 0\napp.main(")
)


def stop(signal_: signal.Signals, store: Path, data: Path, *arguments: str, after: int) -> tuple[int, bytes]:
    """Start a run and end it with a signal when the store has so many verdicts; exit code and stdout."""
    command = [sys.executable, "-c", TELL, str(store), str(data), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    ended = time.monotonic() + 60
    while verdicts_in(store) < after and time.monotonic() < ended:
        time.sleep(0.01)
    process.send_signal(signal_)
    out, _ = process.communicate(timeout=60)
    return process.returncode, out


def tell(store: Path, data: Path, *arguments: str) -> tuple[bytes, list[str]]:
    """A run to its end: its report, and the lines on stderr."""
    command = [sys.executable, "-c", TELL, str(store), str(data), *arguments]
    done = subprocess.run(command, capture_output=True, check=True, timeout=120)
    return done.stdout, done.stderr.decode().splitlines()


def verdicts_in(store: Path) -> int:
    """The verdicts that a store holds; texts and token counts are entries too."""
    if not store.exists():
        return 0
    with closing(sqlite3.connect(store, timeout=30)) as connection:
        try:
            (count,) = connection.execute(
                "SELECT count(*) FROM entry WHERE value LIKE '{%\"margin\"%'"
            ).fetchone()
        except sqlite3.OperationalError:  # the table is not made yet
            return 0
    return int(count)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_run_goes_on_where_it_stopped_and_its_counts_are_right(
    how: signal.Signals, tmp_path: Path, data: Path
) -> None:
    whole, _ = tell(tmp_path / "whole", data)
    store = tmp_path / "stopped"
    code, out = stop(how, store, data, after=70)
    kept = verdicts_in(store)
    assert 70 <= kept < 180
    if how is signal.SIGINT:
        assert code == 130
        part = json.loads(out)
        assert not part["complete"]
        assert not part["passed"]
        # Whole groups of 32 samples with 3 statements each.
        assert part["results"] == result(whole)["results"][: len(part["results"])]
        assert len(part["results"]) in (0, 32)
    else:
        assert (code, out) == (-signal.SIGKILL, b"")

    resumed, lines = tell(store, data)
    assert result(resumed) == result(whole)
    assert f"note: from the cache: {kept} verdicts (--refresh judges anew)" in lines
    assert verdicts_in(store) == 180
    progress = [re.match(r"(\d+) of 60 samples, (\d+) verdicts(?:, (\d+) cached)?", line) for line in lines]
    counts = [tuple(int(number or 0) for number in match.groups()) for match in progress if match]
    assert counts == sorted(counts)
    assert counts[-1] == (60, 180, kept)
    # Of what was kept nothing is judged again, so it comes first.
    assert all(cached == min(verdicts, kept) for finished, verdicts, cached in counts if finished)


def test_a_stopped_part_judged_again_and_merged_is_the_whole_run(tmp_path: Path, data: Path) -> None:
    whole, _ = tell(tmp_path / "whole", data)
    store = tmp_path / "parts"
    paths = [tmp_path / f"part-{index}.json" for index in (1, 2)]
    first = ["--shard", "1/2", "-o", str(paths[0])]
    code, _ = stop(signal.SIGINT, store, data, *first, after=20)
    assert code == 130
    second = ["--shard", "2/2", "-o", str(paths[1])]
    stop(signal.SIGKILL, store, data, *second, after=110)
    tell(store, data, *second)
    merge = [sys.executable, "-c", "from anvil_local.cli import main; main()", "merge", *map(str, paths)]
    refused = subprocess.run(merge, capture_output=True, check=False, timeout=60)
    assert refused.returncode == 2
    assert b"this part was interrupted" in refused.stderr
    tell(store, data, *first)
    merged = subprocess.run([*merge, "--json"], capture_output=True, check=True, timeout=60)
    assert result(merged.stdout) == result(whole)


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
