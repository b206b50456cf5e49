"""The proof of repeatability at a small size; `scripts/bench determinism` is the full one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real_model
BENCH = Path(__file__).resolve().parents[2] / "scripts" / "bench"


def test_two_hundred_verdicts_are_bit_equal_whatever_should_not_matter() -> None:
    done = subprocess.run(
        [sys.executable, BENCH, "determinism", "--verdicts", "200"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    total = re.search(r"^(\d+) verdicts, 0 not bit-equal", done.stdout, re.MULTILINE)
    assert total is not None
    assert int(total[1]) >= 200
    for way in ("shuffled", "two threads", "adapters off and on", "out of the store", "fresh process"):
        assert way in done.stdout
