"""The verdict from logits, the fake judge; the real one is in real_model/."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from anvil_local.errors import EngineError
from anvil_local.judge import FakeJudge, _verdict

logits = arrays(np.float32, 32, elements=st.floats(-80, 80, width=32))


@given(logits)
def test_one_pass_over_the_logits_gives_what_a_plain_softmax_gives(values: np.ndarray) -> None:
    zeros, ones = (3, 7), (4,)
    exact = values.astype(np.float64)
    softmax = np.exp(exact - exact.max())
    softmax /= softmax.sum()
    p0, p1 = softmax[list(zeros)].sum(), softmax[list(ones)].sum()
    verdict = _verdict(values, zeros, ones, threshold=0.0)
    assert verdict.mass == pytest.approx(p0 + p1, abs=2e-6)
    assert verdict.margin == pytest.approx(math.log(p1) - math.log(p0), abs=1e-6)
    assert verdict.p_supported == pytest.approx(p1 / (p0 + p1), abs=1e-9)
    assert verdict.value == int(verdict.margin > 0)


@given(logits, st.floats(-20, 20))
def test_the_threshold_moves_the_verdict_and_nothing_else(values: np.ndarray, threshold: float) -> None:
    plain = _verdict(values, (0,), (1,), 0.0)
    moved = _verdict(values, (0,), (1,), threshold)
    assert moved.margin == plain.margin
    assert moved.value == int(plain.margin > threshold)


def test_a_tie_is_not_supported() -> None:
    assert _verdict(np.zeros(4, dtype=np.float32), (0,), (1,), 0.0).value == 0


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_logits_that_are_not_finite_are_an_error_and_never_a_verdict(bad: float) -> None:
    values = np.zeros(4, dtype=np.float32)
    values[2] = bad
    with pytest.raises(EngineError, match="not finite"):
        _verdict(values, (0,), (1,), 0.0)


def test_a_fake_answers_in_order_repeats_the_last_and_remembers_the_questions() -> None:
    judge = FakeJudge([1, 0, -0.5])
    values = [judge.ask("support", {"context": "c", "statement": str(i)}).value for i in range(4)]
    assert values == [1, 0, 0, 0]
    assert [fields["statement"] for _, fields in judge.asked] == ["0", "1", "2", "3"]


def test_a_fake_raises_the_exceptions_it_was_given() -> None:
    judge = FakeJudge([EngineError("broken")])
    with pytest.raises(EngineError, match="broken"):
        judge.ask("support", {})


def test_a_fake_may_answer_by_a_function() -> None:
    judge = FakeJudge(lambda task, fields: int("wet" in fields["statement"]))
    assert judge.ask("support", {"statement": "wet"}).value == 1
    assert judge.ask("support", {"statement": "dry"}).value == 0
    assert judge.fingerprint.parts == {"model": {"name": "fake"}}
