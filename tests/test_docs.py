"""README and docs say what is there: commands, variables, exit codes, options, links, JSON rows."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer

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


# docs/

DOCS = sorted((ROOT / "docs").rglob("*.md"))


def shown_commands() -> list[tuple[str, str]]:
    """Every `$ anvil-local ...` of README and docs, with its page."""
    found = []
    for page in (ROOT / "README.md", *DOCS):
        for block in re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            lines = [line for line in block.splitlines() if line.startswith("$ anvil-local ")]
            found += [(page.name, line.removeprefix("$ ")) for line in lines]
    return found


def test_the_page_of_costs_is_what_was_measured() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "cost", "page", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_reference_pages_are_what_the_code_says() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "docs", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", [ROOT / "README.md", *DOCS], ids=lambda page: page.name)
def test_every_link_leads_to_a_file(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http:", "https:")):
            assert (page.parent / target).exists(), target


def test_every_page_stands_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in DOCS:
        name = page.relative_to(ROOT / "docs").as_posix()
        assert name == "index.md" or f"({name})" in index, name


@pytest.mark.parametrize(("page", "line"), shown_commands())
def test_every_command_shown_is_understood(page: str, line: str) -> None:
    command = typer.main.get_command(app)
    words = shlex.split(line, comments=True)[1:]
    context = command.context_class(command)
    while hasattr(command, "get_command"):
        name = words.pop(0)
        found = command.get_command(context, name)
        assert found is not None, f"{page}: no command {name}"
        command = found
        context = command.context_class(command, parent=context, info_name=name)
    # Options and arguments are read, files are not looked for.
    command.make_parser(context).parse_args(words)


def test_the_gates_shown_are_gates() -> None:
    from anvil_local.gates import parse_rules

    shown = "\n".join(line for _, line in shown_commands())
    rules = re.findall(r"--gate '([^']+)'", shown)
    assert len(rules) > 4
    parse_rules(rules)


# The reference shows signatures, which are no programs.
@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_the_python_of_the_pages_compiles(page: Path) -> None:
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        compile(block, page.name, "exec")
