"""The CI recipes: their files are well-formed, what they name is there, and their judging line runs."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from anvil_local.cli import app as cli
from anvil_local.cli import options
from anvil_local.judge import FakeJudge

ROOT = Path(__file__).parents[1]
CI = ROOT / "docs" / "ci"
RECIPES = sorted(path for path in CI.iterdir() if path.is_file())
LINE = re.compile(r"(?:anvil_local/\.venv/bin/anvil-local|\$\(ANVIL\)) (run .*)")
# The others have tests of their own.
WITH_LINE = [path for path in RECIPES if LINE.search(path.read_text(encoding="utf-8"))]


def line_of(path: Path) -> list[str]:
    (found,) = LINE.findall(path.read_text(encoding="utf-8"))
    return shlex.split(found)


def test_each_recipe_stands_on_the_page() -> None:
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    assert len(WITH_LINE) == 3
    for path in RECIPES:
        assert f"(ci/{path.name})" in page


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.name)
def test_what_a_recipe_names_of_this_project_is_there(path: Path) -> None:
    for name in re.findall(r"anvil_local/((?!\.venv)[\w./*-]+)", path.read_text(encoding="utf-8")):
        assert list(ROOT.glob(name)), name


@pytest.mark.parametrize("path", WITH_LINE, ids=lambda path: path.name)
@pytest.mark.parametrize(("answer", "code"), [(1, 0), (0, 1)])
def test_the_line_that_judges_runs_and_its_exit_code_is_the_gate_s(
    path: Path, answer: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"response": "It opens at nine.", "retrieved_contexts": ["Open from nine to five."]}
    (tmp_path / "answers.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    monkeypatch.setattr(options, "build_judge", lambda config, **_: FakeJudge([answer]))
    with pytest.raises(SystemExit) as exit_:
        cli.main(line_of(path))
    assert exit_.value.code == code
    written = {path.name for path in tmp_path.iterdir()}
    assert {word for word in line_of(path) if word.startswith("report.")} <= written


@pytest.mark.parametrize("name", ["github.yml", "gitlab.yml"])
def test_the_yaml_is_well_formed(name: str) -> None:
    yaml = pytest.importorskip("yaml")
    document = yaml.safe_load((CI / name).read_text(encoding="utf-8"))
    steps = (
        [step["run"] for step in document["jobs"]["judge"]["steps"] if "run" in step]
        if name == "github.yml"
        else document["faithfulness"]["script"]
    )
    assert steps[0] == "anvil_local/scripts/demo"
    assert LINE.fullmatch(steps[1])
    # What is kept is where the set-up and the models are.
    assert "anvil-local/wheels" in json.dumps(document)
    assert "anvil-local/models" in json.dumps(document)


def test_what_is_uploaded_to_code_scanning_is_written() -> None:
    yaml = pytest.importorskip("yaml")
    document = yaml.safe_load((CI / "github.yml").read_text(encoding="utf-8"))
    (step,) = [step for step in document["jobs"]["judge"]["steps"] if "upload-sarif" in step.get("uses", "")]
    assert step["with"]["sarif_file"] in line_of(CI / "github.yml")
    assert document["permissions"]["security-events"] == "write"
    # A failed gate ends the step before it with 1, which is when the alerts are wanted.
    assert step["if"] == "always()"


def test_make_runs_the_line(tmp_path: Path) -> None:
    if shutil.which("make") is None:
        pytest.skip("no make here")
    shutil.copy(CI / "Makefile", tmp_path / "Makefile")
    done = subprocess.run(
        ["make", "faithfulness", f"ANVIL={sys.executable} -c 'import sys; print(sys.argv[1:])'"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "'run', 'answers.jsonl', '--gate', 'faithfulness>=0.8'" in done.stdout
