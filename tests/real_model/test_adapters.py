"""The shipped adapters: they fit their model and their prompt, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from anvil_local.engine import Engine
from anvil_local.errors import AdapterInvalid
from anvil_local.judge import GgufJudge
from anvil_local.models import ResolvedModel

CONTEXT = "The ferry leaves at nine from the north pier. A ticket costs 14 euros; children travel free."


def margin(judge: GgufJudge, statement: str) -> float:
    found = judge.ask("support", {"context": CONTEXT, "statement": statement}).margin
    assert found is not None
    return found


def with_adapter(judge: GgufJudge, path: Path) -> GgufJudge:
    """The same model with another file in the place of its support adapter."""
    model = judge.model
    changed = ResolvedModel(entry=model.entry, path=model.path, adapters={"support": path})
    return GgufJudge(changed, window=512)


def test_the_default_model_has_a_support_adapter_made_for_its_bytes_and_prompt(smollm2: GgufJudge) -> None:
    assert "support" in smollm2.model.adapters
    for skill in smollm2.model.adapters:
        metadata = smollm2.engine.adapter_metadata(skill)
        assert metadata["anvil.base_sha256"] == smollm2.model.entry.sha256
        assert metadata["anvil.prompt"] == smollm2.model.entry.adapters[skill].prompt
        assert metadata["anvil.skill"] == skill


def test_an_adapter_for_another_prompt_is_refused(smollm2: GgufJudge, tmp_path: Path) -> None:
    raw = smollm2.model.adapters["support"].read_bytes()
    other = tmp_path / "other.gguf"
    other.write_bytes(raw.replace(b"support/1", b"support/9"))
    with pytest.raises(AdapterInvalid, match="made for another prompt"):
        margin(with_adapter(smollm2, other), "Children travel free.")


def test_an_adapter_for_other_weights_is_refused(smollm2: GgufJudge, tmp_path: Path) -> None:
    raw = smollm2.model.adapters["support"].read_bytes()
    sha = smollm2.model.entry.sha256.encode()
    assert sha in raw
    other = tmp_path / "other.gguf"
    other.write_bytes(raw.replace(sha, b"0" * len(sha)))
    with pytest.raises(AdapterInvalid, match="made for another base_sha256"):
        margin(with_adapter(smollm2, other), "Children travel free.")


def test_an_adapter_of_another_architecture_is_refused(smollm2: GgufJudge, gemma: GgufJudge) -> None:
    with (
        Engine(gemma.model.path, adapters={"support": smollm2.model.adapters["support"]}) as engine,
        pytest.raises(AdapterInvalid, match="cannot use this adapter"),
    ):
        engine.use_adapter("support")


def test_a_truncated_adapter_is_refused(smollm2: GgufJudge, tmp_path: Path) -> None:
    raw = smollm2.model.adapters["support"].read_bytes()
    short = tmp_path / "short.gguf"
    short.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(AdapterInvalid):
        margin(with_adapter(smollm2, short), "Children travel free.")


def test_on_and_off_and_on_again_gives_the_same_bits(smollm2: GgufJudge) -> None:
    statement = "The ferry leaves from the south pier."
    with GgufJudge(smollm2.model, window=2048, use_adapters=False) as bare:
        plain = margin(bare, statement)
    first = margin(smollm2, statement)
    assert first != plain
    smollm2.write("workflow", {"trace": "[1] user: Stop."}, limit=20)  # a task without adapter
    smollm2.write("decompose", {"question": "", "answer": CONTEXT, "sentence": CONTEXT[:46]}, limit=20)
    assert margin(smollm2, statement) == first


def test_the_default_judge_can_judge(smollm2: GgufJudge) -> None:
    right = ("The ferry leaves from the north pier.", "Children do not pay.", "A ticket costs 14 euros.")
    wrong = (
        "The ferry leaves from the south pier.",
        "A ticket costs 41 euros.",
        "The ferry carries lorries.",
    )
    margins = {statement: margin(smollm2, statement) for statement in right + wrong}
    assert min(margins[statement] for statement in right) > max(margins[statement] for statement in wrong)
