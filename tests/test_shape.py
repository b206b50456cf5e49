"""The shape of a failure: a refused statement is contradicted, or only not stated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from anvil_local import FakeJudge, Options, evaluate
from anvil_local.assess import check_shape, judge_statements
from anvil_local.cli import app, options
from anvil_local.errors import EngineError, UsageError
from anvil_local.prompts import PROFILES, load_profile
from anvil_local.records import Reason, Shape, Statement
from anvil_local.replay import replay
from anvil_local.reports import load_report, render_markdown, render_terminal, write_reports

ROW = {
    "id": "mill",
    "response": "The mill is old. The mill is new. The mill is red.",
    "retrieved_contexts": ["The mill was built in 1640."],
}


def answers(task: str, fields: Mapping[str, str]) -> float:
    if task == "support":
        return 2.0 if "old" in fields["statement"] else -2.0
    assert task == "contradict"
    return 1.5 if "new" in fields["statement"] else -1.5


def statement(text: str) -> Statement:
    return Statement(text=text, start=0, end=1, sentence=0)


def test_refused_statements_alone_are_asked_and_only_when_wanted() -> None:
    judge = FakeJudge(answers)
    plain = evaluate([ROW], judge=judge)
    assert {task for task, _ in judge.asked} == {"support"}
    assert [item.shape for item in plain.results[0].statements] == [None, None, None]
    judge = FakeJudge(answers)
    shaped = evaluate([ROW], judge=judge, options=Options(shape=True))
    assert [fields["statement"] for task, fields in judge.asked if task == "contradict"] == [
        "The mill is new.",
        "The mill is red.",
    ]
    assert [item.shape for item in shaped.results[0].statements] == [
        None,
        Shape.CONTRADICTED,
        Shape.NOT_STATED,
    ]
    assert shaped.settings.shape
    assert shaped.results[0].score == plain.results[0].score
    assert [item.verdict for item in shaped.results[0].statements] == [
        item.verdict for item in plain.results[0].statements
    ]


def test_an_empty_context_contradicts_nothing_and_nobody_is_asked() -> None:
    judge = FakeJudge(answers)
    (item,) = judge_statements([statement("The mill is new.")], " ", judge, shape=True)
    assert item.shape is Shape.NOT_STATED
    assert item.contradiction is not None
    assert item.contradiction.reason is Reason.EMPTY_CONTEXT
    assert judge.asked == []


def test_a_question_that_fails_leaves_the_shape_open_and_the_verdict_as_it_is() -> None:
    judge = FakeJudge([0, EngineError("broken")])
    (item,) = judge_statements([statement("The mill is new.")], "It is old.", judge, shape=True)
    assert (item.verdict.value, item.shape) == (0, None)
    assert item.contradiction is not None
    assert item.contradiction.reason is Reason.ENGINE_ERROR


def test_a_statement_is_contradicted_if_any_window_contradicts_it() -> None:
    context = " ".join(f"Pump {number} runs in hall {number}." for number in range(100))

    def reply(task: str, fields: Mapping[str, str]) -> float:
        return 3.0 if task == "contradict" and "Pump 70 " in fields["context"] else -3.0

    judge = FakeJudge(reply, window=120)
    (item,) = judge_statements([statement("Pump 70 stands still.")], context, judge, shape=True)
    assert item.shape is Shape.CONTRADICTED
    assert item.contradiction is not None
    assert item.contradiction.windows > 1


def test_the_question_begins_as_the_support_question_does() -> None:
    for name in ("chat", "plain"):
        profile = load_profile(name)
        assert profile["contradict"].segments[:-1] == profile["support"].segments[:-1]
        assert profile["contradict"].wrap == profile["support"].wrap


def test_a_profile_with_a_support_question_of_its_own_borrows_no_contradiction_question() -> None:
    assert {name for name in PROFILES if "contradict" in load_profile(name)} == {"chat", "plain"}


class Specialist(FakeJudge):
    """Knows support and nothing else, as the default judge does."""

    def room(self, task: str, fields: Mapping[str, str]) -> int:
        if task == "contradict":
            raise UsageError("the prompt profile has no such task", where="smollm2", value=task)
        return super().room(task, fields)


def test_a_judge_that_cannot_tell_is_refused_before_the_first_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    judge = Specialist(answers)
    with pytest.raises(UsageError, match="cannot tell contradicted from not stated"):
        check_shape(judge)
    with pytest.raises(UsageError, match="cannot tell"):
        evaluate([ROW], judge=judge, options=Options(shape=True))
    (tmp_path / "data.jsonl").write_text(json.dumps(ROW) + "\n", encoding="utf-8")
    monkeypatch.setattr(options, "build_judge", lambda config, **_: judge)
    with pytest.raises(SystemExit) as exit_:
        app.main(["run", str(tmp_path / "data.jsonl"), "--shape"])
    assert exit_.value.code == 2
    assert "--shape" in capsys.readouterr().err
    assert judge.asked == []


def test_the_reports_say_which_it_is() -> None:
    report = evaluate([ROW], judge=FakeJudge(answers), options=Options(shape=True))
    for text in (render_terminal(report), render_markdown(report)):
        assert "contradicted" in text
        assert "not stated" in text


def test_a_report_with_shapes_can_be_read_and_replayed(tmp_path: Path) -> None:
    report = evaluate([ROW], judge=FakeJudge(answers), options=Options(shape=True))
    write_reports(report, [tmp_path / "out.json"])
    read = load_report(tmp_path / "out.json")
    assert read.results == report.results
    found = replay(read, FakeJudge(answers))
    assert (found.questions, found.moves) == (5, ())
    moved = replay(
        read, FakeJudge(lambda task, fields: 1.0 if task == "contradict" else answers(task, fields))
    )
    assert [move.question for move in moved.flips] == ["contradicted: The mill is red."]
