"""What docs/ci/Dockerfile does with a bundle, without Docker: its own lines, under other folders.

Not run here: the base image, its `apt-get`, and Docker itself.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.real_model.test_bundle import apart
from tests.test_dockerfile import one

pytestmark = pytest.mark.real_model


def test_the_lines_that_install_and_the_entry_point_work_without_a_network(tmp_path: Path) -> None:
    command = apart()
    if command is None:
        pytest.skip("no network namespaces here")

    def here(text: str) -> str:
        return text.replace("/bundle", f"{tmp_path}/bundle").replace("/opt/", f"{tmp_path}/")

    def variables(stage: str) -> dict[str, str]:
        pairs = (pair.split("=", 1) for pair in here(one(stage, "ENV")).split())
        return {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", **dict(pairs)}

    archive, folder = one("install", "ADD").split()
    anvil = Path(sys.executable).with_name("anvil-local")
    subprocess.run([anvil, "bundle", tmp_path / archive], capture_output=True, check=True)
    with tarfile.open(tmp_path / archive) as tar:
        tar.extractall(here(folder), filter="data")
    # As in the image, whose only Python is the right one.
    install = here(one("install", "RUN").removeprefix("--network=none "))
    done = subprocess.run(
        [*command, "sh", "-c", install],
        env=variables("install") | {"PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr

    row = {"response": "It opens at nine.", "retrieved_contexts": ["Open from nine to five."]}
    (tmp_path / "answers.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    environment = variables("") | {"ANVIL_CACHE_DIR": str(tmp_path / "cache")}
    words = [*json.loads(here(one("", "ENTRYPOINT"))), "run", "answers.jsonl", "--json"]
    done = subprocess.run(
        [*command, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["judge"]["parts"]["model"]["name"] == "smollm2-135m"
    assert report["summaries"][0]["scored"] == 1
