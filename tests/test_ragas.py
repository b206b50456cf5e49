"""The drop-in for Ragas users: without Ragas here, and with its real classes in the second half."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from anvil_local import FakeJudge, Options, ragas
from anvil_local.cli import options as cli_options
from anvil_local.errors import EngineError, InputError, NothingToJudge, UsageError
from anvil_local.ragas import (
    AgentGoalAccuracyWithoutReference,
    AgentGoalAccuracyWithReference,
    Faithfulness,
    evaluate,
)
from anvil_local.samples import as_samples, render_trace

ANSWER = {
    "user_input": "When does the pool open?",
    "response": "It opens at nine. Entry is free.",
    "retrieved_contexts": ["The pool is open from nine to five."],
}
REFUSAL = {**ANSWER, "response": "I don't know."}
TRACE = {
    "user_input": [
        {"type": "human", "content": "Water the ferns."},
        {"type": "ai", "content": "", "tool_calls": [{"name": "water", "args": {"plant": "fern"}}]},
        {"type": "tool", "content": "done"},
        {"type": "ai", "content": "The ferns are watered."},
    ],
    "reference": "The ferns are watered.",
}


def answer_of(task: str, fields: Mapping[str, str]) -> int:
    return int("free" not in fields.get("statement", ""))


@pytest.fixture
def judge() -> FakeJudge:
    return FakeJudge(answer_of)


@pytest.fixture
def settings_judge(judge: FakeJudge, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, ...]]]:
    """The judge of the settings is a fake; gives the models it was built for."""
    built: list[tuple[str, ...]] = []
    monkeypatch.setattr(
        cli_options, "build_judge", lambda config, **_: built.append(config.model) or FakeJudge(answer_of)
    )
    ragas._settings_judge.cache_clear()
    yield built
    ragas._settings_judge.cache_clear()


# One sample


def test_faithfulness_is_the_share_of_supported_statements(judge: FakeJudge) -> None:
    metric = Faithfulness(llm=judge)
    assert metric.name == "faithfulness"
    assert metric.single_turn_score(ANSWER) == 0.5
    assert asyncio.run(metric.single_turn_ascore(ANSWER)) == 0.5


def test_the_newer_calls_give_a_result_that_holds_everything(judge: FakeJudge) -> None:
    found = Faithfulness(llm=judge).score(**ANSWER)
    assert (found.value, found.reason, float(found)) == (0.5, None, 0.5)
    assert [item.verdict.value for item in found.result.statements] == [1, 0]
    assert asyncio.run(Faithfulness(llm=judge).ascore(**ANSWER)) == found


def test_several_inputs_are_scored_at_once_and_none_gives_none(judge: FakeJudge) -> None:
    metric = Faithfulness(llm=judge)
    assert [found.value for found in metric.batch_score([ANSWER, REFUSAL])] == [0.5, None]
    assert asyncio.run(metric.abatch_score([ANSWER]))[0].value == 0.5
    assert metric.batch_score([]) == []


def test_what_cannot_be_scored_is_none_and_never_nan(judge: FakeJudge) -> None:
    assert Faithfulness(llm=judge).single_turn_score(REFUSAL) is None
    found = Faithfulness(llm=judge).score(**REFUSAL)
    assert (found.value, found.reason) == (None, "no_statements")
    with pytest.raises(TypeError, match="no_statements"):
        float(found)


def test_no_context_is_zero_and_says_so(judge: FakeJudge) -> None:
    found = Faithfulness(llm=judge).score("Q?", "It opens at nine.", [])
    assert (found.value, found.result.flags) == (0.0, ("empty_context",))
    assert judge.asked == []


@pytest.mark.parametrize("metric", [AgentGoalAccuracyWithReference, AgentGoalAccuracyWithoutReference])
def test_a_goal_is_reached_or_not(metric: Any) -> None:
    for answer in (0, 1):
        one = metric(llm=FakeJudge([answer]))
        assert one.name == "agent_goal_accuracy"
        assert one.multi_turn_score(TRACE) == answer
        assert asyncio.run(one.multi_turn_ascore(TRACE)) == answer
        fields = TRACE if metric is AgentGoalAccuracyWithReference else {"user_input": TRACE["user_input"]}
        assert one.score(**fields).value == asyncio.run(one.ascore(**fields)).value == answer


def test_the_reference_is_what_is_asked_about_only_with_it() -> None:
    judge = FakeJudge([1])
    AgentGoalAccuracyWithReference(judge).multi_turn_score({**TRACE, "reference": "The lawn is cut."})
    assert judge.asked[0][1]["outcome"] == "The lawn is cut."
    judge = FakeJudge([1])
    AgentGoalAccuracyWithoutReference(judge).multi_turn_score({**TRACE, "reference": "The lawn is cut."})
    assert "lawn" not in judge.asked[0][1]["outcome"]


def test_an_undecided_goal_is_none() -> None:
    judge = FakeJudge([EngineError("it broke")])
    found = AgentGoalAccuracyWithReference(judge).score(**TRACE)
    assert (found.value, found.reason) == (None, "engine_error")


@pytest.mark.parametrize(
    ("metric", "sample", "field"),
    [
        (Faithfulness, {"user_input": "Q?", "response": "Yes."}, "retrieved_contexts"),
        (Faithfulness, TRACE, "response"),
        (AgentGoalAccuracyWithReference, {"user_input": TRACE["user_input"]}, "reference"),
        (AgentGoalAccuracyWithoutReference, ANSWER, "user_input"),
    ],
)
def test_a_sample_that_the_metric_does_not_fit_is_refused(
    metric: Any, sample: dict[str, Any], field: str, judge: FakeJudge
) -> None:
    with pytest.raises(InputError, match=f"{metric.__name__} needs .*{field}") as caught:
        evaluate([sample], [metric(judge)], show_progress=False)
    assert caught.value.field == field
    assert judge.asked == judge.wrote == []


def test_what_would_have_no_effect_is_refused(judge: FakeJudge) -> None:
    with pytest.raises(UsageError, match="callbacks"):
        Faithfulness(judge).single_turn_score(ANSWER, callbacks=[print])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="timeout"):
        asyncio.run(Faithfulness(judge).single_turn_ascore(ANSWER, timeout=3))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="timeout"):
        asyncio.run(AgentGoalAccuracyWithReference(judge).multi_turn_ascore(TRACE, timeout=3))  # type: ignore[arg-type]


# The judge


def test_an_llm_of_another_library_is_refused_where_it_is_given() -> None:
    class ChatModel:
        def invoke(self, text: str) -> str:
            return text

    with pytest.raises(UsageError, match="another library") as caught:
        Faithfulness(llm=ChatModel())  # type: ignore[arg-type]
    assert "ChatModel" in str(caught.value)
    metric = Faithfulness()
    with pytest.raises(UsageError, match="another library"):
        metric.llm = ChatModel()  # type: ignore[assignment]
    with pytest.raises(UsageError, match="another library"):
        evaluate([ANSWER], [metric], llm=ChatModel())  # type: ignore[arg-type]


def test_without_an_llm_the_judge_of_the_settings_is_built_once(
    settings_judge: list[tuple[str, ...]],
) -> None:
    assert Faithfulness().single_turn_score(ANSWER) == 0.5
    assert AgentGoalAccuracyWithReference().multi_turn_score(TRACE) == 1
    assert settings_judge == [()]
    assert Faithfulness(llm="mine").single_turn_score(ANSWER) == 0.5
    assert Faithfulness(llm=Path("mine")).single_turn_score(ANSWER) == 0.5
    assert settings_judge == [(), ("mine",)]


def test_the_settings_say_how_responses_are_cut_and_options_say_it_better(
    judge: FakeJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "anvil.toml").write_text('decomposition = "sentence"\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert Faithfulness(judge).single_turn_score(ANSWER) == 0.5
    assert judge.wrote == []
    assert Faithfulness(judge, options=Options()).single_turn_score(ANSWER) == 0.5
    assert judge.wrote != []


def test_making_a_metric_loads_nothing() -> None:
    code = (
        "import sys, anvil_local.ragas as r; r.Faithfulness(); r.AgentGoalAccuracyWithReference('any');"
        "print(sorted({'numpy', 'llama_cpp', 'outlines', 'pandas', 'ragas', 'typer'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Data sets


def test_a_data_set_gives_scores_means_and_the_whole_report(judge: FakeJudge) -> None:
    result = evaluate([ANSWER, REFUSAL], metrics=[Faithfulness()], llm=judge, show_progress=False)
    assert result.scores == [{"faithfulness": 0.5}, {"faithfulness": None}]
    assert result["faithfulness"] == [0.5, None]
    assert repr(result) == "{'faithfulness': 0.5000 (1 of 2 unscored)}"
    assert result.unscored == {"faithfulness": 1}
    assert result.report.summaries[0].reasons == {"no_statements": 1}
    assert "NaN" not in result.report.model_dump_json()


def test_a_data_set_without_any_score_has_no_mean(judge: FakeJudge) -> None:
    result = evaluate([REFUSAL], [Faithfulness(judge)], show_progress=False)
    assert repr(result) == "{'faithfulness': no score (1 of 1 unscored)}"


def test_two_metrics_have_a_column_each(judge: FakeJudge) -> None:
    metrics = [
        AgentGoalAccuracyWithoutReference(name="wanted"),
        AgentGoalAccuracyWithReference(name="desired"),
    ]
    result = evaluate([TRACE, TRACE], metrics, llm=judge, show_progress=False)
    assert result.scores == [{"wanted": 1, "desired": 1}] * 2
    assert [summary.metric for summary in result.report.summaries] == [
        "goal_without_reference",
        "goal_with_reference",
    ]


def test_gates_are_checked(judge: FakeJudge) -> None:
    result = evaluate([ANSWER], [Faithfulness(judge)], gates="faithfulness>=0.8", show_progress=False)
    assert not result.report.passed


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ([], "no metric"),
        ([Faithfulness], "no metric of anvil_local.ragas"),
        (["faithfulness"], "no metric of anvil_local.ragas"),
        ([AgentGoalAccuracyWithReference(), AgentGoalAccuracyWithoutReference()], "the same name"),
        ([Faithfulness(), Faithfulness(name="again")], "the same class"),
        ([Faithfulness(FakeJudge()), AgentGoalAccuracyWithReference()], "share their judge"),
    ],
)
def test_metrics_that_cannot_be_evaluated_together_are_refused(
    metrics: list[Any], message: str, settings_judge: list[Any]
) -> None:
    with pytest.raises(UsageError, match=message):
        evaluate([ANSWER], metrics)


def test_a_metric_in_no_list_is_refused(judge: FakeJudge) -> None:
    with pytest.raises(UsageError, match="must be a list"):
        evaluate([ANSWER], Faithfulness(judge))  # type: ignore[arg-type]


def test_no_rows_are_nothing_to_judge(judge: FakeJudge) -> None:
    with pytest.raises(NothingToJudge):
        evaluate([], [Faithfulness(judge)], show_progress=False)


def test_columns_of_other_names_are_mapped(judge: FakeJudge) -> None:
    rows = [{"q": "Q?", "text": "Entry is free.", "found": ["..."]}]
    columns = {"user_input": "q", "response": "text", "retrieved_contexts": "found"}
    result = evaluate(rows, [Faithfulness(judge)], column_map=columns, show_progress=False)
    assert result["faithfulness"] == [0.0]
    with pytest.raises(UsageError, match="leads nowhere"):
        evaluate(rows, [Faithfulness(judge)], column_map={**columns, "reference": "nowhere"})
    with pytest.raises(UsageError, match="needs data with columns"):
        evaluate(list(as_samples([ANSWER])), [Faithfulness(judge)], column_map=columns)


def test_a_failure_of_the_engine_is_raised_if_asked() -> None:
    judge = FakeJudge([EngineError("it broke")])
    assert evaluate([ANSWER], [Faithfulness(judge)], show_progress=False)["faithfulness"] == [None]
    with pytest.raises(EngineError, match="engine_error"):
        evaluate([ANSWER], [Faithfulness(judge)], raise_exceptions=True, show_progress=False)
    # A refusal is no failure.
    judge = FakeJudge([1])
    evaluate([REFUSAL], [Faithfulness(judge)], raise_exceptions=True, show_progress=False)


def test_a_frame_holds_the_samples_and_marks_what_is_unscored(judge: FakeJudge) -> None:
    pandas = pytest.importorskip("pandas")
    frame = evaluate([ANSWER, REFUSAL], [Faithfulness(judge)], show_progress=False).to_pandas()
    assert list(frame.columns) == ["user_input", "retrieved_contexts", "response", "faithfulness"]
    assert frame["response"].tolist() == [ANSWER["response"], REFUSAL["response"]]
    assert frame["faithfulness"][0] == 0.5
    assert frame["faithfulness"][1] is pandas.NA


def test_a_frame_of_two_metrics_has_a_row_a_sample(judge: FakeJudge) -> None:
    pytest.importorskip("pandas")
    metrics = [AgentGoalAccuracyWithReference(judge), AgentGoalAccuracyWithoutReference(judge, "wanted")]
    frame = evaluate([TRACE, TRACE], metrics, show_progress=False).to_pandas()
    assert frame["wanted"].tolist() == frame["agent_goal_accuracy"].tolist() == [1, 1]


# The real Ragas: `scripts/test` makes an environment for it, and these tests skip in others


@pytest.fixture(scope="module")
def real() -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries that Ragas brings
        module = pytest.importorskip("ragas", exc_type=ImportError)
        import ragas.messages
        import ragas.metrics
        import ragas.metrics.collections  # noqa: F401
    return module  # type: ignore[no-any-return]


@pytest.fixture
def single(real: ModuleType) -> Any:
    return real.SingleTurnSample(**ANSWER)


@pytest.fixture
def multi(real: ModuleType) -> Any:
    messages = real.messages
    return real.MultiTurnSample(
        user_input=[
            messages.HumanMessage(content="Water the ferns."),
            messages.AIMessage(
                content="I will.",
                tool_calls=[
                    messages.ToolCall(name="water", args={"plant": "fern", "hard": True, "at": None})
                ],
            ),
            messages.ToolMessage(content="done\nwith two lines"),
            messages.AIMessage(content="The ferns are watered."),
        ],
        reference="The ferns are watered.",
    )


def test_real_samples_are_scored_as_they_are(single: Any, multi: Any, judge: FakeJudge) -> None:
    assert Faithfulness(judge).single_turn_score(single) == 0.5
    assert asyncio.run(Faithfulness(judge).single_turn_ascore(single)) == 0.5
    assert AgentGoalAccuracyWithReference(judge).multi_turn_score(multi) == 1
    assert AgentGoalAccuracyWithoutReference(judge).multi_turn_score(multi) == 1
    assert "calls water" in judge.asked[-1][1]["trace"]


def test_real_messages_are_scored_by_the_newer_calls(multi: Any, judge: FakeJudge) -> None:
    found = AgentGoalAccuracyWithReference(judge).score(multi.user_input, multi.reference)
    assert found.value == 1
    assert found.result.sample.user_input is not None
    assert AgentGoalAccuracyWithoutReference(judge).score(multi.user_input).value == 1


def test_a_real_data_set_is_evaluated_and_its_frame_has_the_same_columns(
    real: ModuleType, single: Any, multi: Any, judge: FakeJudge
) -> None:
    data = real.EvaluationDataset(samples=[single, real.SingleTurnSample(**REFUSAL)])
    result = evaluate(data, metrics=[Faithfulness(llm=judge)], show_progress=False)
    assert result["faithfulness"] == [0.5, None]
    frame = result.to_pandas()
    assert set(frame.columns) == {*data.to_pandas().columns, "faithfulness"}
    assert frame["response"].tolist() == data.to_pandas()["response"].tolist()
    traces = real.EvaluationDataset(samples=[multi])
    assert evaluate(traces, [AgentGoalAccuracyWithReference(judge)], show_progress=False).scores == [
        {"agent_goal_accuracy": 1}
    ]


def test_a_hugging_face_data_set_is_evaluated(real: ModuleType, judge: FakeJudge) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        datasets = pytest.importorskip("datasets")
    data = datasets.Dataset.from_list([ANSWER, ANSWER])
    assert evaluate(data, [Faithfulness(judge)], show_progress=False)["faithfulness"] == [0.5, 0.5]


@pytest.mark.parametrize("name", ["Faithfulness", *ragas.__all__[:2]])
@pytest.mark.parametrize("home", ["metrics", "metrics.collections"])
def test_every_call_of_the_real_metric_can_be_made_here(real: ModuleType, home: str, name: str) -> None:
    module = real.metrics if home == "metrics" else real.metrics.collections
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the older home is deprecated
        theirs, ours = getattr(module, name), getattr(ragas, name)
    calls = {
        "metrics": ("single_turn_score", "single_turn_ascore", "multi_turn_score", "multi_turn_ascore"),
        "metrics.collections": ("score", "ascore", "batch_score", "abatch_score"),
    }[home]
    found = [call for call in calls if hasattr(theirs, call)]
    assert len(found) >= 2
    for call in found:
        taken = inspect.signature(getattr(ours, call)).parameters
        for parameter in inspect.signature(getattr(theirs, call)).parameters.values():
            if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                assert parameter.name in taken, call
    assert {"llm", "name"} <= set(inspect.signature(ours).parameters)
    default = inspect.signature(theirs).parameters["name"].default
    assert ours().name == default


def test_the_score_of_the_same_verdicts_is_that_of_ragas(real: ModuleType) -> None:
    theirs = import_module("ragas.metrics._faithfulness")
    for verdicts in ([1, 0, 0], [1, 1], [0], [1, 0, 1, 1, 0, 1, 1]):
        answers = [
            theirs.StatementFaithfulnessAnswer(statement="s", reason="r", verdict=verdict)
            for verdict in verdicts
        ]
        expected = theirs.Faithfulness()._compute_score(theirs.NLIStatementOutput(statements=answers))
        response = " ".join(f"Gate {number} is open." for number in range(len(verdicts)))
        assert Faithfulness(FakeJudge(verdicts)).score("Q?", response, ["..."]).value == expected


def test_the_formatter_of_ragas_gives_the_text_of_ragas(multi: Any) -> None:
    (sample,) = as_samples([multi])
    assert isinstance(sample.user_input, tuple)
    assert "\n".join(render_trace(sample.user_input, formatter="ragas/1")) == multi.pretty_repr()


def test_the_real_evaluate_takes_its_own_metrics_only(
    real: ModuleType, single: Any, judge: FakeJudge
) -> None:
    # docs/ragas.md says so; when this fails, it can say something better.
    data = real.EvaluationDataset(samples=[single])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(TypeError, match="initialised metric objects"):
            real.evaluate(data, metrics=[Faithfulness(judge)])


def test_a_report_of_real_samples_can_be_written_and_read(
    single: Any, judge: FakeJudge, tmp_path: Path
) -> None:
    from anvil_local import load_report, write_reports

    real_report = evaluate([single], [Faithfulness(judge)], show_progress=False).report
    write_reports(real_report, [tmp_path / "out.json"])
    assert load_report(tmp_path / "out.json").results == real_report.results
    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["passed"]


# The page


PAGE = (Path(__file__).parents[1] / "docs" / "ragas.md").read_text(encoding="utf-8")


def test_the_example_of_the_page_runs(settings_judge: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert blocks
    exec(compile(blocks[-1], "docs/ragas.md", "exec"), {})
    assert "{'faithfulness': 0.5000}" in capsys.readouterr().out


def test_the_page_names_everything_that_the_module_has_and_the_versions_of_the_group() -> None:
    for name in ("Faithfulness", *ragas.__all__[:2], "evaluate", "MetricResult"):
        assert f"`{name}" in PAGE
    group = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    (pin,) = [item for item in group["dependency-groups"]["ragas"] if item.startswith("ragas")]
    assert pin in PAGE


def test_what_the_page_calls_missing_is_missing() -> None:
    for name in ("faithfulness", "FaithfulnesswithHHEM", "AgentGoalAccuracy"):
        assert f"`{name}`" in PAGE
        assert not hasattr(ragas, name)
    for name in ("embeddings", "experiment_name", "token_usage_parser", "return_executor"):
        assert name not in inspect.signature(evaluate).parameters
