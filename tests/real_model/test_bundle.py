"""From the bundle to a judged file on a machine without a network."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.real_model

PROGRAM = """
set -e
cd "$1"
sh anvil-bundle/install.sh "$1/venv" >&2
"$1/venv/bin/anvil-local" run answers.jsonl --no-cache --json
"""


def apart() -> list[str] | None:
    """A command that runs another in a network namespace without any interface that is up."""
    found = shutil.which("unshare")
    command = [found, "--user", "--map-root-user", "--net"] if found else []
    if not found or subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        return None
    return command


def test_a_bundle_installs_and_judges_without_a_network(tmp_path: Path) -> None:
    command = apart()
    if command is None:
        pytest.skip("no network namespaces here")
    output = tmp_path / "out.tar"
    anvil = Path(sys.executable).with_name("anvil-local")
    made = subprocess.run([anvil, "bundle", output], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    with tarfile.open(output) as tar:
        tar.extractall(tmp_path, filter="data")
    row = {"response": "It opens at nine.", "retrieved_contexts": ["Open from nine to five."]}
    (tmp_path / "answers.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    done = subprocess.run(
        [*command, "bash", "-c", PROGRAM, "bash", tmp_path],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    here = subprocess.run(
        [anvil, "run", tmp_path / "answers.jsonl", "--no-cache", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    there, here_too = (json.loads(text) for text in (done.stdout, here.stdout))
    assert there["judge"] == here_too["judge"]
    assert [item["statements"] for item in there["results"]] == [
        item["statements"] for item in here_too["results"]
    ]
