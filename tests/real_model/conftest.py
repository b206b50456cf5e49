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


def load(name: str, folder: Path) -> GgufJudge:
    try:
        return GgufJudge(resolve_model(name, folder=folder), window=2048)
    except ModelNotFound as error:
        pytest.fail(f"{error}", pytrace=False)


@pytest.fixture(scope="session")
def smollm2(models_dir: Path) -> Iterator[GgufJudge]:
    with load("smollm2-135m", models_dir) as judge:
        yield judge


@pytest.fixture(scope="session")
def gemma(models_dir: Path) -> Iterator[GgufJudge]:
    with load("gemma-3-270m", models_dir) as judge:
        yield judge


@pytest.fixture(scope="session", params=MODELS)
def judge(request: pytest.FixtureRequest) -> GgufJudge:
    """Each of the two models in turn."""
    found: GgufJudge = request.getfixturevalue(request.param.split("-")[0])
    return found
