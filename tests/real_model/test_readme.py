"""The Python of the README runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from anvil_local.judge import GgufJudge

README = Path(__file__).parents[2] / "README.md"


def test_the_python_of_the_readme_runs(smollm2: GgufJudge, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert [line[2:] for line in lines[:2]] == ["It opens at nine.", "Entry is free."]
    assert all(line[0] in "01" for line in lines[:2])
