"""requirements.lock: what pyproject.toml asks for and nothing else, with hashes; and scripts/audit."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LINES = (ROOT / "requirements.lock").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
ENTRIES = [line for line in LINES if line and not line.lstrip().startswith("#")]
LOCKED = {
    canonicalize_name(requirement.name): requirement
    for requirement in (Requirement(entry.split("--hash")[0]) for entry in ENTRIES)
}


def version_of(name: str) -> str:
    (pin,) = LOCKED[canonicalize_name(name)].specifier
    assert pin.operator == "=="
    return pin.version


@pytest.mark.parametrize("wanted", PROJECT["dependencies"])
def test_every_dependency_of_the_project_is_locked_in_a_version_that_it_accepts(wanted: str) -> None:
    requirement = Requirement(wanted)
    assert requirement.specifier.contains(version_of(requirement.name))


def test_llama_is_locked_in_the_version_that_everything_was_measured_with() -> None:
    """`scripts/lib.sh` compiles the lower bound of pyproject.toml."""
    (wanted,) = (each for each in PROJECT["dependencies"] if each.startswith("llama-cpp-python"))
    assert f">={version_of('llama-cpp-python')}," in wanted


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.split("==")[0])
def test_every_locked_package_has_one_version_and_sha256_hashes(entry: str) -> None:
    requirement, *hashes = entry.split("--hash=")
    assert len(Requirement(requirement).specifier) == 1
    assert hashes
    assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", each.strip()) for each in hashes)


def needs(name: str) -> list[Requirement]:
    """What an installed package needs on this system, without extras."""
    try:
        texts = distribution(name).requires or []
    except PackageNotFoundError:  # for another system
        return []
    environment = {**default_environment(), "extra": ""}
    requirements = map(Requirement, texts)
    return [each for each in requirements if each.marker is None or each.marker.evaluate(environment)]


def test_what_the_locked_packages_need_is_locked_and_nothing_else() -> None:
    reached: set[str] = set()
    waiting = [Requirement(each) for each in PROJECT["dependencies"]]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        assert name in LOCKED, name
        if name not in reached:
            reached.add(name)
            waiting += needs(name)
    here = {name for name, each in LOCKED.items() if each.marker is None or each.marker.evaluate()}
    assert reached == here


# scripts/audit


def audit(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run the script with a `pip_audit` that does this."""
    (folder / "pip_audit.py").write_text(program, encoding="utf-8")
    return subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "audit")],
        capture_output=True, text=True, check=False, env={"PYTHONPATH": str(folder)},
    )  # fmt: skip


def answer(*packages: dict[str, Any]) -> str:
    code = any(package.get("vulns") for package in packages)
    return f"import sys\nprint({json.dumps({'dependencies': packages})!r})\nsys.exit({int(code)})\n"


def test_a_known_vulnerability_fails_and_is_named_with_its_fix(tmp_path: Path) -> None:
    bad = {"name": "x", "version": "1.0", "vulns": [{"id": "CVE-1", "fix_versions": ["1.1"]}]}
    done = audit(tmp_path, answer(bad, {"name": "y", "version": "2", "vulns": []}))
    assert done.returncode == 1
    assert "x 1.0: CVE-1, fixed in 1.1" in done.stdout
    assert "2 packages looked up, 0 not known there, 1 vulnerabilities" in done.stdout


def test_no_known_vulnerability_passes(tmp_path: Path) -> None:
    done = audit(tmp_path, answer({"name": "y", "version": "2", "vulns": []}))
    assert done.returncode == 0
    assert "1 packages looked up" in done.stdout


@pytest.mark.parametrize(
    "program",
    [
        "import sys\nsys.exit('ConnectionError: no route to host')",
        answer({"name": "y", "version": "2", "skip_reason": "not found"}),
    ],
)
def test_without_a_database_it_passes_and_says_that_nothing_was_looked_up(
    tmp_path: Path, program: str
) -> None:
    done = audit(tmp_path, program)
    assert done.returncode == 0
    assert "nothing was looked up" in done.stdout


def test_a_wrong_call_is_no_missing_network(tmp_path: Path) -> None:
    assert audit(tmp_path, "import sys\nsys.stderr.write('usage')\nsys.exit(2)").returncode == 2
