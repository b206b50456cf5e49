"""What the guides show is what the default judge says."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import ROOT, mask, run, shown

# What a careful reader answers to the twelve statements of the calibration guide.
KEYS = "1\n0\n0\n" + "1\n" * 9


@pytest.mark.parametrize("page", ["quickstart.md", "calibrate.md"])
def test_a_guide_shows_what_the_default_judge_says(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(KEYS))
    monkeypatch.setenv("ANVIL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    code = 0
    for command in shown(ROOT / "docs" / page):
        if command.line == "echo $?":
            assert command.output == str(code)
            continue
        code, output = run(command.line)
        assert not command.output or mask(output) == mask(command.output), command.line


@pytest.mark.parametrize(
    "arguments", [["docs/examples/python_api.py"], ["-m", "pytest", "-q", "docs/examples/test_museum.py"]]
)
def test_the_examples_run_with_the_default_judge(arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
