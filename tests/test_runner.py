"""A run: order, grouping, which metric judges what, progress, interruptions and the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil_local.assess import Options
from anvil_local.errors import EngineError, ExitCode, InputError, NothingToJudge, OutOfMemory, UsageError
from anvil_local.judge import FakeJudge
from anvil_local.metrics import choose_metrics
from anvil_local.records import Message, Reason, Report, Role, Sample, SampleResult
from anvil_local.runner import Progress, build_report, check_fit, evaluate, make_settings, run_samples

ROW = {"user_input": "What leaks?", "response": "The gate leaks.", "retrieved_contexts": ["The gate leaks."]}
TRACE = {
    "user_input": [
        {"role": "user", "content": "Close it."},
        {"role": "assistant", "content": "It is closed."},
    ]
}
REFERENCED = {**TRACE, "reference": "The gate is closed."}


def answer(number: int, context: str = "c", response: str = "The gate leaks.") -> Sample:
    return Sample(id=str(number), user_input="Q?", response=response, retrieved_contexts=(context,))


def run(
    samples: list[Sample], judge: FakeJudge | None = None, names: Any = None, **more: Any
) -> Iterator[SampleResult]:
    return run_samples(
        samples, judge=judge or FakeJudge(), choices=choose_metrics(names), options=Options(), **more
    )


# Order


def test_results_come_in_the_order_of_the_data_though_equal_contexts_are_judged_together() -> None:
    judge = FakeJudge()
    samples = [answer(number, context=f"context {number % 3}") for number in range(70)]
    assert [result.sample_id for result in run(samples, judge)] == [str(number) for number in range(70)]
    contexts = [fields["context"] for _, fields in judge.asked]
    changes = sum(before != after for before, after in pairwise(contexts))
    assert changes < 10
    assert len(contexts) == 70


def test_a_group_is_prepared_before_it_is_judged_and_results_stream() -> None:
    taken = []

    def samples() -> Iterator[Sample]:
        for number in range(1000):
            taken.append(number)
            yield answer(number)

    first = next(run_samples(samples(), judge=FakeJudge(), choices=choose_metrics(None), options=Options()))
    assert first.sample_id == "0"
    assert len(taken) < 100


def test_another_executor_gets_the_whole_work_and_its_results_make_the_report() -> None:
    calls: list[list[str]] = []

    def one_by_one(samples: Iterable[Sample], *, part: bool = False, **work: Any) -> Iterator[SampleResult]:
        assert not part
        for sample in samples:
            calls.append([sample.id])
            yield from run_samples([sample], part=True, **work)

    rows = [answer(number) for number in range(3)]
    apart = evaluate(rows, judge=FakeJudge([1, 0, 1]), executor=one_by_one, gates="faithfulness>=0.5")
    here = evaluate(rows, judge=FakeJudge([1, 0, 1]), gates="faithfulness>=0.5")
    assert calls == [["0"], ["1"], ["2"]]
    assert apart.model_copy(update={"created": here.created}) == here


def test_one_sample_can_have_results_of_several_metrics() -> None:
    report = evaluate(
        [REFERENCED], judge=FakeJudge(), metrics=["goal_with_reference", "goal_without_reference"]
    )
    assert [result.metric for result in report.results] == ["goal_with_reference", "goal_without_reference"]
    assert report.settings.metrics == ("goal_with_reference", "goal_without_reference")


# Which metric judges what


def test_left_alone_every_row_gets_what_fits() -> None:
    report = evaluate([ROW, TRACE, REFERENCED], judge=FakeJudge())
    assert [result.metric for result in report.results] == [
        "faithfulness",
        "goal_without_reference",
        "goal_with_reference",
    ]


def test_left_alone_a_row_that_nothing_fits_is_refused_before_the_first_verdict() -> None:
    judge = FakeJudge()
    with pytest.raises(InputError, match="needs retrieved_contexts") as error:
        evaluate([ROW, {"user_input": "Q?", "response": "A."}], judge=judge)
    assert error.value.where == "samples[1]"
    assert error.value.field == "retrieved_contexts"
    assert judge.asked == judge.wrote == []


@pytest.mark.parametrize("name", ["faithfulness", "goal", "goal_with_reference"])
def test_a_named_metric_or_group_takes_its_rows_and_leaves_the_others(name: str) -> None:
    report = evaluate([ROW, REFERENCED, ROW], judge=FakeJudge(), metrics=[name])
    assert len(report.results) == (2 if name == "faithfulness" else 1)


@pytest.mark.parametrize("name", ["goal", "goal_with_reference"])
def test_a_named_metric_that_fits_no_row_is_a_mistake_found_before_the_first_verdict(name: str) -> None:
    judge = FakeJudge()
    with pytest.raises(UsageError, match=f"the metric {name} fits no row") as error:
        evaluate([ROW], judge=judge, metrics=["faithfulness", name])
    assert error.value.hint
    assert "trace" in error.value.hint
    assert judge.asked == []
    with pytest.raises(UsageError, match="fits no row"):
        list(run([answer(1)], names=["faithfulness", name]))


def test_a_group_of_which_one_member_fits_is_used() -> None:
    report = evaluate([REFERENCED], judge=FakeJudge(), metrics=["goal", "goal_with_reference"])
    assert [result.metric for result in report.results] == ["goal_with_reference"]


@pytest.mark.parametrize("names", [None, ["faithfulness"], ["goal"]])
def test_no_rows_are_nothing_to_judge(names: list[str] | None) -> None:
    with pytest.raises(NothingToJudge) as error:
        evaluate([], judge=FakeJudge(), metrics=names)
    assert error.value.exit_code == ExitCode.NOTHING
    with pytest.raises(NothingToJudge):
        list(run([], names=names))


def test_no_metrics_are_refused() -> None:
    with pytest.raises(UsageError, match="no metric is chosen"):
        evaluate([ROW], judge=FakeJudge(), metrics=[])


def test_the_number_of_results_is_known_before() -> None:
    samples = [answer(1), answer(2), Sample(id="3", user_input=(Message(role=Role.HUMAN, content="Go."),))]
    assert check_fit(samples, choose_metrics(None)) == 3
    assert check_fit(samples, choose_metrics(["faithfulness"])) == 2


def test_one_name_and_one_rule_need_no_list() -> None:
    report = evaluate([ROW], judge=FakeJudge(), metrics="faithfulness", gates="faithfulness>=0.5")
    assert report.passed
    assert [gate.rule for gate in report.gates] == ["faithfulness>=0.5"]


# Progress and interruptions


def test_progress_counts_results_and_verdicts() -> None:
    steps: list[Progress] = []
    samples = [answer(1, response="It leaks. It is red."), answer(2), answer(3, response="IDK")]
    results = list(run(samples, on_progress=steps.append))
    assert [step.stage for step in steps] == ["prepare"] * 3 + ["judge"] * 3
    assert [step.finished for step in steps] == [0, 0, 0, 1, 2, 3]
    assert [step.verdicts for step in steps] == sorted(step.verdicts for step in steps)
    assert steps[-1] == Progress(3, sum(len(result.statements) for result in results), "judge")


def test_an_interruption_leaves_the_results_of_finished_groups() -> None:
    def reply(task: str, fields: Mapping[str, str]) -> int:
        if fields["context"] == "stop":
            raise KeyboardInterrupt
        return 1

    samples = [answer(number) for number in range(40)] + [answer(40, context="stop")]
    iterator = run(samples, FakeJudge(reply))
    results = [next(iterator) for _ in range(32)]
    with pytest.raises(KeyboardInterrupt):
        next(iterator)
    assert [result.sample_id for result in results] == [str(number) for number in range(32)]


def test_an_interrupted_report_is_incomplete_and_does_not_pass() -> None:
    judge = FakeJudge()
    results = list(run([answer(1)], judge))
    settings = make_settings(results, Options(), [], 0.05)
    assert build_report(results, judge=judge, settings=settings).passed
    report = build_report(results, judge=judge, settings=settings, complete=False)
    assert (report.passed, report.complete) == (False, False)


# Failures are data


def test_an_engine_error_is_unscored_and_makes_a_gate_fail_and_the_run_goes_on() -> None:
    def reply(task: str, fields: Mapping[str, str]) -> int:
        if "Bad" in fields["statement"]:
            raise EngineError("broken")
        return 1

    rows = [{**ROW, "response": text} for text in ("Good.", "Bad luck struck.", "All is good.")]
    report = evaluate(rows, judge=FakeJudge(reply), gates=["faithfulness>=0.5"])
    assert [result.score for result in report.results] == [1.0, None, 1.0]
    assert report.results[1].reason is Reason.ENGINE_ERROR
    summary = report.summaries[0]
    assert (summary.samples, summary.scored_samples, summary.unscored_samples) == (3, 2, 1)
    assert summary.mean == 1.0
    assert not report.passed


def test_an_error_that_is_not_one_question_s_ends_the_run() -> None:
    with pytest.raises(OutOfMemory):
        evaluate([ROW], judge=FakeJudge([OutOfMemory("full")]))


def test_a_bad_row_or_gate_is_refused_before_the_first_verdict() -> None:
    judge = FakeJudge()
    with pytest.raises(InputError):
        evaluate([ROW, {**ROW, "response": ""}], judge=judge)
    with pytest.raises(UsageError):
        evaluate([ROW], judge=judge, gates=["faithfulnes>=0.8"])
    assert judge.asked == judge.wrote == []


# The report


def test_a_report_says_what_was_asked_for_and_by_which_judge() -> None:
    judge = FakeJudge()
    options = Options(decomposition="sentence", language="en", seed=3)
    report = evaluate([ROW], judge=judge, options=options, max_unscored=0.2)
    assert report.judge == judge.fingerprint
    assert (report.settings.decomposition, report.settings.language, report.settings.seed) == (
        "sentence",
        "en",
        3,
    )
    assert report.settings.max_unscored == 0.2
    assert Report.model_validate_json(report.model_dump_json()) == report


PARTS = st.sampled_from(
    ["The mill is old.", "He left.", "No.", "Hello!", "1. Fir.\n2. Yew.", "橋は古い。", "Why?"]
)
RESPONSES = st.lists(PARTS | st.text(min_size=1, max_size=15), min_size=1, max_size=6).map(" ".join)


@given(
    st.lists(st.tuples(RESPONSES, st.lists(st.text(max_size=20), max_size=2)), min_size=1, max_size=8),
    st.lists(st.sampled_from([0, 1, EngineError("e")]), min_size=1, max_size=12),
)
def test_in_every_report_statements_verdicts_spans_and_sums_agree(
    rows: list[tuple[str, list[str]]], answers: list[Any]
) -> None:
    samples = [
        Sample(id=str(number), user_input="Why?", response=response, retrieved_contexts=tuple(contexts))
        for number, (response, contexts) in enumerate(rows)
        if response.strip()
    ]
    if not samples:
        return
    steps: list[Progress] = []
    report = evaluate(samples, judge=FakeJudge(answers), on_progress=steps.append)
    assert [result.sample_id for result in report.results] == [sample.id for sample in samples]
    for result in report.results:
        assert result.decomposition is not None
        assert result.response is not None
        assert (
            len(result.statements) == len(result.decomposition.statements) == result.scored + result.unscored
        )
        assert result.supported <= result.scored
        for item in result.statements:
            assert result.response[item.statement.start : item.statement.end].strip()
    summary = report.summaries[0]
    assert summary.samples == len(samples) == summary.scored_samples + summary.unscored_samples
    for name in ("supported", "scored", "unscored"):
        assert getattr(summary, name) == sum(getattr(result, name) for result in report.results)
    assert sum(summary.reasons.values()) == summary.unscored_samples
    assert steps[-1].verdicts == summary.scored + summary.unscored
