"""Judges on the two small real models, loaded once a session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from anvil_local.errors import ModelNotFound
from anvil_local.judge import GgufJudge
from anvil_local.models import resolve_model

MODELS = ("smollm2-135m", "gemma-3-270m")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.real_model)


def find_model(name: str) -> Path:
    try:
        return resolve_model(name).path
    except ModelNotFound as error:
        pytest.fail(f"{error}", pytrace=False)


@pytest.fixture(scope="session")
def smollm2() -> Iterator[GgufJudge]:
    find_model("smollm2-135m")
    with GgufJudge.load("smollm2-135m", window=2048) as judge:
        yield judge


@pytest.fixture(scope="session")
def gemma() -> Iterator[GgufJudge]:
    find_model("gemma-3-270m")
    with GgufJudge.load("gemma-3-270m", window=2048) as judge:
        yield judge


@pytest.fixture(scope="session", params=MODELS)
def judge(request: pytest.FixtureRequest) -> GgufJudge:
    """Each of the two models in turn."""
    found: GgufJudge = request.getfixturevalue(request.param.split("-")[0])
    return found
