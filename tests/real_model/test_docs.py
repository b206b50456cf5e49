"""What the quick start shows is what the default judge says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages import ROOT, mask, run, shown


def test_the_quick_start_shows_what_the_default_judge_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANVIL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    code = 0
    for command in shown(ROOT / "docs" / "quickstart.md"):
        if command.line == "echo $?":
            assert command.output == str(code)
            continue
        code, output = run(command.line)
        assert mask(output) == mask(command.output), command.line


@pytest.mark.parametrize(
    "arguments", [["docs/examples/python_api.py"], ["-m", "pytest", "-q", "docs/examples/test_museum.py"]]
)
def test_the_examples_run_with_the_default_judge(arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
