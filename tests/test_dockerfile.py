"""docs/ci/Dockerfile, read as Docker reads it. tests/real_model/test_dockerfile.py runs what it can of it."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

parse = pytest.importorskip("dockerfile_parse")

ROOT = Path(__file__).parents[1]
PATH = ROOT / "docs" / "ci" / "Dockerfile"


def stages() -> dict[str, list[tuple[str, str]]]:
    """Name of a stage (`""` of the last) -> its instructions; `ARG` before the first is left out."""
    with PATH.open("rb+") as file:
        structure: list[dict[str, Any]] = parse.DockerfileParser(fileobj=file).structure
    found: dict[str, list[tuple[str, str]]] = {}
    name = None
    for each in structure:
        instruction, value = each["instruction"], " ".join(each["value"].split())
        if instruction == "FROM":
            name = value.partition(" AS ")[2]
            found[name] = []
        if instruction != "COMMENT" and name is not None:
            found[name].append((instruction, value))
    return found


def one(stage: str, instruction: str) -> str:
    (value,) = [value for name, value in stages()[stage] if name == instruction]
    return value


def test_only_the_base_reaches_a_network_and_it_brings_what_llama_needs() -> None:
    page = (ROOT / "docs" / "air-gap.md").read_text(encoding="utf-8")
    assert "libgomp1" in page
    for stage, instructions in stages().items():
        for instruction, value in instructions:
            if instruction == "RUN":
                assert ("apt-get" in value) == (stage == "base")
                assert value.startswith("--network=none ") == (stage != "base")
    assert "libgomp1" in one("base", "RUN")


def test_the_image_takes_what_the_stage_before_it_installed() -> None:
    assert list(stages()) == ["base", "install", ""]
    source, origin, target = one("", "COPY").split()
    assert source == "--from=install"
    assert origin == target
    assert shlex.split(one("install", "RUN"))[-1] == origin
    (program,) = json.loads(one("", "ENTRYPOINT"))
    assert program == f"{origin}/bin/anvil-local"
    # Where the models were put is where they are looked for.
    assert one("install", "ENV") in one("", "ENV").split()


def test_the_commands_of_the_head_and_of_the_page_agree() -> None:
    head = re.findall(r"^#   (docker .*)$", PATH.read_text(encoding="utf-8"), re.MULTILINE)
    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    assert [line for line in page.splitlines() if line.startswith("docker ")] == head
