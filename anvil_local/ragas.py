"""The metrics under Ragas' names: a Ragas evaluation moves here by changing its imports.

    from ragas import evaluate                            ->  from anvil_local.ragas import evaluate
    from ragas.metrics import Faithfulness                ->  from anvil_local.ragas import Faithfulness
    from ragas.metrics.collections import Faithfulness    ->  from anvil_local.ragas import Faithfulness

The samples stay what they are: Ragas' `SingleTurnSample`, `MultiTurnSample`, `EvaluationDataset` and
messages, known by what they hold; Ragas itself is not imported and need not be installed. `docs/ragas.md`
lists every difference. The greatest: what cannot be scored is None, not NaN, and it is counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from anvil_local.errors import EngineError, InputError, UsageError
from anvil_local.records import Reason, Report, Sample, SampleResult

if TYPE_CHECKING:
    from anvil_local.assess import Options
    from anvil_local.judge import Judge

__all__ = [
    "AgentGoalAccuracyWithReference",
    "AgentGoalAccuracyWithoutReference",
    "EvaluationResult",
    "Faithfulness",
    "MetricResult",
    "evaluate",
]


@dataclass(frozen=True)
class MetricResult:
    """What `ascore` and `score` give back."""

    value: float | None
    """Between 0 and 1; None when unscored."""
    reason: str | None
    """Why there is no value, such as `no_statements`; None when there is one."""
    result: SampleResult
    """Everything: statements, spans, verdicts, margins, flags."""

    def __float__(self) -> float:
        if self.value is None:
            raise TypeError(f"there is no score: {self.reason}")
        return self.value


class _Metric:
    """What the three metrics share.

    Args:
        llm: a `Judge`, or the name or path of a model; None takes the judge of the settings (`anvil.toml`,
            ANVIL_MODEL), with its store of verdicts, as `anvil-local run` does.
        name: the name of its scores in `evaluate`.
        options: how responses are cut and traces are formatted; None takes the settings'.
    """

    row: ClassVar[str]
    """Its name in `metrics.METRICS`."""

    def __init__(self, llm: Judge | str | Path | None, name: str, *, options: Options | None) -> None:
        self.llm = llm
        self.name = name
        self.options = options

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self.name!r})"

    @property
    def llm(self) -> Judge | str | Path | None:
        """The judge as it was given; it can be set later, as in Ragas."""
        return self._llm

    @llm.setter
    def llm(self, llm: Judge | str | Path | None) -> None:
        self._llm: Judge | str | Path | None = _check_llm(llm)

    def _score(self, samples: Iterable[Any]) -> list[MetricResult]:
        from anvil_local.metrics import choose_metrics
        from anvil_local.runner import run_samples

        read = _read(samples, [self])
        results = run_samples(
            read,
            judge=_judge_of(self.llm),
            choices=choose_metrics([self.row]),
            options=self.options or _settings_options(),
        )
        return [
            MetricResult(result.score, str(result.reason) if result.reason else None, result)
            for result in results
        ]

    def batch_score(self, inputs: Sequence[Mapping[str, Any]]) -> list[MetricResult]:
        """`score` for several inputs, each a dictionary of its arguments; [] gives []."""
        return self._score(inputs) if inputs else []

    async def abatch_score(self, inputs: Sequence[Mapping[str, Any]]) -> list[MetricResult]:
        """As `batch_score`. Nothing runs beside it: there is one engine."""
        return self.batch_score(inputs)


class Faithfulness(_Metric):
    """The share of the response's statements that the retrieved contexts support."""

    row = "faithfulness"

    def __init__(
        self,
        llm: Judge | str | Path | None = None,
        name: str = "faithfulness",
        *,
        options: Options | None = None,
    ) -> None:
        super().__init__(llm, name, options=options)

    def single_turn_score(self, sample: Any, callbacks: None = None) -> float | None:
        """The score of one sample; None when nothing can be scored, where Ragas gives NaN.

        Args:
            sample: Ragas' `SingleTurnSample`, a `Sample`, or a dictionary with these fields.
            callbacks: there is nothing to call back; anything but None is refused.

        Raises:
            InputError: the sample lacks a field, or has an empty response.
            UsageError: callbacks, or settings that cannot be.
            ModelError: the model is not installed.
        """
        _refuse(callbacks=callbacks)
        return self._score([sample])[0].value

    async def single_turn_ascore(
        self, sample: Any, callbacks: None = None, timeout: None = None
    ) -> float | None:
        """As `single_turn_score`. Nothing runs beside it, so a timeout is refused."""
        _refuse(timeout=timeout)
        return self.single_turn_score(sample, callbacks)

    def score(self, user_input: str | None, response: str, retrieved_contexts: list[str]) -> MetricResult:
        """The score of one answer, with its statements and verdicts."""
        fields = {"user_input": user_input, "response": response, "retrieved_contexts": retrieved_contexts}
        return self._score([fields])[0]

    async def ascore(
        self, user_input: str | None, response: str, retrieved_contexts: list[str]
    ) -> MetricResult:
        """As `score`. Nothing runs beside it: there is one engine."""
        return self.score(user_input, response, retrieved_contexts)


