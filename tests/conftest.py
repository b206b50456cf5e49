"""What keeps the tests from the developer's machine: no model, no network, no settings, no home."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_socket
from hypothesis import settings

from anvil_local import engine
from anvil_local.models import models_folder

# Taken before any test changes the environment.
_MODELS_DIR = models_folder(os.environ.get("ANVIL_MODELS_DIR") or None)

# No deadline: the machine may be busy. In CI, the same examples every time.
settings.register_profile("anvil", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("anvil")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--real-model", action="store_true", help="run the tests that load a real GGUF model as well"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--real-model"):
        return
    skip = pytest.mark.skip(reason="loads a real GGUF model; give --real-model to run it")
    for item in items:
        # The folder says it too: its own conftest may mark its tests after this one has run.
        if item.get_closest_marker("real_model") or "real_model" in item.path.parts:
            item.add_marker(skip)


def needs_model(request: pytest.FixtureRequest) -> bool:
    return request.node.get_closest_marker("real_model") is not None


@pytest.fixture(scope="session")
def models_dir() -> Path:
    """The folder of installed models, for tests marked `real_model`."""
    return _MODELS_DIR


@pytest.fixture(autouse=True)
def _no_settings(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No variable, no configuration and no colour of the developer's."""
    for name in list(os.environ):
        if name.startswith("ANVIL_"):
            monkeypatch.delenv(name)
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE", "PY_COLORS", "TTY_COMPATIBLE", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    if needs_model(request):
        monkeypatch.setenv("ANVIL_MODELS_DIR", str(_MODELS_DIR))
        return
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for kind in ("DATA", "CACHE", "CONFIG", "STATE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(home / kind.lower()))


@pytest.fixture(autouse=True)
def _no_model(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that loads a model by accident fails, and says why."""
    if needs_model(request):
        return

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("this test loads a model: use FakeJudge, or mark it real_model")

    monkeypatch.setattr(engine.Engine, "__init__", refuse)


@pytest.fixture(autouse=True)
def _no_network(request: pytest.FixtureRequest) -> Iterator[None]:
    """Sockets raise, except in tests that ask for pytest-socket's `socket_enabled`."""
    if "socket_enabled" in request.fixturenames:
        yield
        return
    pytest_socket.disable_socket(allow_unix_socket=True)
    yield
    pytest_socket.enable_socket()
