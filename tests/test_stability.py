"""Stability: which changes move which verdicts, with judges whose weakness is known."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from anvil_local import FakeJudge, Options
from anvil_local.cli import app, options
from anvil_local.errors import NothingToJudge, UsageError
from anvil_local.gates import parse_gate
from anvil_local.metrics import choose_metrics
from anvil_local.prompts import load_profile
from anvil_local.records import Verdict
from anvil_local.samples import as_samples
from anvil_local.stability import AXES, Stability, measure_stability

Answer = Callable[[str, Mapping[str, str]], float]

ROWS: list[dict[str, Any]] = [
    {
        "id": f"s{number}",
        "response": "It rained. It was cold. It was late.",
        "retrieved_contexts": ["First passage.", f"Second passage {number}."],
    }
    for number in range(4)
]
TRACE: dict[str, Any] = {
    "id": "t",
    "user_input": [
        {"role": "user", "content": "Cancel order 17."},
        {"role": "assistant", "content": "Done."},
    ],
    "reference": "Order 17 is cancelled.",
}


def stable(_: str, fields: Mapping[str, str]) -> float:
    return -2.0 if "late" in fields.get("statement", "") else 2.0


def study(judge: FakeJudge, rows: list[dict[str, Any]] = ROWS, **more: Any) -> Stability:
    return measure_stability(
        as_samples(rows),
        judge=judge,
        choices=choose_metrics(None),
        options=more.pop("how", Options()),
        **more,
    )


def row(found: Stability, axis: str, variant: str) -> Any:
    return next(item for item in found.axes if (item.axis, item.variant) == (axis, variant))


def test_a_judge_that_nothing_moves_has_no_flips() -> None:
    found = study(FakeJudge(stable), [*ROWS, TRACE])
    assert found.flips == ()
    assert (found.flip_rate, found.band, found.in_band) == (0, None, None)
    assert not found.broken
    assert {item.axis for item in found.axes} | set(found.skipped) == set(AXES)
    assert found.skipped.keys() == {"threads", "model"}
    assert row(found, "repeat", "again").questions == 13
    assert row(found, "formatter", "ragas/1").samples == 1
    assert all(item.moved == 0 for item in found.axes)


def test_flips_are_counted_where_they_happen_and_named() -> None:
    def answer(task: str, fields: Mapping[str, str]) -> float:
        if task == "support@3" and "cold" in fields["statement"]:
            return -0.5
        return 0.25 if "cold" in fields["statement"] else stable(task, fields)

    found = study(FakeJudge(answer))
    assert row(found, "wording", "2").flips == 0
    worded = row(found, "wording", "3")
    assert (worded.flips, worded.questions, worded.scores_moved) == (4, 12, 4)
    assert worded.score_shift == pytest.approx(1 / 3)
    # Two wordings, the order of the answers and that of passages, twelve verdicts each.
    assert found.flip_rate == pytest.approx(4 / 48)
    assert (found.band, found.in_band) == (0.25, 4)
    assert {(flip.axis, flip.sample_id, flip.text) for flip in found.flips} == {
        ("wording 3", f"s{number}", "It was cold.") for number in range(4)
    }


def test_a_judge_that_reads_the_first_passage_alone_is_moved_by_their_order() -> None:
    found = study(FakeJudge(lambda _, f: 1.0 if f["context"].startswith("First") else -1.0))
    assert row(found, "context", "reversed").flips == 12
    assert row(found, "wording", "2").flips == 0


def test_samples_with_one_passage_say_nothing_of_their_order() -> None:
    rows = [item | {"retrieved_contexts": ["One."]} for item in ROWS]
    found = study(FakeJudge(stable), rows)
    assert found.skipped["context"] == "no sample has more than one passage"


def test_a_trace_is_read_in_the_other_format() -> None:
    seen: list[str] = []

    def answer(_: str, fields: Mapping[str, str]) -> float:
        seen.append(fields["trace"])
        return 1.0 if fields["trace"] == seen[0] else -1.0

    found = study(FakeJudge(answer), [TRACE], axes=["formatter"])
    # A trace that fits is the same text in both of ours.
    assert [(item.variant, item.flips) for item in found.axes] == [("anvil-trace/2", 0), ("ragas/1", 1)]
    assert found.flips[0].text == "Order 17 is cancelled."


def test_a_machine_that_forgets_is_found_out() -> None:
    asked: dict[str, int] = {}

    def answer(_: str, fields: Mapping[str, str]) -> float:
        key = fields["context"] + fields["statement"]
        asked[key] = asked.get(key, 0) + 1
        return 2.0 + 1e-12 * asked[key]

    found = study(FakeJudge(answer), axes=["repeat", "order"])
    assert found.broken
    assert row(found, "repeat", "again").moved == 12
    assert row(found, "repeat", "again").flips == 0


def test_sampled_decompositions_move_scores_by_other_statements() -> None:
    class Writer(FakeJudge):
        def write(self, task: str, fields: Mapping[str, str], *, limit: int, seed: int | None = None) -> Any:
            found = super().write(task, fields, limit=limit, seed=seed)
            if seed == 2 and "cold" in fields["sentence"]:
                return type(found)("- It was cold.\n- It was late.\n", True)
            return found

    rows = [{"id": "a", "response": "It was cold, and it was late.", "retrieved_contexts": ["c"]}]
    found = study(Writer(stable), rows, axes=["decomposition"])
    assert [item.unpaired for item in found.axes] == [0, 3, 0]
    assert found.axes[1].score_shift == pytest.approx(0.5)
    sentences = study(Writer(stable), rows, axes=["decomposition"], how=Options(decomposition="sentence"))
    assert sentences.axes == ()
    assert "decomposition" in sentences.skipped


def test_other_engines_are_asked_one_after_the_other_and_closed() -> None:
    closed: list[str] = []

    class Named(FakeJudge):
        def __init__(self, name: str, answer: Answer) -> None:
            super().__init__(answer)
            self.name = name

        def close(self) -> None:
            closed.append(self.name)

    other = Named("other", lambda task, fields: -stable(task, fields))
    found = study(Named("first", stable), others=[("model", "big", other)], axes=["model"])
    assert closed == ["first", "other"]
    assert row(found, "model", "big").flips == 12
    assert found.flip_rate is None  # another model is another judge


def test_a_specialist_without_other_wordings_skips_them() -> None:
    class Specialist(FakeJudge):
        def room(self, task: str, fields: Mapping[str, str]) -> int:
            if "@" in task:
                raise UsageError("no such task", value=task)
            return super().room(task, fields)

    found = study(Specialist(stable))
    assert found.skipped["wording"] == "the judge's prompt profile has no other wording"


def test_a_gate_far_from_its_threshold_is_firm_and_one_at_it_flakes_as_computed() -> None:
    def answer(task: str, fields: Mapping[str, str]) -> float:
        if "cold" in fields["statement"]:
            return -0.2 if task == "support@3" else 0.2
        return stable(task, fields)

    gates = [parse_gate("faithfulness>=0.2"), parse_gate("faithfulness.pooled>=0.66")]
    found = study(FakeJudge(answer), gates=gates)
    firm, shaky = found.gates
    assert firm.passed
    assert firm.flake < 0.01
    assert shaky.passed
    # Inside the band 4 of 12 questions turned over, (4 + 1/2) / (12 + 1). Any of four fails the gate, unless
    # one of the refused four, outside the band with (1/2) / (24 + 1), makes up for it.
    inside, outside = 4.5 / 13, 0.5 / 25
    none_lost = (1 - inside) ** 4 * (1 - outside) ** 4
    assert 1 - none_lost - 0.15 < shaky.flake <= 1 - none_lost + 0.05
    assert shaky.flake_high > shaky.flake
    assert row(found, "wording", "3").gates_turned == ("faithfulness.pooled>=0.66",)
    assert study(FakeJudge(answer), gates=gates).gates == found.gates


def test_verdicts_without_a_model_are_never_turned_over() -> None:
    rows = [{"id": "a", "response": "It rained.", "retrieved_contexts": [""]}]
    found = study(FakeJudge(stable), rows, gates=[parse_gate("faithfulness>=0.5")])
    assert found.gates[0].flake == 0
    assert found.in_band is None


def test_unknown_axes_and_empty_data_are_refused() -> None:
    with pytest.raises(UsageError, match="no such axis"):
        study(FakeJudge(stable), axes=["weather"])
    with pytest.raises(NothingToJudge):
        study(FakeJudge(stable), [])


# The command


def test_the_command_prints_writes_and_exits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(item) + "\n" for item in ROWS), "utf-8")
    seen = []

    def build(config: Any, **_: Any) -> FakeJudge:
        seen.append(config)
        return FakeJudge(
            lambda task, f: -0.1 if task == "support@2" and "cold" in f["statement"] else stable(task, f)
        )

    monkeypatch.setattr(options, "build_judge", build)

    def run(*arguments: str) -> int:
        with pytest.raises(SystemExit) as exit_:
            app.main(["stability", str(tmp_path / "d.jsonl"), *arguments])
        return int(exit_.value.code or 0)

    assert run("-g", "faithfulness>=0.5", "-o", str(tmp_path / "st.json"), "--limit", "3", "-q") == 0
    out = capsys.readouterr().out
    assert "wording 2                       9      3  0.333       3  0.333" in out
    assert "threads 1" in out
    assert "flip rate      0.083" in out
    assert all(not config.cache for config in seen)
    document = json.loads((tmp_path / "st.json").read_text("utf-8"))
    assert document["flip_rate"] == pytest.approx(3 / 36)
    assert Stability.model_validate(document).samples == 3
    assert run("--axis", "weather") == 2
    assert run("-o", str(tmp_path / "st.txt")) == 2
    assert run("--axis", "repeat", "--json") == 0
    assert json.loads(capsys.readouterr().out)["axes"][0]["axis"] == "repeat"


def test_a_judge_that_leans_to_the_first_answer_named_is_moved_by_their_order() -> None:
    found = study(FakeJudge(lambda task, _: 1.0 if task == "support@labels" else -1.0), axes=["labels"])
    (item,) = found.axes
    assert (item.axis, item.variant, item.flips, item.must_be_zero) == ("labels", "1 or 0", 12, False)


def test_a_prompt_that_names_no_answers_has_no_order_of_them() -> None:
    class Trained(FakeJudge):
        def room(self, task: str, fields: Mapping[str, str]) -> int:
            if task not in load_profile("smollm2"):
                raise UsageError("no such task", value=task)
            return super().room(task, fields)

    found = study(Trained(), axes=["labels"])
    assert found.axes == ()
    assert found.skipped["labels"] == "the judge's prompt names no answers"


def test_a_flip_keeps_both_verdicts() -> None:
    found = study(FakeJudge(lambda task, _: -1.0 if task == "support@2" else 1.0))
    assert isinstance(found.flips[0].old, Verdict)
    assert (found.flips[0].old.margin, found.flips[0].new.margin) == (1.0, -1.0)
