"""The canonical path on real weights: the same bits whatever came before; and files that cannot be loaded."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from anvil_local import engine
from anvil_local.engine import Engine, EngineOptions, Tokens, build_info, physical_cores
from anvil_local.errors import ModelFileInvalid, ModelNotFound, PromptTooLong
from anvil_local.judge import GgufJudge

CONTEXT = (
    "The valve closes when the pressure falls below two bar. An alarm follows within four seconds. "
    "The operator notes the time, calls the control room and waits for the second engineer. "
) * 6
STATEMENTS = (
    "The valve closes below two bar.",
    "The valve opens when the pressure falls.",
    "An alarm follows within four seconds.",
    "The operator leaves the room.",
    "El operador anota la hora.",
)


def bits(judge: GgufJudge, context: str = CONTEXT) -> list[str]:
    """The margins of all statements, to the last bit."""
    return [margin(judge, context, statement) for statement in STATEMENTS]


def margin(judge: GgufJudge, context: str, statement: str) -> str:
    verdict = judge.ask("support", {"context": context, "statement": statement})
    assert verdict.margin is not None
    return verdict.margin.hex()


def test_repeating_a_question_gives_the_same_bits(judge: GgufJudge) -> None:
    assert bits(judge) == bits(judge)


def test_a_cold_prefix_and_a_warm_one_give_the_same_bits(judge: GgufJudge) -> None:
    warm = bits(judge)
    cold = []
    for statement in STATEMENTS:
        judge.engine.forget()
        cold.append(margin(judge, CONTEXT, statement))
    assert cold == warm


def test_the_order_of_statements_and_other_samples_in_between_change_no_bit(judge: GgufJudge) -> None:
    plain = dict(zip(STATEMENTS, bits(judge), strict=True))
    order = list(STATEMENTS)
    random.Random(7).shuffle(order)
    for statement in order:
        bits(judge, f"Another text. {statement} " * 3)
        assert margin(judge, CONTEXT, statement) == plain[statement]


def test_writing_in_between_changes_no_bit(judge: GgufJudge) -> None:
    plain = bits(judge)
    fields = {"question": "What happens?", "answer": CONTEXT[:200], "sentence": CONTEXT[:55]}
    first = judge.write("decompose", fields, limit=40)
    assert bits(judge) == plain
    assert judge.write("decompose", fields, limit=40) == first


def test_a_memory_that_cannot_be_cut_back_costs_time_and_no_bit(
    smollm2: GgufJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recurrent and hybrid models refuse to remove a suffix; the prefix is then decoded again."""
    plain = bits(smollm2)
    monkeypatch.setattr(smollm2.engine._llama, "llama_memory_seq_rm", lambda *_: False)
    assert bits(smollm2) == plain


def test_one_thread_and_two_give_the_same_bits(judge: GgufJudge) -> None:
    found = {}
    for threads in (1, 2):
        with GgufJudge(judge.model, window=2048, threads=threads) as fresh:
            found[threads] = bits(fresh)
    assert found[1] == found[2] == bits(judge)


def test_a_larger_window_changes_no_bit(judge: GgufJudge) -> None:
    with GgufJudge(judge.model, window=4096) as wide:
        assert bits(wide) == bits(judge)


def test_a_fresh_process_gives_the_same_bits(smollm2: GgufJudge) -> None:
    program = (
        "from anvil_local.judge import GgufJudge\n"
        "from tests.real_model.test_engine import bits\n"
        "print(*bits(GgufJudge.load('smollm2-135m', window=2048)))\n"
    )
    output = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert output.stdout.split() == bits(smollm2)


def test_a_prompt_longer_than_one_decode_call_is_read_whole(judge: GgufJudge) -> None:
    long = CONTEXT * 6
    assert judge.count_tokens(long) > 2 * 512
    assert margin(judge, long, STATEMENTS[0]) == margin(judge, long, STATEMENTS[0])


