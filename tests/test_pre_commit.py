"""The pre-commit hook: the real pre-commit takes it from a clone and runs it on the files of the recipe."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")
pytest.importorskip("pre_commit")

ROOT = Path(__file__).parents[1]
MANIFEST = ".pre-commit-hooks.yaml"
RECIPE = "docs/ci/pre-commit-config.yaml"
ROW = {"response": "It opens at nine.", "retrieved_contexts": ["Open from nine to five."]}

# What the hook finds on the PATH: this package, with a judge that needs no model.
PROGRAM = """#!{python}
import sys
sys.path.insert(0, {root!r})
from anvil_local.cli import main, options
from anvil_local.judge import FakeJudge
options.build_judge = lambda config, **_: FakeJudge(lambda task, fields: int("nine" in fields["statement"]))
main()
"""

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="no git here")


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the recipe, and beside its data a clone of this one as far as pre-commit looks."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    for name, value in {"NAME": "A", "EMAIL": "a@example.org"}.items():
        monkeypatch.setenv(f"GIT_AUTHOR_{name}", value)
        monkeypatch.setenv(f"GIT_COMMITTER_{name}", value)
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "pre-commit"))
    program = tmp_path / "bin" / "anvil-local"
    program.parent.mkdir()
    program.write_text(PROGRAM.format(python=sys.executable, root=str(ROOT)), encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    folder = tmp_path / "project"
    for place in (folder / "anvil_local", folder):
        place.mkdir(parents=True, exist_ok=True)
        git(place, "init", "--quiet", "--initial-branch=main")
    shutil.copy(ROOT / MANIFEST, folder / "anvil_local")
    git(folder / "anvil_local", "add", MANIFEST)
    git(folder / "anvil_local", "commit", "--quiet", "--message=hooks")
    shutil.copy(ROOT / RECIPE, folder / ".pre-commit-config.yaml")
    (folder / ".gitignore").write_text("anvil_local\n", encoding="utf-8")
    return folder


def commit(folder: Path, name: str, text: str) -> subprocess.CompletedProcess[str]:
    (folder / name).write_text(text, encoding="utf-8")
    git(folder, "add", "--all")
    return subprocess.run(
        ["git", "commit", "--message=change"], cwd=folder, capture_output=True, text=True, check=False
    )


def test_the_hook_stops_a_commit_whose_answers_fail_the_gate_and_no_other(project: Path) -> None:
    install = [sys.executable, "-m", "pre_commit", "install"]
    subprocess.run(install, cwd=project, capture_output=True, check=True)

    bad = commit(project, "answers.jsonl", json.dumps(ROW | {"response": "It is free."}) + "\n")
    assert bad.returncode == 1
    assert "faithfulness.mean 0.00 >= 0.80: FAIL" in bad.stdout + bad.stderr
    assert "It is free." in bad.stdout + bad.stderr

    good = commit(project, "answers.jsonl", json.dumps(ROW) + "\n")
    assert good.returncode == 0, good.stdout + good.stderr
    assert "Passed" in good.stdout + good.stderr

    other = commit(project, "notes.txt", "unrelated\n")
    assert other.returncode == 0
    assert "Skipped" in other.stdout + other.stderr


def test_pre_commit_finds_nothing_to_mend_in_the_manifest_and_the_recipe() -> None:
    for check, path in (("validate-manifest", MANIFEST), ("validate-config", RECIPE)):
        done = subprocess.run(
            [sys.executable, "-m", "pre_commit", check, ROOT / path],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout


def test_the_recipe_names_the_hook() -> None:
    (hook,) = yaml.safe_load((ROOT / MANIFEST).read_text(encoding="utf-8"))
    recipe: dict[str, Any] = yaml.safe_load((ROOT / RECIPE).read_text(encoding="utf-8"))
    assert recipe["repos"][0]["hooks"][0]["id"] == hook["id"]
