"""Padding: what buys score and says nothing that was asked is named; the score without it stands beside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from anvil_local import FakeJudge, Options, evaluate
from anvil_local.errors import EngineError, PromptTooLong, UsageError
from anvil_local.gates import check_gates, parse_gate
from anvil_local.language import load_language, seeks
from anvil_local.padding import NEUTRAL, ask_padding, check_padding, mark_padding
from anvil_local.prompts import PROFILES, load_profile
from anvil_local.records import JudgedStatement, Padding, Reason, SampleResult, Statement, Verdict
from anvil_local.replay import replay
from anvil_local.reports import render_html, render_markdown, render_terminal
from anvil_local.scoring import exact_adjusted, without_padding

CONTEXT = "The mill was built in 1640. It is red. It stands by the river Aa."


def judged(*texts: str, values: tuple[int | None, ...] | None = None) -> list[JudgedStatement]:
    return [
        JudgedStatement(
            statement=Statement(text=text, start=0, end=0, sentence=number),
            verdict=Verdict(value=value, margin=None if value is None else 2.0 * value - 1),
        )
        for number, (text, value) in enumerate(zip(texts, values or tuple(1 for _ in texts), strict=True))
    ]


def ways(items: tuple[JudgedStatement, ...]) -> list[list[str]]:
    return [[str(way) for way in item.padding] for item in items]


@pytest.mark.parametrize(
    ("texts", "values", "repeated"),
    [
        (("The mill opens at nine on Mondays.", "On Mondays the mill opens at nine."), (1, 1), [1]),
        (("The pumps stopped.", "The pump stopped."), (1, 1), [1]),
        (
            ("A fuse had blown, so the pump stopped.", "The pump stopped because a fuse had blown."),
            (1, 1),
            [1],
        ),
        # Another number, a negation, another word, another verdict: not the same statement.
        (("The mill opens at 9.", "The mill opens at 10."), (1, 1), []),
        (("The mill is open.", "The mill is not open."), (1, 1), []),
        (("The mill is open.", "The mill is open daily."), (1, 1), []),
        (("The mill opens at nine.", "At nine the mill opens."), (1, 0), []),
        (("The mill opens at nine.", "At nine the mill opens."), (None, None), []),
        # The third repeats the first.
        (("The mill is red.", "The mill is old.", "Red is the mill."), (1, 1, 1), [2]),
        (("Młyn jest czerwony.", "Czerwony jest młyn."), (1, 1), [1]),
        (("水车是红色的。", "水车是蓝色的。"), (1, 1), []),
        (("It is.", "It is."), (1, 1), []),  # without a content word nothing can be said
    ],
)
def test_a_repeated_statement_is_padding(
    texts: tuple[str, ...], values: tuple[int | None, ...], repeated: list[int]
) -> None:
    marked = mark_padding(judged(*texts, values=values), None)
    assert [n for n, item in enumerate(marked) if Padding.DUPLICATE in item.padding] == repeated


@pytest.mark.parametrize(
    ("question", "text", "padding"),
    [
        ("When was the red mill built?", "The mill is red.", True),
        ("In which year was the red mill built?", "The mill was built.", True),
        ("When was the red mill built?", "The mill was built in 1640.", False),
        # To say so is the answer.
        ("Is the mill red?", "The mill is red.", False),
        ("Did Anna, who ran the mill, retire?", "Anna retired.", False),
        ("Is the mill red or blue?", "The mill is blue.", False),
        ("When was the red mill built?", "The mill is not red.", False),
        ("", "The mill is red.", False),
        (None, "The mill is red.", False),
        (
            "Wann wurde die rote Mühle gebaut?",
            "Die Mühle ist rot.",
            False,
        ),  # rote and rot: too short to match
        ("Wann wurde die Mühle in Halden gebaut?", "Die Mühle wurde in Halden gebaut.", True),
        ("Wurde die Mühle in Halden gebaut?", "Die Mühle wurde in Halden gebaut.", False),
    ],
)
def test_a_statement_that_says_no_more_than_the_question_is_padding(
    question: str | None, text: str, padding: bool
) -> None:
    (item,) = mark_padding(judged(text), question)
    assert (Padding.RESTATES_QUESTION in item.padding) is padding


@pytest.mark.parametrize("code", ["en", "de", "es", "fr", "it", "pt", "nl", "pl", "ja", "zh", "ar", "hi"])
def test_every_language_knows_questions_that_ask_for_more_than_yes_or_no(code: str) -> None:
    questions = {
        "en": ("When does it open?", "Does it open?"),
        "de": ("Wann öffnet es?", "Öffnet es?"),
        "es": ("¿Cuándo abre?", "¿Abre?"),
        "fr": ("Quand ouvre-t-il ?", "Ouvre-t-il ?"),
        "it": ("Quando apre?", "Apre?"),
        "pt": ("Quando abre?", "Abre?"),
        "nl": ("Wanneer opent het?", "Opent het?"),
        "pl": ("Kiedy otwiera?", "Czy otwiera?"),
        "ja": ("いつ開きますか", "開きますか"),
        "zh": ("什么时候开门?", "开门吗?"),
        "ar": ("متى يفتح؟", "هل يفتح؟"),
        "hi": ("यह कब खुलता है?", "यह खुलता है?"),
    }
    more, polar = questions[code]
    assert seeks(more, load_language(code))
    assert not seeks(polar, load_language(code))


ROW: dict[str, Any] = {
    "id": "mill",
    "user_input": "When was the mill built?",
    "response": (
        "The mill was built in 1640. The mill was built by Danes. "
        "In 1640 the mill was built. The mill was built. The mill is red."
    ),
    "retrieved_contexts": [CONTEXT],
}


def answers(task: str, fields: Mapping[str, str]) -> float:
    if task == "bears":
        assert fields["question"] == ROW["user_input"]
        return -1.0 if "red" in fields["statement"] else 1.0
    if fields["context"] == NEUTRAL:
        return -1.0
    return -2.0 if "Danes" in fields["statement"] else 2.0


def test_padding_found_by_words_costs_no_question_and_leaves_the_score() -> None:
    judge = FakeJudge(answers)
    report = evaluate([ROW], judge=judge, options=Options(decomposition="sentence"))
    assert {task for task, _ in judge.asked} == {"support"}
    assert len(judge.asked) == 5
    (result,) = report.results
    assert ways(result.statements) == [[], [], ["duplicate"], ["restates_question"], []]
    assert (result.score, result.padded, result.adjusted) == (0.8, 2, 2 / 3)
    (summary,) = report.summaries
    assert (summary.mean, summary.padded, summary.adjusted, summary.only_padding) == (0.8, 2, 2 / 3, 0)


def test_with_padding_the_judge_is_asked_what_bears_and_what_it_knows() -> None:
    judge = FakeJudge(answers)
    report = evaluate([ROW], judge=judge, options=Options(decomposition="sentence", padding=True))
    (result,) = report.results
    assert ways(result.statements)[-1] == ["aside"]
    assert (result.score, result.padded, result.adjusted) == (0.8, 3, 0.5)
    # Only supported statements are asked without their context; every statement is asked whether it bears.
    assert sum(task == "bears" for task, _ in judge.asked) == 5
    assert sum(fields.get("context") == NEUTRAL for _, fields in judge.asked) == 4
    assert result.statements[1].unaided is None
    assert report.settings.padding
    again = replay(report, FakeJudge(answers))
    assert (again.questions, again.moves) == (14, ())
    assert "padding" in render_terminal(report)
    assert "aside 1, duplicate 1, restates_question 1" in render_terminal(report)
    assert "padding: aside" in render_html(report)
    assert "Padding: <code>3" in render_markdown(report)


def test_what_the_judge_believes_without_the_context_is_padding() -> None:
    judge = FakeJudge(lambda task, fields: 1.0)
    report = evaluate([ROW], judge=judge, options=Options(decomposition="sentence", padding=True))
    (result,) = report.results
    assert all(Padding.KNOWN in item.padding for item in result.statements)
    # Nothing is left: that is no score, and it is counted.
    assert (result.score, result.adjusted) == (1.0, None)
    assert report.summaries[0].only_padding == 1
    assert "1 sample nothing but padding" in render_terminal(report)
    (outcome,) = check_gates([parse_gate("faithfulness.adjusted>=0.5")], report.results)
    assert not outcome.passed
    assert outcome.value is None
    assert "only_padding 1" in outcome.message


def test_where_nothing_bears_on_the_question_nobody_is_beside_it() -> None:
    judge = FakeJudge(lambda task, fields: -1.0 if task == "bears" else 1.0)
    report = evaluate([ROW], judge=judge, options=Options(decomposition="sentence", padding=True))
    (result,) = report.results
    assert not any(Padding.ASIDE in item.padding for item in result.statements)
    assert result.flags == ("beside_the_question",)


def test_without_a_question_or_a_context_there_is_nothing_to_ask() -> None:
    judge = FakeJudge(answers)
    row = {key: value for key, value in ROW.items() if key != "user_input"}
    evaluate([row], judge=judge, options=Options(padding=True))
    assert not any(task == "bears" for task, _ in judge.asked)
    judge = FakeJudge(answers)
    report = evaluate([{**ROW, "retrieved_contexts": []}], judge=judge, options=Options(padding=True))
    assert judge.asked == []
    assert report.results[0].adjusted == 0.0


@pytest.mark.parametrize(
    ("error", "reason"),
    [(EngineError("broken"), Reason.ENGINE_ERROR), (PromptTooLong("long"), Reason.PROMPT_TOO_LONG)],
)
def test_a_question_that_fails_says_nothing(error: Exception, reason: Reason) -> None:
    (item,) = mark_padding(ask_padding(judged("The mill is red."), "What is red?", FakeJudge([error])), None)
    assert item.padding == ()
    assert item.unaided is not None
    assert item.bears is not None
    assert item.unaided.reason is item.bears.reason is reason


def test_adjusted_never_exceeds_the_score_and_keeps_refused_padding() -> None:
    texts = ("The mill is red.", "Red is the mill.", "The mill is old.", "Old is the mill.")
    marked = mark_padding(judged(*texts, values=(1, 1, 0, 0)), None)
    result = (
        evaluate([ROW], judge=FakeJudge([1]))
        .results[0]
        .model_copy(update={"statements": marked, "supported": 2, "scored": 4, "padded": 1, "score": 0.5})
    )
    assert exact_adjusted(result) == pytest.approx(1 / 3)
    (bare,) = without_padding([result])
    assert (bare.supported, bare.scored) == (1, 3)


def test_a_gate_on_the_score_without_padding() -> None:
    report = evaluate([ROW] * 1, judge=FakeJudge(answers), options=Options(decomposition="sentence"))
    raw, adjusted = check_gates(
        [parse_gate("faithfulness>=0.8"), parse_gate("faithfulness.adjusted>=0.8")], report.results
    )
    assert raw.passed
    assert not adjusted.passed
    assert (adjusted.value, adjusted.flips) == (2 / 3, 1)
    assert "2 of 3 statements supported" in adjusted.message
    with pytest.raises(UsageError, match="a goal has no padding"):
        parse_gate("goal.adjusted>=0.8")


def test_goals_have_no_padding() -> None:
    trace = {
        "user_input": [{"role": "user", "content": "Book it."}, {"role": "assistant", "content": "Booked."}],
        "reference": "It is booked.",
    }
    report = evaluate([trace], judge=FakeJudge([1]))
    assert report.summaries[0].adjusted is None
    assert report.summaries[0].adjusted_interval is None


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_can_ask_what_bears(name: str) -> None:
    prompts = load_profile(name)
    prompt = prompts["bears"]
    assert prompt.fields == {"question", "statement"}
    assert prompt.labels is not None


def test_a_judge_without_the_question_is_refused_before_the_first_verdict() -> None:
    class Old(FakeJudge):
        def room(self, task: str, fields: Mapping[str, str]) -> int:
            if task == "bears":
                raise UsageError("the prompt profile has no such task", where="mine", value=task)
            return super().room(task, fields)

    judge = Old([1])
    with pytest.raises(UsageError, match="cannot tell what bears"):
        evaluate([ROW], judge=judge, options=Options(padding=True))
    assert judge.asked == []
    with pytest.raises(UsageError):
        check_padding(judge)


def test_an_old_report_has_no_adjusted_score() -> None:
    result = evaluate([ROW], judge=FakeJudge([1])).results[0]
    old = result.model_dump(mode="json")
    for key in ("padded", "adjusted"):
        del old[key]
    assert SampleResult.model_validate(old).adjusted is None
