"""The pytest plugin: assertions on answers and traces, with one judge for the whole session.

    def test_opening_hours(anvil):
        answer, passages = my_rag("When does it open?")
        anvil.assert_faithful(answer, passages, at_least=0.8)

    @pytest.mark.anvil("answers.jsonl")
    def test_every_row(anvil, anvil_sample):
        anvil.assert_sample(anvil_sample)

pytest loads this module at every start, so nothing but pytest is imported here; the rest comes with the
first test that asks for `anvil`, and the model with its first question. To judge with something else,
define a fixture `anvil_judge` of session scope that returns a judge, such as a `FakeJudge`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import pytest

if TYPE_CHECKING:
    from anvil_local.assess import Options
    from anvil_local.judge import Judge
    from anvil_local.records import GateOutcome, Report, Sample, SampleResult

_CONTEXT_LIMIT = 400
"""Characters of a context, or of a turn of a trace, that a failure shows."""
_CONTEXTS = 8
"""Contexts, or last turns of a trace, that a failure shows."""


class Anvil:
    """What the `anvil` fixture gives: assertions that judge with the session's judge.

    Each assertion returns the result it judged, so that a test can look further. A statement that
    could not be decided, or a response without a claim, never passes: the test fails, or is skipped
    with the reason where `unscored="skip"` is given.
    """

    def __init__(self, judge: Judge, *, options: Options, name: str, record: _Session) -> None:
        self.judge = judge
        """The judge, loaded once a session."""
        self._options = options
        self._name = name
        self._record = record
        self._calls = 0

    def assert_faithful(
        self,
        response: str,
        contexts: str | Sequence[str],
        *,
        question: str | None = None,
        at_least: float = 1.0,
        unscored: Literal["fail", "skip"] = "fail",
    ) -> SampleResult:
        """Fail unless the share of statements that the contexts support is at least `at_least`.

        Args:
            response: the answer to judge.
            contexts: the passages that it must rest on.
            question: what was asked; it makes short answers whole sentences.
            at_least: the lowest score that passes, 0 to 1.
            unscored: what becomes of the test when there is no verdict.
        """
        __tracebackhide__ = True
        row = {
            "user_input": question,
            "response": response,
            "retrieved_contexts": contexts if isinstance(contexts, str) else list(contexts),
        }
        (result,) = self._assert(row, ["faithfulness"], at_least, unscored)
        return result

    def assert_goal_reached(
        self,
        trace: Sequence[Any],
        *,
        reference: str | None = None,
        unscored: Literal["fail", "skip"] = "fail",
    ) -> SampleResult:
        """Fail unless the run ended as desired.

        Args:
            trace: the messages, as Ragas, OpenAI or LangChain write them.
            reference: the desired outcome; without it, the goal is inferred from the trace.
            unscored: what becomes of the test when there is no verdict.
        """
        __tracebackhide__ = True
        metric = "goal_without_reference" if reference is None else "goal_with_reference"
        (result,) = self._assert({"user_input": list(trace), "reference": reference}, [metric], 1.0, unscored)
        return result

    def assert_sample(
        self,
        sample: Sample | Mapping[str, Any] | Any,
        *,
        metrics: str | Sequence[str] | None = None,
        at_least: float = 1.0,
        unscored: Literal["fail", "skip"] = "fail",
    ) -> tuple[SampleResult, ...]:
        """Fail unless the sample reaches `at_least` under every metric that fits it, or that is named."""
        __tracebackhide__ = True
        return self._assert(sample, metrics, at_least, unscored)

    def _assert(
        self, sample: Any, metrics: str | Sequence[str] | None, at_least: float, unscored: str
    ) -> tuple[SampleResult, ...]:
        __tracebackhide__ = True
        from anvil_local.errors import AnvilError

        if not 0 <= at_least <= 1:
            raise ValueError(f"at_least is a score between 0 and 1, not {at_least!r}")
        if unscored not in ("fail", "skip"):
            raise ValueError(f"unscored is 'fail' or 'skip', not {unscored!r}")
        try:
            results = self._judge(sample, metrics)
        except AnvilError as error:
            # The inner frames say nothing to who made the mistake.
            message = str(error)
        else:
            message = ""
        if message:
            pytest.fail(message)
        failures, skips = [], []
        for result in results:
            decided = result.score is not None and not result.unscored
            too_low = result.score is not None and result.score < at_least
            if decided or too_low or unscored == "fail":
                passed = decided and not too_low
                self._record.add(result, at_least, passed=passed)
                if not passed:
                    failures.append(explain(result, at_least, self.judge))
            else:
                self._record.add(result, at_least, passed=None)
                skips.append(explain(result, at_least, self.judge))
        if failures:
            raise AssertionError("\n\n".join(failures))
        if skips:
            pytest.skip(skips[0].splitlines()[0])
        return results

    def _judge(self, sample: Any, metrics: str | Sequence[str] | None) -> tuple[SampleResult, ...]:
        from anvil_local.metrics import choose_metrics
        from anvil_local.runner import check_fit, run_samples
        from anvil_local.samples import as_samples

        self._calls += 1
        (read,) = as_samples([sample])
        # The id of the test, so that a report leads back to it.
        name = self._name if self._calls == 1 else f"{self._name} #{self._calls}"
        read = read.model_copy(
            update={"id": name, "source": "" if read.source == "samples[0]" else read.source}
        )
        choices = choose_metrics(metrics)
        check_fit([read], choices)
        return tuple(run_samples([read], judge=self.judge, choices=choices, options=self._options))


def explain(result: SampleResult, at_least: float, judge: Judge) -> str:
    """Why a result fails, for people: statements, verdicts, margins, and what they were judged against."""
    from anvil_local.reports.findings import find
    from anvil_local.reports.text import excerpt, judge_name, show_score

    kind = excerpt(result.metric, 60)
    if result.score is None:
        head = f"{kind} unscored: {result.reason}"
    elif result.goal:
        head = f"{kind}: the desired outcome is {'' if result.score else 'not '}reached"
    elif result.score >= at_least:
        head = f"{kind} {show_score(result.score)}, but {result.unscored} undecided"
    else:
        head = f"{kind} {show_score(result.score)} is below {at_least:g}"
    if result.statements:
        head += f": {result.supported} of {result.scored} statements supported"
        if result.unscored:
            head += f", {result.unscored} undecided"
    lines = [head]
    if result.flags:
        lines.append(f"  note: {', '.join(result.flags)}")
    for finding in find(result, everything=True, limit=None):
        lines.append(f"  {finding.word:<11} {finding.margin:>6}  {finding.text}")
        lines += [f"{'':22}{detail}" for detail in finding.details]
    lines += _shown_evidence(result)
    fingerprint = judge.fingerprint
    lines.append(f"judge: {judge_name(fingerprint.parts)} ({fingerprint.short})")
    return "\n".join(lines)


def _shown_evidence(result: SampleResult) -> list[str]:
    from anvil_local.reports.text import excerpt
    from anvil_local.samples import DEFAULT_FORMATTER, render_trace

    sample = result.sample
    if isinstance(sample.user_input, tuple):
        blocks = render_trace(
            sample.user_input, formatter=result.goal.formatter if result.goal else DEFAULT_FORMATTER
        )
        left_out = max(0, len(blocks) - _CONTEXTS)
        shown = [f"  {excerpt(block, _CONTEXT_LIMIT)}" for block in blocks[left_out:]]
        return ["trace:", *([f"  ... {left_out} earlier turns"] if left_out else []), *shown]
    contexts = sample.retrieved_contexts or ()
    if not any(context.strip() for context in contexts):
        return ["context: none"]
    shown = [
        f"  [{number}] {excerpt(context, _CONTEXT_LIMIT)}"
        for number, context in enumerate(contexts[:_CONTEXTS], 1)
    ]
    more = len(contexts) - _CONTEXTS
    lines = ["context:", *shown]
    if more > 0:
        lines.append(f"  ... {more} more contexts")
    if sample.response:
        lines += ["response:", f"  {excerpt(sample.response, _CONTEXT_LIMIT)}"]
    return lines


# The session


@dataclass
class _Session:
    """What was judged, for `--anvil-report`; each xdist worker has its own and hands it over."""

    judge: Judge | None = None
    options: Options | None = None
    results: list[SampleResult] = field(default_factory=list)
    outcomes: list[GateOutcome] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)
    """One of each worker, at the controller."""
    complete: bool = True

    def add(self, result: SampleResult, at_least: float, *, passed: bool | None) -> None:
        from anvil_local.records import GateOutcome
        from anvil_local.reports.text import show_score

        self.results.append(result)
        if passed is None:
            return
        message = (
            f"{result.metric} {show_score(result.score)} >= {at_least:g}: {'PASS' if passed else 'FAIL'} "
            f"in {result.sample_id}"
        )
        rule = f"{result.metric}>={at_least:g} in {result.sample_id}"
        self.outcomes.append(GateOutcome(rule=rule, passed=passed, value=result.score, message=message))

    def report(self) -> Report | None:
        """Everything that was judged; None if nothing was."""
        if self.judge is not None and self.results:
            self.reports.append(self._own_report(self.judge))
            self.results, self.outcomes = [], []
        if not self.reports:
            return None
        return _join(self.reports, complete=self.complete)

    def _own_report(self, judge: Judge) -> Report:
        from anvil_local.assess import Options
        from anvil_local.runner import build_report, make_settings

        # Each assertion has its own rule; a limit on unscored samples would be one more.
        settings = make_settings(self.results, self.options or Options(), (), max_unscored=1.0)
        report = build_report(self.results, judge=judge, settings=settings)
        return report.model_copy(
            update={
                "gates": tuple(self.outcomes),
                "passed": all(outcome.passed for outcome in self.outcomes),
            }
        )


def _join(reports: Sequence[Report], *, complete: bool) -> Report:
    """The workers' reports as one, in the order of the tests' ids."""
    from anvil_local.errors import AnvilError
    from anvil_local.runner import join_reports

    if len({report.judge.digest for report in reports}) > 1:
        raise AnvilError("the workers judged with different judges: no report is written")
    results = [result for report in reports for result in report.results]
    gates = [gate for report in reports for gate in report.gates]
    if len(reports) > 1:
        results.sort(key=lambda result: result.sample_id)
        gates.sort(key=lambda gate: gate.rule.split(" in ", 1)[-1])
    return join_reports(reports, results=results, gates=gates, complete=complete)


_SESSION = pytest.StashKey[_Session]()
_ONE_WORKER = pytest.StashKey[bool]()
"""Whether pytest-xdist sends every test that judges to the same worker."""


def _refuse(error: Exception) -> NoReturn:
    pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def anvil_judge(pytestconfig: pytest.Config) -> Iterator[Judge]:
    """The judge of the session: `--anvil-model`, or the settings of anvil.toml. Override it with your own."""
    from contextlib import closing

    from anvil_local.cli.options import build_judge
    from anvil_local.config import load_config
    from anvil_local.errors import AnvilError

    workers = getattr(pytestconfig, "workerinput", {}).get("workercount", 1)
    one_worker = pytestconfig.stash.get(_ONE_WORKER, False)
    if workers > 1 and not one_worker and not pytestconfig.getoption("--anvil-per-worker"):
        asked = getattr(pytestconfig.option, "loadgroup", False)
        pytest.fail(
            f"anvil_local: each of the {workers} pytest-xdist workers would load a model of its own\n"
            + (
                "hint: --dist loadgroup did not bring the tests that judge together: several xdist_group "
                "marks, or a pytest-xdist that does not know this pytest; "
                if asked
                else "hint: --dist loadgroup sends every test that judges to one worker; "
            )
            + "--anvil-per-worker loads one model each",
            pytrace=False,
        )
    try:
        models = tuple(pytestconfig.getoption("--anvil-model") or ())
        judge = build_judge(load_config(pytestconfig.rootpath, model=models))
    except AnvilError as error:
        _refuse(error)
    with closing(judge):
        yield judge


@pytest.fixture
def anvil(request: pytest.FixtureRequest, anvil_judge: Judge) -> Anvil:
    """Assertions on answers and traces, judged offline by a local model."""
    from anvil_local.assess import check_shape
    from anvil_local.cli.options import judging
    from anvil_local.config import load_config
    from anvil_local.errors import AnvilError
    from anvil_local.padding import check_padding

    session = request.config.stash[_SESSION]
    if session.options is None:
        try:
            session.options = judging(load_config(request.config.rootpath))
            if session.options.shape:
                check_shape(anvil_judge)
            if session.options.padding:
                check_padding(anvil_judge)
        except AnvilError as error:
            _refuse(error)
    session.judge = anvil_judge
    # Without the group that xdist puts behind it, so that a report names a test as pytest does.
    group = _group(request.node) if _ONE_WORKER in request.config.stash else ""
    name = request.node.nodeid.removesuffix(f"@{group}") if group else request.node.nodeid
    return Anvil(anvil_judge, options=session.options, name=name, record=session)


@pytest.fixture
def anvil_sample() -> Sample:
    """One row of the file that the `anvil` mark names."""
    pytest.fail('anvil_sample needs its data: @pytest.mark.anvil("data.jsonl")', pytrace=False)


# Hooks


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("anvil", "anvil_local: judge answers and traces offline")
    group.addoption(
        "--anvil-model",
        action="append",
        metavar="MODEL",
        help="A model's name or a .gguf file. Repeated: they vote.",
    )
    group.addoption(
        "--anvil-report",
        action="append",
        metavar="FILE",
        help="Write what was judged; the suffix is the format, as for `anvil-local run -o`. Repeatable.",
    )
    group.addoption(
        "--anvil-per-worker",
        action="store_true",
        help="With pytest-xdist: let every worker load a model of its own.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark; refuse report files that could not be written."""
    config.addinivalue_line(
        "markers", 'anvil("data.jsonl"): run the test once a row, which it gets as `anvil_sample`'
    )
    config.stash[_SESSION] = _Session()
    paths = config.getoption("--anvil-report")
    if paths and not hasattr(config, "workerinput"):
        from anvil_local.errors import UsageError
        from anvil_local.reports import check_report_paths

        try:
            check_report_paths(paths)
        except UsageError as error:
            raise pytest.UsageError(f"--anvil-report: {error}") from error


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with the mark runs once a row."""
    mark = metafunc.definition.get_closest_marker("anvil")
    if mark is None:
        return
    if len(mark.args) != 1 or mark.kwargs or not isinstance(mark.args[0], str | Path):
        pytest.fail('the mark takes one file: @pytest.mark.anvil("data.jsonl")', pytrace=False)
    if "anvil_sample" not in metafunc.fixturenames:
        pytest.fail("a test marked `anvil` gets its row as the argument `anvil_sample`", pytrace=False)
    from anvil_local.errors import AnvilError
    from anvil_local.samples import SampleFile

    path = Path(mark.args[0])
    beside = metafunc.definition.path.parent / path
    try:
        # Beside the test, or from the root of the project.
        with SampleFile(beside if beside.exists() else metafunc.config.rootpath / path) as file:
            samples = list(file)
    except AnvilError as error:
        _refuse(error)
    metafunc.parametrize("anvil_sample", samples, ids=[sample.id for sample in samples])


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None]:
    """With `--dist loadgroup`, the tests that judge go to one worker, unless told otherwise."""
    if not hasattr(config, "workerinput") or config.getoption("--anvil-per-worker"):
        return (yield)
    judging = [item for item in items if "anvil_judge" in getattr(item, "fixturenames", ())]
    for item in judging:
        if not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group("anvil"))
    # pytest-xdist reads the marks here and writes the group behind the id. Only what it wrote is
    # believed: 3.8.0 under pytest 9.2 writes nothing, and --dist loadgroup then spreads the tests.
    yield
    groups = {_group(item) for item in judging}
    config.stash[_ONE_WORKER] = len(groups) == 1 and "" not in groups
    return None


def _group(item: pytest.Item) -> str:
    """The group that pytest-xdist wrote behind an id: `a@b` in `...::test_row[x@y]@a@b`; "" if none."""
    return item.nodeid.rpartition("]")[2].partition("@")[2]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker hands over what it judged; else the reports are written."""
    config = session.config
    record = config.stash[_SESSION]
    paths = config.getoption("--anvil-report")
    if not paths:
        return
    report = record.report()
    if hasattr(config, "workeroutput"):
        config.workeroutput["anvil_report"] = report.model_dump_json() if report else None
        return
    if report is None:
        config.stash[_NOTE] = "nothing was judged: no report is written"
        return
    from anvil_local.reports import write_reports

    written = write_reports(report, paths)
    config.stash[_NOTE] = "report: " + ", ".join(map(str, written))


_NOTE = pytest.StashKey[str]()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker of pytest-xdist judged."""
    record = node.config.stash[_SESSION]
    if not node.config.getoption("--anvil-report"):
        return
    output = getattr(node, "workeroutput", None)
    if output is None:
        # It died: what it judged is lost, and the report must not look whole.
        record.complete = False
    elif text := output.get("anvil_report"):
        from anvil_local.records import Report

        record.reports.append(Report.model_validate_json(text))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say where the report is."""
    if note := config.stash.get(_NOTE, None):
        terminalreporter.write_line(f"anvil_local: {note}")
