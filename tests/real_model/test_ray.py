"""Two workers of a real Ray cluster with the real judge: the bits of one process, whoever is killed."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from anvil_local import GgufJudge, Options, Report, Sample
from anvil_local.distributed import RayExecutor
from anvil_local.metrics import choose_metrics
from anvil_local.models import resolve_model
from anvil_local.records import SampleResult
from anvil_local.runner import Progress, run_samples
from anvil_local.samples import sample_from_row

ROOT = Path(__file__).parents[2]
CHOICES = choose_metrics(None)
HOW = Options(decomposition="sentence")

pytest.importorskip("ray")
# Ray leaves the processes that it started, and their logs, to the end of the interpreter.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def rows() -> list[dict[str, Any]]:
    """The examples of the package three times, with other words each time, and one of its traces."""
    folder = ROOT / "anvil_local" / "examples"
    answers = [json.loads(line) for line in (folder / "answers.jsonl").read_text("utf-8").splitlines()]
    traces = [json.loads(line) for line in (folder / "traces.jsonl").read_text("utf-8").splitlines()]
    found = [
        {
            **{key: row[key] for key in ("user_input", "response", "retrieved_contexts")},
            "id": f"{row['id']}-{number}",
            "response": row["response"]
            + ["", " This was checked in May.", " Nobody has checked this."][number],
        }
        for number in range(3)
        for row in answers
    ]
    return [*found, traces[0]]


@pytest.fixture(scope="module")
def samples() -> list[Sample]:
    return [sample_from_row(row, where="examples", number=n) for n, row in enumerate(rows(), start=1)]


@pytest.fixture(scope="module")
def alone(smollm2: GgufJudge, samples: list[Sample]) -> list[SampleResult]:
    """The results of this process."""
    return list(run_samples(samples, judge=smollm2, choices=CHOICES, options=HOW))


def build(models: Path, pids: Path, threads: int) -> GgufJudge:
    """The judge of the fixture `smollm2`; its process leaves its number behind."""
    (pids / str(os.getpid())).touch()
    return GgufJudge(resolve_model("smollm2-135m", folder=models), window=2048, threads=threads)


def test_two_workers_give_the_bits_of_one_process_though_one_is_killed(
    smollm2: GgufJudge,
    samples: list[Sample],
    alone: list[SampleResult],
    models_dir: Path,
    tmp_path: Path,
    socket_enabled: None,
) -> None:
    said: list[str] = []
    killed: list[int] = []

    def kill_one(progress: Progress) -> None:
        if not killed and 0 < progress.finished < len(samples) - 16:
            killed.append(int(sorted(os.listdir(tmp_path))[0]))
            os.kill(killed[0], signal.SIGKILL)

    executor = RayExecutor(partial(build, models_dir, tmp_path), workers=2, say=said.append)
    results = list(executor(samples, judge=smollm2, choices=CHOICES, options=HOW, on_progress=kill_one))
    assert len(killed) == 1
    assert len(os.listdir(tmp_path)) == 3
    assert [result.sample_id for result in results] == [sample.id for sample in samples]
    # Every margin is a float of 64 bits, compared as it is.
    assert results == alone
    assert sum(len(result.statements) for result in results) > 80
    assert len(said) == 1, said


def placeless(results: Sequence[SampleResult]) -> list[dict[str, Any]]:
    """All but the file that a sample came from."""
    return [result.model_dump(exclude={"sample": {"source"}}) for result in results]


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows()), encoding="utf-8")
    return [
        *(sys.executable, "-c", "from anvil_local.cli import main; main()"),
        *("run", str(data), "--decomposition", "sentence", "--json", "--cache-dir", str(tmp_path / "cache")),
        *("--window", "2048", "--engine", "ray", "--workers", "2"),
    ]


def test_ctrl_c_on_a_cluster_loses_no_finished_group_and_the_next_run_goes_on(
    alone: list[SampleResult], command: list[str], tmp_path: Path
) -> None:
    store = tmp_path / "cache" / "verdicts.sqlite3"

    def kept() -> int:
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

    # A terminal sends Ctrl-C to the whole group of processes, Ray's among them.
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    try:
        ended = time.monotonic() + 300
        while not kept() and time.monotonic() < ended:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 130, err.decode()
    report = Report.model_validate_json(out)
    assert not report.complete
    assert len(report.results) < len(alone)
    assert placeless(report.results) == placeless(alone[: len(report.results)])

    found = kept()
    assert found
    done = subprocess.run(command, capture_output=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr.decode()
    assert placeless(Report.model_validate_json(done.stdout).results) == placeless(alone)
    note = next(line for line in done.stderr.decode().splitlines() if "from the cache: " in line)
    assert int(note.split()[4]) >= found
