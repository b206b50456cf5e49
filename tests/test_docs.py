"""The README says what is there: commands, variables, exit codes, options, JSON rows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from anvil_local.cli.app import app
from anvil_local.config import VARIABLES, Config
from anvil_local.errors import ExitCode
from anvil_local.prompts import PROFILES
from anvil_local.records import DropReason, Reason
from anvil_local.samples import sample_from_row

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def commands() -> set[str]:
    named = {command.name for command in app.registered_commands}
    return {name for name in named if name} | {group.name for group in app.registered_groups if group.name}


def test_every_command_stands_in_the_readme_and_no_other() -> None:
    table = set(re.findall(r"^\| `(\w+)", README, re.MULTILINE)) - {"_"}
    listed = {name for name in table if name not in {reason.value for reason in (*Reason, *DropReason)}}
    assert listed == commands()


def test_every_variable_stands_in_the_readme() -> None:
    for name in VARIABLES:
        assert f"`{name}`" in README


def test_every_exit_code_stands_in_the_readme() -> None:
    line = next(line for line in README.splitlines() if line.startswith("Exit codes:"))
    assert {int(code) for code in re.findall(r"`(\d+)`", line)} == {int(code) for code in ExitCode}


def test_every_prompt_profile_that_is_named_exists() -> None:
    for name in ("chat", "plain", "minicheck", "granite-guardian"):
        assert name in PROFILES
        assert f"`{name}`" in README


def test_the_configuration_block_is_accepted() -> None:
    import tomllib

    (block,) = blocks("toml")
    Config.model_validate(tomllib.loads(block))


def test_the_rows_shown_can_be_read() -> None:
    (block,) = blocks("json")
    samples = [
        sample_from_row(json.loads(line), where="README", number=number)
        for number, line in enumerate(block.splitlines(), 1)
    ]
    assert [sample.is_trace for sample in samples] == [False, True]


def test_the_python_shown_compiles() -> None:
    for block in blocks("python"):
        compile(block, "README.md", "exec")


@pytest.mark.parametrize("script", ["demo", "test", "check"])
def test_the_scripts_named_are_there_and_executable(script: str) -> None:
    path = ROOT / "scripts" / script
    assert path.stat().st_mode & 0o100
