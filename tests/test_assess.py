"""One sample under one metric: verdicts, windows, failures, and the three goal questions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil_local import evaluate
from anvil_local.assess import Options, infer_workflow, judge_prepared, judge_statements, prepare
from anvil_local.errors import EngineError, OutOfMemory, PromptTooLong
from anvil_local.judge import FakeJudge
from anvil_local.metrics import METRICS
from anvil_local.records import Message, Reason, Role, Sample, SampleResult, Statement, ToolCall, Verdict
from anvil_local.reports.findings import find

SENTENCES = Options(decomposition="sentence")


def assess(sample: Sample, metric: str, judge: FakeJudge, options: Options = SENTENCES) -> SampleResult:
    return judge_prepared(prepare(sample, METRICS[metric], judge, options), judge)


def answer(response: str, *contexts: str, question: str | None = "What?") -> Sample:
    return Sample(id="1", user_input=question, response=response, retrieved_contexts=contexts)


def faithful(response: str, *contexts: str, judge: FakeJudge | None = None, **options: Any) -> SampleResult:
    judge = judge or FakeJudge()
    return assess(
        answer(response, *contexts), "faithfulness", judge, Options(**options) if options else SENTENCES
    )


def statements(*texts: str) -> list[Statement]:
    return [Statement(text=text, start=0, end=1, sentence=0) for text in texts]


# Faithfulness


def test_every_statement_is_asked_about_with_the_joined_contexts() -> None:
    judge = FakeJudge([1, 0])
    result = faithful("The mill is old. It leaks.", "First.", " ", "Second.", judge=judge)
    assert judge.asked == [
        ("support", {"context": "First.\n\nSecond.", "statement": "The mill is old."}),
        ("support", {"context": "First.\n\nSecond.", "statement": "The mill leaks."}),
    ]
    assert (result.score, result.supported, result.scored, result.unscored) == (0.5, 1, 2, 0)
    assert [item.verdict.value for item in result.statements] == [1, 0]
    assert result.response == "The mill is old. It leaks."


@pytest.mark.parametrize("contexts", [(), ("",), ("  \n", "\t")])
def test_an_empty_context_supports_nothing_and_asks_nobody(contexts: tuple[str, ...]) -> None:
    judge = FakeJudge()
    result = faithful("The mill is old. It leaks.", *contexts, judge=judge)
    assert result.score == 0.0
    assert "empty_context" in result.flags
    assert {item.verdict.reason for item in result.statements} == {Reason.EMPTY_CONTEXT}
    assert judge.asked == []


def test_a_response_without_claims_has_no_score_whatever_the_context() -> None:
    for contexts in ((), ("The mill is old.",)):
        result = faithful("I don't know. Anything else?", *contexts)
        assert (result.score, result.reason) == (None, Reason.NO_STATEMENTS)
        assert result.statements == ()
        assert result.decomposition is not None
        assert result.decomposition.without_claim == 2


@pytest.mark.parametrize(
    ("error", "reason"),
    [(EngineError("broken"), Reason.ENGINE_ERROR), (PromptTooLong("long"), Reason.PROMPT_TOO_LONG)],
)
def test_a_statement_that_fails_is_unscored_and_the_others_are_judged(
    error: EngineError, reason: Reason
) -> None:
    result = faithful("The mill is old. It leaks. It is red.", "c", judge=FakeJudge([1, error, 0]))
    assert [item.verdict.value for item in result.statements] == [1, None, 0]
    assert result.statements[1].verdict.reason is reason
    assert (result.score, result.scored, result.unscored) == (0.5, 2, 1)


def test_when_all_statements_fail_there_is_no_score() -> None:
    result = faithful("The mill is old. It leaks.", "c", judge=FakeJudge([EngineError("broken")]))
    assert (result.score, result.reason) == (None, Reason.ENGINE_ERROR)
    assert (result.scored, result.unscored) == (0, 2)


def test_too_little_memory_ends_the_run() -> None:
    with pytest.raises(OutOfMemory):
        faithful("The mill is old.", "c", judge=FakeJudge([OutOfMemory("full")]))


def test_a_statement_too_long_for_the_window_is_unscored_and_leaves_the_others_their_room() -> None:
    judge = FakeJudge(window=100)
    judged = judge_statements(statements("word " * 80, "short one"), "context " * 50, judge)
    assert [item.verdict.value for item in judged] == [None, 1]
    assert judged[0].verdict.reason is Reason.PROMPT_TOO_LONG
    assert judged[1].verdict.windows == 1


def test_a_long_context_is_judged_in_windows_and_any_of_them_may_support() -> None:
    context = " ".join(f"Pump {number} runs in hall {number}." for number in range(100))

    def reply(task: str, fields: Mapping[str, str]) -> float:
        return 3.0 if "Pump 70 " in fields["context"] else -2.0

    judge = FakeJudge(reply, window=100)
    judged = judge_statements(statements("Pump 70 runs."), context, judge)
    verdict = judged[0].verdict
    assert (verdict.value, verdict.margin) == (1, 3.0)
    assert verdict.windows == len(judge.asked) > 5
    assert verdict.window is not None
    assert "Pump 70 " in judge.asked[verdict.window][1]["context"]
    seen = " ".join(fields["context"] for _, fields in judge.asked)
    assert all(f"Pump {number} " in seen for number in range(100))


def test_a_verdict_does_not_depend_on_the_statements_beside_it() -> None:
    context = " ".join(f"Pump {number} runs in hall {number}." for number in range(200))
    texts = ["Pump 7 runs.", "word " * 150, "Pump 9 runs " + "and runs " * 10, "word " * 120]

    def asked(*numbers: int) -> dict[str, list[str]]:
        judge = FakeJudge(window=300)
        judge_statements(statements(*(texts[number] for number in numbers)), context, judge)
        found: dict[str, list[str]] = {}
        for _, fields in judge.asked:
            found.setdefault(fields["statement"], []).append(fields["context"])
        return found

    together = asked(0, 1, 2, 3)
    for number, text in enumerate(texts):
        assert asked(number) == {text: together[text]}
    assert together[texts[0]] == together[texts[2]]
    assert len(together[texts[1]]) > len(together[texts[0]]) > 1


def test_the_first_of_equal_windows_decides() -> None:
    judged = judge_statements(statements("x"), "One two three. " * 100, FakeJudge([-1.0], window=100))
    assert judged[0].verdict.window == 0
    assert judged[0].verdict.value == 0


def test_a_window_that_comes_twice_is_asked_about_once_and_counted_twice() -> None:
    judge = FakeJudge([-1.0], window=100)
    judged = judge_statements(statements("x"), "One two three. " * 300, judge)
    assert judged[0].verdict.windows > len(judge.asked)
    assert len({fields["context"] for _, fields in judge.asked}) == len(judge.asked)


def test_a_failure_in_one_window_leaves_the_statement_undecided() -> None:
    judge = FakeJudge([1, EngineError("broken")], window=100)
    judged = judge_statements(statements("x"), " ".join(map(str, range(400))), judge)
    assert judged[0].verdict.value is None
    assert judged[0].verdict.windows > 1
    assert len(judge.asked) == 2


def test_windows_are_flagged() -> None:
    result = faithful("The mill is old.", "One two three. " * 100, judge=FakeJudge(window=100))
    assert "windows" in result.flags
    assert "windows" not in faithful("The mill is old.", "One.").flags


@given(
    st.lists(
        st.sampled_from(["The mill is old.", "He left.", "Hi!", "1,5 mm", "橋は古い。", "\n"])
        | st.text(max_size=12)
    ),
    st.lists(st.text(max_size=30), max_size=3),
    st.lists(
        st.sampled_from([0, 1, 0.5, -0.5, EngineError("e"), PromptTooLong("p")]), min_size=1, max_size=9
    ),
    st.sampled_from(["llm", "sentence"]),
)
def test_statements_verdicts_spans_and_counts_agree_for_any_answer(
    parts: list[str], contexts: list[str], answers: list[Any], mode: Any
) -> None:
    response = " ".join(parts)
    result = faithful(response, *contexts, judge=FakeJudge(answers), decomposition=mode)
    assert result.decomposition is not None
    assert tuple(item.statement for item in result.statements) == result.decomposition.statements
    values = [item.verdict.value for item in result.statements]
    assert result.supported == values.count(1)
    assert result.scored == values.count(1) + values.count(0)
    assert result.unscored == values.count(None)
    assert (result.score is None) == (result.scored == 0)
    assert (result.reason is None) == (result.score is not None)
    for item in result.statements:
        span = response[item.statement.start : item.statement.end]
        assert span
        assert span == span.strip()
        assert (item.verdict.value is None) <= (item.verdict.reason is not None)
    assert result == faithful(response, *contexts, judge=FakeJudge(answers), decomposition=mode)


# Goal accuracy

HUMAN = Message(role=Role.HUMAN, content="Cancel order 17.")
CALL = Message(role=Role.AI, tool_calls=(ToolCall(name="cancel", args={"order": 17}, id="c"),))
TOOL = Message(role=Role.TOOL, content="error: locked", tool_call_id="c")
AI = Message(role=Role.AI, content="It is cancelled.")
SYSTEM = Message(role=Role.SYSTEM, content="You are a clerk.")


def trace(*messages: Message, reference: str | None = None) -> Sample:
    return Sample(id="t", user_input=messages, reference=reference)


FULL = trace(HUMAN, CALL, TOOL, AI, reference="Order 17 is cancelled.")


def questions(judge: FakeJudge) -> list[str]:
    return [fields["trace"] for task, fields in judge.asked if task == "goal"]


def test_with_a_reference_the_outcome_asked_about_is_the_reference() -> None:
    judge = FakeJudge()
    result = assess(FULL, "goal_with_reference", judge)
    assert {fields["outcome"] for _, fields in judge.asked} == {"Order 17 is cancelled."}
    assert result.goal is not None
    assert result.goal.desired_from == "reference"
    assert result.goal.workflow is not None
    assert (result.score, result.scored) == (1.0, 1)


def test_without_one_it_is_the_goal_that_the_model_inferred() -> None:
    judge = FakeJudge(writings=["user_goal: cancel order 17\nend_state: it was locked\n"])
    result = assess(FULL, "goal_without_reference", judge)
    assert result.goal is not None
    assert (result.goal.desired, result.goal.desired_from) == ("cancel order 17", "user_goal")
    assert {fields["outcome"] for _, fields in judge.asked} == {"cancel order 17"}


def test_the_three_questions_see_all_the_words_alone_and_the_deeds_alone() -> None:
    judge = FakeJudge([0, 1, 0])
    result = assess(FULL, "goal_with_reference", judge)
    everything, claimed, done = questions(judge)
    assert "cancelled." in everything
    assert "locked" in everything
    assert "cancelled." in claimed
    assert "locked" not in claimed
    assert "locked" in done
    assert "It is cancelled." not in done
    assert "claimed_not_done" in result.flags
    assert result.score == 0.0


def test_without_tool_results_or_words_the_part_says_so() -> None:
    silent = assess(trace(HUMAN, CALL, TOOL), "goal_without_reference", FakeJudge())
    assert silent.goal is not None
    assert (silent.goal.claimed.value, silent.goal.claimed.reason) == (None, Reason.NO_AGENT_WORDS)
    assert silent.goal.done.value == 1
    idle = assess(trace(HUMAN, AI), "goal_without_reference", FakeJudge())
    assert idle.goal is not None
    assert (idle.goal.done.value, idle.goal.done.reason) == (None, Reason.NO_TOOL_RESULTS)
    assert idle.score == 1.0
    assert "claimed_not_done" not in idle.flags


@pytest.mark.parametrize("writing", ["", "nonsense", "user_goal: \nend_state: x\n", "user_goal: half of"])
def test_a_workflow_that_did_not_come_out_leaves_the_user_s_own_words(writing: str) -> None:
    result = assess(trace(SYSTEM, HUMAN, AI), "goal_without_reference", FakeJudge(writings=[writing]))
    assert result.goal is not None
    assert result.goal.workflow is None
    assert result.goal.desired == "Cancel order 17."


def failing(error: EngineError) -> FakeJudge:
    def write(task: str, fields: Mapping[str, str]) -> str:
        raise error

    return FakeJudge(writings=write)


@pytest.mark.parametrize(
    ("error", "reason"),
    [(EngineError("broken"), Reason.ENGINE_ERROR), (PromptTooLong("long"), Reason.PROMPT_TOO_LONG)],
)
def test_a_goal_that_could_not_be_inferred_is_unscored_and_with_a_reference_not_needed(
    error: EngineError, reason: Reason
) -> None:
    judge = failing(error)
    without = assess(FULL, "goal_without_reference", judge)
    assert (without.score, without.reason, without.goal) == (None, reason, None)
    assert (without.scored, without.unscored) == (0, 1)
    assert judge.asked == []
    with_reference = assess(FULL, "goal_with_reference", failing(error))
    assert with_reference.score == 1.0


def test_an_engine_error_on_the_headline_is_unscored_never_0_or_1() -> None:
    result = assess(FULL, "goal_with_reference", FakeJudge([EngineError("broken"), 1, 1]))
    assert (result.score, result.reason) == (None, Reason.ENGINE_ERROR)
    assert (result.scored, result.unscored) == (0, 1)


def test_an_engine_error_on_a_part_leaves_the_headline() -> None:
    result = assess(FULL, "goal_with_reference", FakeJudge([1, EngineError("broken"), 1]))
    assert result.score == 1.0
    assert result.goal is not None
    assert result.goal.claimed == Verdict(value=None, reason=Reason.ENGINE_ERROR)


def test_a_reference_too_long_for_the_window_is_unscored() -> None:
    long = trace(HUMAN, AI, reference="word " * 200)
    result = assess(long, "goal_with_reference", FakeJudge(window=260))
    assert (result.score, result.reason) == (None, Reason.PROMPT_TOO_LONG)


def test_a_long_trace_keeps_what_was_wanted_and_the_end_and_counts_what_is_gone() -> None:
    rules = Message(role=Role.SYSTEM, content="rule " * 400)
    steps = [Message(role=Role.TOOL, content=f"step {number} " * 20) for number in range(40)]
    judge = FakeJudge(window=300)
    result = assess(trace(rules, HUMAN, *steps, AI), "goal_without_reference", judge)
    assert result.goal is not None
    assert result.goal.cut_tokens > 1000
    assert "trace_cut" in result.flags
    for text in [*questions(judge), judge.wrote[0][1]["trace"]]:
        assert HUMAN.content in text
        assert "[...]" in text or "step" not in text
    assert AI.content in questions(judge)[0]
    assert "rule" not in questions(judge)[0]


@pytest.mark.parametrize("formatter", ["anvil-trace/1", "anvil-trace/2"])
def test_a_cut_trace_says_which_messages_were_cut(formatter: str) -> None:
    listing = Message(role=Role.TOOL, content=" ".join(f"row{n}" for n in range(900)))
    said = [Message(role=Role.HUMAN, content=f"And leg {n}?") for n in range(5)]
    judge = FakeJudge(window=500)
    how = Options(formatter=formatter)
    result = assess(trace(HUMAN, listing, *said, AI), "goal_without_reference", judge, how)
    assert result.goal is not None
    assert (result.goal.shortened, result.goal.left_out) == ((2,), ())
    assert "row0 " in questions(judge)[0]
    assert "row899" in questions(judge)[0]
    (finding,) = find(result, everything=True)
    assert any("(messages shortened 2)" in detail for detail in finding.details)


def test_compaction_keeps_the_users_turns_where_the_other_formatter_keeps_the_end() -> None:
    steps = [Message(role=Role.TOOL, content=f"step {number} " * 30) for number in range(20)]
    middle = Message(role=Role.HUMAN, content="Only if it is free of charge.")
    messages = trace(HUMAN, middle, *steps, AI)
    found = {}
    for formatter in ("anvil-trace/1", "anvil-trace/2"):
        judge = FakeJudge(window=500)
        result = assess(messages, "goal_without_reference", judge, Options(formatter=formatter))
        assert result.goal is not None
        found[formatter] = (middle.content in questions(judge)[0], 2 in result.goal.left_out)
    assert found == {"anvil-trace/1": (False, True), "anvil-trace/2": (True, False)}


def test_a_short_trace_is_whole() -> None:
    result = assess(FULL, "goal_with_reference", FakeJudge())
    assert result.goal is not None
    assert result.goal.cut_tokens == 0
    assert result.flags == ()


def test_a_window_too_small_for_any_trace_says_so() -> None:
    with pytest.raises(PromptTooLong):
        infer_workflow([HUMAN, AI], FakeJudge(window=100), Options())


def test_the_formatter_is_part_of_the_result() -> None:
    judge = FakeJudge()
    result = assess(FULL, "goal_with_reference", judge, Options(formatter="ragas/1"))
    assert result.goal is not None
    assert result.goal.formatter == "ragas/1"
    assert questions(judge)[0].startswith("Human: Cancel order 17.")


@pytest.mark.parametrize(
    "writing",
    [
        # the instruction, repeated; another trace; an end that never was; unfinished
        "user_goal: what the user wanted\nend_state: what had happened at the end\n",
        "user_goal: Book a table for two.\nend_state: Order 17 is cancelled.\n",
        "user_goal: Cancel order 17.\nend_state: The moon is made of cheese.\n",
        "user_goal: Cancel order 17.\nend_state: ",
    ],
)
def test_a_goal_or_an_end_state_that_the_trace_does_not_bear_out_is_not_judged(writing: str) -> None:
    messages = [
        {"role": "user", "content": "Cancel order 17."},
        {"role": "assistant", "content": "Order 17 is cancelled."},
    ]
    judge = FakeJudge([1], [writing])
    (result,) = evaluate([{"messages": messages}], judge=judge).results
    assert result.goal is not None
    assert result.goal.workflow is None
    assert (result.goal.desired, result.goal.desired_from) == ("Cancel order 17.", "user_words")
