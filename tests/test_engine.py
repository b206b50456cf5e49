"""What the engine does without a model. The rest is in real_model/test_engine.py."""

from __future__ import annotations

import itertools
import os

import pytest

from anvil_local import engine


@pytest.fixture
def openmp(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.setenv(name, "")  # so that what the engine sets is undone, too
        monkeypatch.delenv(name)
    return monkeypatch


def test_waiting_threads_sleep_rather_than_spin(openmp: pytest.MonkeyPatch) -> None:
    engine._let_threads_sleep()

    assert os.environ["OMP_WAIT_POLICY"] == "passive"


@pytest.mark.parametrize(
    ("name", "value"),
    [("OMP_WAIT_POLICY", "active"), ("OMP_WAIT_POLICY", "passive"), ("GOMP_SPINCOUNT", "9")],
)
def test_the_users_own_choice_for_openmp_stands(openmp: pytest.MonkeyPatch, name: str, value: str) -> None:
    openmp.setenv(name, value)

    engine._let_threads_sleep()

    assert os.environ[name] == value
    assert ("OMP_WAIT_POLICY" in os.environ) == (name == "OMP_WAIT_POLICY")


@pytest.mark.parametrize("size", range(1, engine.CHUNK + 1))
def test_a_chunk_is_cut_into_parts_of_which_none_is_small(size: int) -> None:
    cuts = engine._parts(size)
    sizes = [last - first for first, last in itertools.pairwise(cuts)]
    assert sum(sizes) == size
    assert max(sizes) <= engine._AT_ONCE
    assert min(sizes) >= min(size, 32)
    assert all(cut % 32 == 0 for cut in cuts[:-1])