class _AgentGoalAccuracy(_Metric):
    """What the two goal metrics share."""

    def __init__(
        self,
        llm: Judge | str | Path | None = None,
        name: str = "agent_goal_accuracy",
        *,
        options: Options | None = None,
    ) -> None:
        super().__init__(llm, name, options=options)

    def multi_turn_score(self, sample: Any, callbacks: None = None) -> float | None:
        """1 or 0 for one sample; None when the question could not be decided, where Ragas gives NaN.

        Args:
            sample: Ragas' `MultiTurnSample`, a `Sample`, or a dictionary with these fields.
            callbacks: there is nothing to call back; anything but None is refused.

        Raises:
            InputError: the sample lacks a field, or a message cannot be read.
            UsageError: callbacks, or settings that cannot be.
            ModelError: the model is not installed.
        """
        _refuse(callbacks=callbacks)
        return self._score([sample])[0].value

    async def multi_turn_ascore(
        self, sample: Any, callbacks: None = None, timeout: None = None
    ) -> float | None:
        """As `multi_turn_score`. Nothing runs beside it, so a timeout is refused."""
        _refuse(timeout=timeout)
        return self.multi_turn_score(sample, callbacks)


class AgentGoalAccuracyWithReference(_AgentGoalAccuracy):
    """Whether the run of an agent ended as the reference says it should."""

    row = "goal_with_reference"

    def score(self, user_input: list[Any], reference: str) -> MetricResult:
        """The verdict on one trace, with its parts."""
        return self._score([{"user_input": user_input, "reference": reference}])[0]

    async def ascore(self, user_input: list[Any], reference: str) -> MetricResult:
        """As `score`. Nothing runs beside it: there is one engine."""
        return self.score(user_input, reference)


class AgentGoalAccuracyWithoutReference(_AgentGoalAccuracy):
    """Whether the run of an agent ended as the user wanted, which the model infers."""

    row = "goal_without_reference"

    def score(self, user_input: list[Any]) -> MetricResult:
        """The verdict on one trace, with its parts."""
        return self._score([{"user_input": user_input}])[0]

    async def ascore(self, user_input: list[Any]) -> MetricResult:
        """As `score`. Nothing runs beside it: there is one engine."""
        return self.score(user_input)


