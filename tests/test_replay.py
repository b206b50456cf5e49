from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anvil_local import FakeJudge, Report, evaluate
from anvil_local.cli import app, options
from anvil_local.errors import UsageError
from anvil_local.records import Fingerprint
from anvil_local.replay import compare_fingerprints, replay
from anvil_local.reports import load_report, write_reports

ROWS: list[dict[str, Any]] = [
    {"id": "a", "response": "It rained. It snowed.", "retrieved_contexts": ["Rain."]},
    {
        "id": "b",
        "user_input": [{"role": "user", "content": "Stop."}, {"role": "assistant", "content": "Ok."}],
    },
]
PARTS = {
    "model": {"name": "tiny"},
    "options": {"profile": "chat", "adapter": False, "threshold": None},
    "decode": {"window": 512, "gpu_layers": 0},
    "build": {"instruction_sets": "AVX2"},
}


class Real(FakeJudge):
    """A fake whose fingerprint looks like a GGUF judge's."""

    parts = PARTS

    @property
    def fingerprint(self) -> Fingerprint:
        return Fingerprint(digest=str(hash(str(self.parts)) % 10**12).zfill(64), parts=self.parts)


class Elsewhere(Real):
    parts = PARTS | {"build": {"instruction_sets": "AVX2 AVX512"}}


@pytest.fixture
def report() -> Report:
    return evaluate(ROWS, judge=Real([1, 0, 1]))


def test_the_same_judge_gives_the_same_bits(report: Report) -> None:
    found = replay(report, Real([1, 0, 1]))
    assert found.questions == 5  # two statements; reached, claimed and done
    assert found.moves == ()
    assert found.judge == {}


def test_a_report_read_from_its_file_is_enough(report: Report, tmp_path: Path) -> None:
    write_reports(report, [tmp_path / "out.json"])
    assert replay(load_report(tmp_path / "out.json"), Real([1, 0, 1])).moves == ()


def test_a_margin_that_moves_by_one_bit_is_named_and_is_no_flip(report: Report) -> None:
    found = replay(report, Real([4.000000000000001, 0, 1]))
    (move,) = found.moves
    assert (move.sample_id, move.question) == ("a", "It rained.")
    assert not move.flipped
    assert move.distance is not None
    assert 0 < move.distance < 1e-14


def test_a_flip_is_named(report: Report) -> None:
    found = replay(report, Real([1, 1, 1]))
    assert [(move.sample_id, move.question) for move in found.flips] == [("a", "It snowed.")]


def test_a_statement_that_only_one_of_the_two_has_counts_as_a_flip(report: Report) -> None:
    rows = [ROWS[0] | {"response": "It rained and snowed, and it was cold."}]
    before = evaluate(rows, judge=Real([1], ["- It rained and snowed.\n- It was cold.\n"]))
    found = replay(before, Real([1], ["- It rained and snowed, and it was cold.\n"]))
    assert {(move.question, move.old is None, move.new is None) for move in found.flips} == {
        ("It rained and snowed.", False, True),
        ("It was cold.", False, True),
        ("It rained and snowed, and it was cold.", True, False),
    }


def test_what_differs_in_the_fingerprint_is_named(report: Report) -> None:
    found = replay(report, Elsewhere([1, 0, 1]))
    assert found.judge == {"build.instruction_sets": ("AVX2", "AVX2 AVX512")}
    assert found.flips == ()


def test_lists_in_fingerprints_are_compared_item_by_item() -> None:
    old = Fingerprint(digest="a", parts={"vote": [{"x": 1}, {"x": 2}]})
    new = Fingerprint(digest="b", parts={"vote": [{"x": 1}, {"x": 3}, {"x": 4}]})
    assert compare_fingerprints(old, new) == {"vote[1].x": (2, 3), "vote[2].x": (None, 4)}


@pytest.mark.parametrize(
    ("answers", "arguments", "code"),
    [
        ([1, 0, 1], [], 0),
        ([1, 0, 1], ["--strict"], 0),
        ([3.5, 0, 1], [], 0),
        ([3.5, 0, 1], ["--strict"], 1),
        ([0, 0, 1], [], 1),
    ],
)
def test_the_command_exits_with_1_on_a_flip_and_with_strict_on_any_bit(
    report: Report,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answers: list[float],
    arguments: list[str],
    code: int,
) -> None:
    path = tmp_path / "out.json"
    write_reports(report, [path])
    seen = []
    monkeypatch.setattr(options, "build_judge", lambda config: seen.append(config) or Real(answers))
    with pytest.raises(SystemExit) as exit_:
        app.main(["replay", str(path), *arguments])
    assert exit_.value.code == code
    (config,) = seen
    assert (config.model, config.prompts, config.window) == (("tiny",), "chat", 512)
    assert (config.adapter, config.cache) == (False, False)
    out = capsys.readouterr().out
    assert "of 5 bit-equal" in out
    if answers[0] == 0:
        assert "1 (+4.000 = 0x1.0000000000000p+2) -> 0 (-4.000 = -0x1.0000000000000p+2)  sample a" in out


def test_the_command_prints_json(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_reports(report, [tmp_path / "out.json"])
    monkeypatch.setattr(options, "build_judge", lambda config: Elsewhere([1, 0, 1]))
    with pytest.raises(SystemExit):
        app.main(["replay", str(tmp_path / "out.json"), "--json", "-q"])
    document = json.loads(capsys.readouterr().out)
    assert document["bit_equal"] is True
    assert document["judge"] == {"build.instruction_sets": ["AVX2", "AVX2 AVX512"]}


def test_a_report_of_a_fake_judge_cannot_be_replayed_from_the_command_line(report: Report) -> None:
    with pytest.raises(UsageError, match="not judged by a GGUF model"):
        options.of_judge(FakeJudge().fingerprint)
