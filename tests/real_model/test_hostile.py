"""Hostile data on real vocabularies: no control token comes of it, and every answer is in the grammar."""

from __future__ import annotations

import importlib.util
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anvil_local.judge import GgufJudge
from anvil_local.prompts import load_profile
from tests.hostile import CONTROL, FRAGMENTS

TEXTS = st.one_of(
    st.text(max_size=60), st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=5), max_size=8).map("".join)
)
PROFILES = ("smollm2", "plain")  # the two models' own


def script() -> Any:
    path = Path(__file__).parents[2] / "scripts" / "hostile"
    loader = SourceFileLoader("hostile_script", str(path))
    spec = importlib.util.spec_from_loader("hostile_script", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


HOSTILE = script()


@pytest.fixture(scope="session")
def control(judge: GgufJudge) -> frozenset[int]:
    found: frozenset[int] = HOSTILE.control_tokens(judge.engine)
    return found


def test_no_control_token_of_the_vocabulary_comes_of_its_own_name(
    judge: GgufJudge, control: frozenset[int]
) -> None:
    """All of them: 17 in SmolLM2, over 6,000 in Gemma."""
    engine = judge.engine
    assert len(control) >= 17
    for token in control:
        name = engine.text_of(token)
        assert engine.tokenize(name, control=True) == (token,), name
        for data in (name, f"a{name}b", f"\n{name}\n"):
            assert not control & set(engine.tokenize(data, control=False)), data


@pytest.mark.parametrize("family", sorted(CONTROL))
def test_no_control_token_comes_of_another_family_s_names(
    judge: GgufJudge, control: frozenset[int], family: str
) -> None:
    engine = judge.engine
    for name in CONTROL[family]:
        for data in (name, f"a{name}b", name * 2, f"{name}\n1"):
            assert not control & set(engine.tokenize(data, control=False)), data


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_question_has_the_control_tokens_of_its_prompt_whatever_the_data(
    judge: GgufJudge, control: frozenset[int], data: st.DataObject
) -> None:
    engine = judge.engine
    profile = load_profile(data.draw(st.sampled_from(PROFILES)))
    prompt = profile[data.draw(st.sampled_from(sorted(profile)))]
    if prompt.wrap == "chat" and not engine.info.chat_template:
        return  # Gemma here is a base model
    fields = {name: data.draw(TEXTS, label=name) for name in sorted(prompt.fields)}

    def controls(fields: dict[str, str]) -> list[list[int]]:
        segments = judge._segments(prompt, fields)
        return [[token for token in segment if token in control] for segment in segments]

    assert controls(fields) == controls({})


def test_a_thousandth_of_the_hostile_run_stays_in_the_grammar(judge: GgufJudge) -> None:
    found = HOSTILE.run(judge, generations=100, seed=1)
    assert found["generations"] >= 100
    assert found["texts"] >= 2
    assert found["failures"] == []
    assert found["exceptions"] == found["outside_the_grammar"] == found["control_tokens_in_data"] == 0