@dataclass(frozen=True, repr=False)
class EvaluationResult:
    """The scores of a data set. As a string, the means: `{'faithfulness': 0.8333 (1 of 7 unscored)}`."""

    names: tuple[str, ...]
    """The metrics' names, in their order."""
    scores: list[dict[str, float | None]]
    """For each sample its score by metric; None when unscored."""
    report: Report
    """Everything: statements, verdicts, summaries with intervals, gates; see `write_reports`."""

    def __getitem__(self, name: str) -> list[float | None]:
        """The scores of one metric, in the order of the samples."""
        return [scores[name] for scores in self.scores]

    def __repr__(self) -> str:
        shown = []
        for name, summary in zip(self.names, self.report.summaries, strict=True):
            text = "no score" if summary.mean is None else f"{summary.mean:0.4f}"
            if summary.unscored_samples:
                text += f" ({summary.unscored_samples} of {summary.samples} unscored)"
            shown.append(f"{name!r}: {text}")
        return "{" + ", ".join(shown) + "}"

    @property
    def unscored(self) -> dict[str, int]:
        """How many samples have no score, by metric; they are part of no mean."""
        counts = [summary.unscored_samples for summary in self.report.summaries]
        return dict(zip(self.names, counts, strict=True))

    def to_pandas(self) -> Any:
        """The samples with their scores as a pandas DataFrame; an unscored sample has `pandas.NA`."""
        import pandas

        samples = [result.sample for result in self.report.results[:: len(self.names)]]
        fields = ("user_input", "retrieved_contexts", "response", "reference")
        rows = [sample.model_dump(mode="json", include=set(fields)) for sample in samples]
        columns = {
            field: [row[field] for row in rows]
            for field in fields
            if any(row[field] is not None for row in rows)
        }
        scores = {name: pandas.array(self[name], dtype="Float64") for name in self.names}
        return pandas.DataFrame(columns | scores)


def evaluate(
    dataset: Iterable[Any],
    metrics: Sequence[_Metric],
    llm: Judge | str | Path | None = None,
    *,
    column_map: Mapping[str, str] | None = None,
    gates: str | Iterable[str] = (),
    max_unscored: float = 0.05,
    raise_exceptions: bool = False,
    show_progress: bool = True,
    run_config: object = None,
    batch_size: int | None = None,
) -> EvaluationResult:
    """Judge a data set by one or more metrics.

    Args:
        dataset: Ragas' `EvaluationDataset`, a Hugging Face `Dataset`, a frame, or a list of samples.
        metrics: of this module; each must fit every sample.
        llm: for the metrics that were given none; see `Faithfulness`.
        column_map: field to column, for data with columns.
        gates: rules such as `faithfulness>=0.8`, in the names of `anvil-local run`; see `report.passed`.
        max_unscored: the share of unscored samples above which a gate fails by itself.
        raise_exceptions: raise when the engine could decide nothing about a sample, which is unscored else.
        show_progress: on stderr.
        run_config: ignored: nothing here is retried, runs beside something else or waits for a network.
        batch_size: ignored.

    Raises:
        EngineError: with `raise_exceptions`, the first sample about which nothing could be decided.
        InputError: a sample that cannot be read, or lacks what a metric needs; nothing was judged then.
        NothingToJudge: no samples.
        UsageError: metrics of another library, of one name, or with different judges.
    """
    from anvil_local.cli import console
    from anvil_local.runner import evaluate as run

    judge, options = _shared(metrics, llm)
    samples = _read(_map_columns(dataset, column_map), metrics)
    with console.progress(len(samples) * len(metrics), quiet=not show_progress) as on_progress:
        report = run(
            samples,
            judge=judge,
            metrics=[metric.row for metric in metrics],
            gates=gates,
            max_unscored=max_unscored,
            options=options,
            on_progress=on_progress,
        )
    if raise_exceptions:
        _raise_undecided(report)
    names = tuple(metric.name for metric in metrics)
    values = [result.score for result in report.results]
    scores = [
        dict(zip(names, values[first : first + len(names)], strict=True))
        for first in range(0, len(values), len(names))
    ]
    return EvaluationResult(names, scores, report)


# Inner parts


def _check_llm(llm: Any) -> Any:
    if llm is None or isinstance(llm, str | Path):
        return llm
    if all(hasattr(llm, name) for name in ("ask", "write", "room", "fingerprint")):
        return llm
    raise UsageError(
        "an llm of another library cannot judge here",
        value=type(llm).__name__,
        hint="leave it out for the judge of the settings, or give GgufJudge.load(...), a model's name or "
        "the path of a .gguf file",
    )