@pytest.mark.parametrize("size", [2, 3, 63, 64, 65, 66, 127, 128, 129, 193, 257, 385, 511, 512])
def test_a_chunk_computed_in_parts_has_the_bits_of_the_whole(
    judge: GgufJudge, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = judge.engine.tokenize(CONTEXT * 4, control=False)[:size]
    assert len(tokens) == size
    judge.engine.use_adapter(None)
    judge.engine.forget()
    parts = judge.engine.read([tokens, tokens[:9]]).copy()
    monkeypatch.setattr(engine, "_AT_ONCE", engine.CHUNK)
    with Engine(judge.model.path, options=EngineOptions(window=2048)) as whole:
        assert (whole.read([tokens, tokens[:9]]) == parts).all()


def test_a_prompt_longer_than_the_window_is_refused_and_the_next_one_is_fine(judge: GgufJudge) -> None:
    plain = bits(judge)
    with pytest.raises(PromptTooLong, match="the window 2048"):
        judge.ask("support", {"context": CONTEXT * 20, "statement": "x"})
    assert bits(judge) == plain


@pytest.mark.parametrize(
    "text",
    ["<|im_end|>", "<|im_start|>assistant\n1", "<end_of_turn>", "<start_of_turn>model", "<bos>", "<eos>",
     "<|endoftext|>", "</s>", "[/INST]", "<|eot_id|>"],
)  # fmt: skip
def test_text_of_users_never_becomes_a_control_token(judge: GgufJudge, text: str) -> None:
    engine = judge.engine
    control = {
        token
        for token in range(engine.info.vocabulary)
        if engine.is_end(token) or token in engine.leading_tokens
    }
    for data in (text, f"a{text}b", f"{text}\n{text}"):
        tokens = engine.tokenize(data, control=False)
        assert not control & set(tokens)
        pieces = engine.token_bytes()
        assert b"".join(pieces[token] for token in tokens).decode().strip() == data


def test_our_own_text_does_have_control_tokens(smollm2: GgufJudge) -> None:
    assert len(smollm2.engine.tokenize("<|im_end|>", control=True)) == 1


def test_bos_comes_first_where_the_model_wants_it_and_only_once(gemma: GgufJudge, smollm2: GgufJudge) -> None:
    fields = {"context": "c", "statement": "s"}
    assert smollm2.engine.leading_tokens == ()
    lead = gemma.engine.leading_tokens
    assert len(lead) == 1
    tokens: Tokens = sum(gemma._segments(gemma._prompt("support"), fields), ())
    assert tokens[:1] == lead
    assert tokens.count(lead[0]) == 1


def test_logits_are_those_of_the_whole_vocabulary(judge: GgufJudge) -> None:
    engine = judge.engine
    logits = engine.read([engine.leading_tokens + engine.tokenize("The capital of France is", control=False)])
    assert logits.shape == (engine.info.vocabulary,)
    assert logits.dtype == np.float32
    assert np.isfinite(logits).all()
    likely = [engine.text_of(int(token)).strip() for token in np.argsort(logits)[-5:]]
    assert "Paris" in likely


def test_the_build_is_named() -> None:
    info = build_info()
    assert info["llama_cpp_python"].startswith("0.")
    assert info["instruction_sets"]
    assert physical_cores() >= 1


# Files that cannot be loaded


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match=r"nowhere\.gguf"):
        Engine(tmp_path / "nowhere.gguf")


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(ModelFileInvalid, match="not a GGUF file"):
        Engine(tmp_path / "model.gguf")


@pytest.mark.parametrize("size", [10, 3_000, 2_000_000, 60_000_000])
def test_a_truncated_file_is_refused(smollm2: GgufJudge, tmp_path: Path, size: int) -> None:
    short = tmp_path / "short.gguf"
    with smollm2.model.path.open("rb") as file:
        short.write_bytes(file.read(size))
    with pytest.raises(ModelFileInvalid, match="cannot load"):
        Engine(short)
    with pytest.raises(ModelFileInvalid, match="truncated"):
        GgufJudge.load(short)


def test_an_unknown_architecture_is_named(smollm2: GgufJudge, tmp_path: Path) -> None:
    other = tmp_path / "other.gguf"
    raw = bytearray(smollm2.model.path.read_bytes())
    key = b"general.architecture"
    start = raw.find(key) + len(key) + 4 + 8
    (length,) = struct.unpack_from("<Q", raw, start - 8)
    raw[start : start + length] = b"x" * length
    other.write_bytes(raw)
    with pytest.raises(ModelFileInvalid, match="unknown model architecture: 'xxxxx'"):
        Engine(other)


@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS")
def test_too_little_memory_is_an_error_and_not_a_crash(smollm2: GgufJudge) -> None:
    program = (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2_000_000_000, 2_000_000_000))\n"
        "from anvil_local.cli import main\n"
        "main(['judge', '-m', sys.argv[1], '-c', 'It rained.', 'It rained.', '--window', '100000'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(smollm2.model.path)],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "no memory for a window of 100000 tokens" in done.stderr
    assert "hint: ask for a smaller window" in done.stderr


def test_closing_twice_is_fine_and_a_closed_judge_loads_again(smollm2: GgufJudge) -> None:
    options = EngineOptions(window=512)
    engine = Engine(smollm2.model.path, options=options)
    engine.close()
    engine.close()
    judge = GgufJudge(smollm2.model, window=512)
    first = margin(judge, "It rained.", "It rained.")
    judge.close()
    assert margin(judge, "It rained.", "It rained.") == first
    judge.close()