def _refuse(**values: object) -> None:
    for name, value in values.items():
        if value is not None:
            raise UsageError(
                f"`{name}` has no meaning for a local judge", value=value, hint=f"leave `{name}` out"
            )


def _judge_of(llm: Judge | str | Path | None) -> Judge:
    if llm is None or isinstance(llm, str | Path):
        return _settings_judge(None if llm is None else str(llm))
    return llm


@cache
def _settings_judge(model: str | None) -> Judge:
    """One judge a model for the whole process: the metrics share it, and it is loaded once."""
    from anvil_local.cli import options
    from anvil_local.config import load_config

    return options.build_judge(load_config(model=(model,) if model else ()))


def _settings_options() -> Options:
    from anvil_local.cli.options import judging
    from anvil_local.config import load_config

    return judging(load_config())


def _read(items: Iterable[Any], metrics: Sequence[_Metric]) -> list[Sample]:
    """The samples, each of which has what every metric needs: Ragas scores all or refuses all."""
    from anvil_local.metrics import METRICS, missing_fields
    from anvil_local.samples import as_samples

    samples = list(as_samples(items))
    for sample in samples:
        for metric in metrics:
            if missing := missing_fields(METRICS[metric.row], sample):
                fields = ["user_input" if field == "trace" else field for field in missing]
                raise InputError(
                    f"{type(metric).__name__} needs {' and '.join(fields)}",
                    where=sample.source or f"sample {sample.id}",
                    field=fields[0],
                    hint="user_input must be a list of messages" if "trace" in missing else None,
                )
    return samples


def _map_columns(dataset: Iterable[Any], column_map: Mapping[str, str] | None) -> Iterable[Any]:
    if not column_map:
        return dataset
    from anvil_local.samples import FieldMap
    from anvil_local.samples.tables import rows_of

    mapping = FieldMap(column_map)
    rows = list(rows_of(dataset))
    if not all(isinstance(row, Mapping) for row in rows):
        raise UsageError("column_map needs data with columns", hint="samples have their fields: leave it out")
    mapped = [mapping.apply(row) for row in rows]
    mapping.check_used("column_map")
    return mapped


def _shared(metrics: Sequence[_Metric], llm: Any) -> tuple[Judge, Options]:
    """The judge and the options of all the metrics: a report has one of each."""
    if not isinstance(metrics, Sequence):
        raise UsageError("metrics must be a list", value=metrics, hint="write metrics=[Faithfulness()]")
    if not metrics:
        raise UsageError("no metric is given", hint="metrics=[Faithfulness()]")
    for metric in metrics:
        if not isinstance(metric, _Metric):
            raise UsageError(
                "this is no metric of anvil_local.ragas",
                value=metric,
                hint="give one of "
                + ", ".join(__all__[:2] + __all__[3:4])
                + ", with () behind it; metrics of "
                "Ragas are evaluated by ragas.evaluate",
            )
    for what, values in (
        ("name", [metric.name for metric in metrics]),
        ("class", [type(metric).__name__ for metric in metrics]),
    ):
        twice = next((value for value in values if values.count(value) > 1), None)
        if twice is not None:
            hint = "give each its own: name='goal_with'" if what == "name" else "a judge says the same twice"
            raise UsageError(f"two metrics have the same {what}", value=twice, hint=hint)
    given = _check_llm(llm)
    judges = {id(judge): judge for judge in (_judge_of(given if m.llm is None else m.llm) for m in metrics)}
    options = {metric.options or _settings_options() for metric in metrics}
    if len(judges) > 1 or len(options) > 1:
        raise UsageError(
            "metrics of one evaluation share their judge and their options",
            hint="evaluate them one after the other",
        )
    return judges.popitem()[1], options.pop()


def _raise_undecided(report: Report) -> None:
    for result in report.results:
        if result.reason in (Reason.ENGINE_ERROR, Reason.PROMPT_TOO_LONG):
            raise EngineError(
                f"nothing could be decided for {result.metric}: {result.reason}",
                where=result.source or f"sample {result.sample_id}",
            )
