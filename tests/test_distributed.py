"""Ray: the results of one process, in its order, whatever becomes of the workers. Ray is real, the judge not.

The tests that need Ray skip without it; tests/real_model/test_ray.py has the real judge.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from anvil_local.assess import Options
from anvil_local.cache import CachedJudge, Store
from anvil_local.cli import app as cli
from anvil_local.distributed import GROUP, RayExecutor, Slots, plan_slots
from anvil_local.errors import EngineError, InputError, ModelError, ModelNotFound, OutOfMemory, UsageError
from anvil_local.judge import FakeJudge
from anvil_local.metrics import choose_metrics
from anvil_local.records import Fingerprint, Message, Role, Sample, SampleResult
from anvil_local.runner import Progress, evaluate, run_samples

# Ray leaves the processes that it started, and their logs, to the end of the interpreter.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

WORKERS = 2
HOW = Options(decomposition="sentence")
CHOICES = choose_metrics(None)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    ray = pytest.importorskip("ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(
        address="local",
        num_cpus=WORKERS,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
    )
    yield ray
    ray.shutdown()


def data(count: int, first: int = 0) -> list[Sample]:
    """Answers, with a trace among them."""
    samples = [
        Sample(
            id=str(number),
            source=f"data.jsonl:{number + 1}",
            response=f"It rained on day {number}. Nobody came on day {number}.",
            retrieved_contexts=(f"Day {number // 3}: rain.",),
        )
        for number in range(first, first + count)
    ]
    talk = (Message(role=Role.HUMAN, content="Stop the pump."), Message(role=Role.AI, content="Stopped."))
    return [*samples, Sample(id=f"trace-{first}", user_input=talk, reference="The pump stands still.")]


def margin(task: str, fields: Mapping[str, str]) -> float:
    """An answer that depends on the question alone."""
    return hashlib.sha256(repr((task, sorted(fields.items()))).encode()).digest()[0] / 16 - 8


def build(threads: int) -> FakeJudge:
    assert threads == 1
    return FakeJudge(margin)


def build_slow_first(threads: int) -> FakeJudge:
    """A judge that takes long over the first group, so that later ones are done before it."""

    def answer(task: str, fields: Mapping[str, str]) -> float:
        if "day 1." in fields.get("statement", ""):
            time.sleep(1)
        return margin(task, fields)

    return FakeJudge(answer)


def build_mortal(folder: Path, lives: int, threads: int) -> FakeJudge:
    """A judge whose process is killed over day 20, the first so many times."""

    def answer(task: str, fields: Mapping[str, str]) -> float:
        if "day 20." in fields.get("statement", "") and len(list(folder.iterdir())) < lives:
            (folder / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return margin(task, fields)

    return FakeJudge(answer)


def build_failing(error: Exception, threads: int) -> FakeJudge:
    return FakeJudge([error])


def build_missing(threads: int) -> FakeJudge:
    raise ModelNotFound("no such model", value="gone", hint="copy it")


def build_noting(folder: Path, threads: int) -> FakeJudge:
    """A judge that leaves a file for every question."""

    def answer(task: str, fields: Mapping[str, str]) -> float:
        (folder / hashlib.sha256(repr((task, sorted(fields.items()))).encode()).hexdigest()).touch()
        return margin(task, fields)

    return FakeJudge(answer)


class Foreign(FakeJudge):
    @property
    def fingerprint(self) -> Fingerprint:
        return Fingerprint(digest="f" * 64, parts={"model": {"name": "fake"}, "build": {"avx": "512"}})


def build_foreign(threads: int) -> FakeJudge:
    return Foreign(margin)


def spread(samples: Any, build: Callable[[int], Any], judge: Any = None, **more: Any) -> list[SampleResult]:
    """Judged by two workers."""
    executor = RayExecutor(build, workers=WORKERS, **more)
    return list(executor(samples, judge=judge or FakeJudge(margin), choices=CHOICES, options=HOW))


def here(samples: list[Sample], judge: Any = None) -> list[SampleResult]:
    """Judged in this process."""
    return list(run_samples(samples, judge=judge or FakeJudge(margin), choices=CHOICES, options=HOW))


# With a cluster


def test_the_results_are_those_of_one_process_though_the_first_group_is_the_last_to_finish(
    cluster: Any,
) -> None:
    samples = data(60)
    assert spread(samples, build_slow_first) == here(samples)


def test_a_report_over_a_cluster_is_the_report_of_one_process(cluster: Any) -> None:
    rows = data(20)
    seen: list[Progress] = []
    apart = evaluate(
        rows,
        judge=FakeJudge(margin),
        options=HOW,
        gates="faithfulness>=0.5",
        on_progress=seen.append,
        executor=RayExecutor(build, workers=WORKERS),
    )
    one = evaluate(rows, judge=FakeJudge(margin), options=HOW, gates="faithfulness>=0.5")
    assert apart.model_copy(update={"created": one.created}) == one
    assert [state.finished for state in seen] == sorted(state.finished for state in seen)
    assert (seen[-1].finished, seen[-1].verdicts) == (21, 41)


def test_the_data_is_read_as_it_is_judged_and_an_early_end_frees_the_cluster(cluster: Any) -> None:
    taken = 0

    def endless() -> Iterator[Sample]:
        nonlocal taken
        for sample in data(100_000):
            taken += 1
            yield sample

    results = RayExecutor(build, workers=WORKERS)(
        endless(), judge=FakeJudge(margin), choices=CHOICES, options=HOW
    )
    ahead = []
    for number in range(200):
        next(results)
        ahead.append(taken - number)
    assert max(ahead) <= 3 * WORKERS * GROUP
    results.close()  # type: ignore[attr-defined]
    ended = time.monotonic() + 30
    while cluster.available_resources().get("CPU") != WORKERS and time.monotonic() < ended:
        time.sleep(0.1)
    assert cluster.available_resources()["CPU"] == WORKERS
    assert cluster.is_initialized()


def test_a_killed_worker_s_group_is_judged_by_another_and_nothing_is_lost_or_there_twice(
    cluster: Any, tmp_path: Path
) -> None:
    samples, said = data(60), []
    results = spread(samples, partial(build_mortal, tmp_path, 2), say=said.append)
    assert results == here(samples)
    assert len(list(tmp_path.iterdir())) == 2
    assert len(said) == 2
    assert all("a worker was lost, 8 samples go to another one" in line for line in said)


def test_a_group_that_kills_every_worker_ends_the_run_and_says_where(cluster: Any, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="3 workers were lost over the same 8 samples") as caught:
        spread(data(60), partial(build_mortal, tmp_path, 99))
    assert caught.value.where == "data.jsonl:17"
    assert len(list(tmp_path.iterdir())) == 3


def test_a_worker_with_another_judge_is_refused_before_it_is_asked(cluster: Any) -> None:
    with pytest.raises(ModelError, match=r"differ in build\.avx") as caught:
        spread(data(20), build_foreign)
    assert caught.value.value == (None, "512")
    assert "same model files" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (build_missing, ModelNotFound),
        (partial(build_failing, OutOfMemory("too large", hint="smaller")), OutOfMemory),
    ],
)
def test_what_a_worker_refuses_is_refused_here_in_the_same_words(
    cluster: Any, build: Any, error: type[Exception]
) -> None:
    with pytest.raises(error) as caught:
        spread(data(5), build)
    assert type(caught.value) is error
    assert str(caught.value).splitlines()[-1] in ("hint: copy it", "hint: smaller")


def test_an_engine_error_of_one_question_is_unscored_as_in_one_process(cluster: Any) -> None:
    failing = EngineError("failed")
    assert spread(data(9), partial(build_failing, failing)) == here(data(9), FakeJudge([failing]))


# The store


def test_the_driver_s_store_takes_what_the_workers_find_and_a_second_run_needs_none(
    cluster: Any, tmp_path: Path
) -> None:
    path = tmp_path / "verdicts.sqlite3"
    samples = data(20)
    first = CachedJudge(FakeJudge(margin), Store(path))
    results = spread(samples, build, first)
    # The views of the trace are the same words, so one question is asked twice.
    assert first.hits == 1
    asked = FakeJudge([EngineError("asked again")])
    alone = CachedJudge(asked, Store(path))
    assert here(samples, alone) == results == here(samples)
    again = CachedJudge(FakeJudge([EngineError("asked again")]), Store(path))
    assert spread(samples, build_missing, again) == results
    assert again.hits == alone.hits > 40
    assert asked.asked == []


def test_workers_are_asked_only_what_the_store_lacks_and_all_hits_are_counted(
    cluster: Any, tmp_path: Path
) -> None:
    path, noted = tmp_path / "verdicts.sqlite3", tmp_path / "noted"
    noted.mkdir()
    samples = data(30)

    def interrupted(task: str, fields: Mapping[str, str]) -> float:
        if fields["statement"] == "Nobody came on day 13.":
            raise KeyboardInterrupt
        return margin(task, fields)

    with pytest.raises(KeyboardInterrupt):
        here(samples, CachedJudge(FakeJudge(interrupted), Store(path)))
    judge = CachedJudge(FakeJudge([EngineError("asked here")]), Store(path))
    assert spread(samples, partial(build_noting, noted), judge) == here(samples)
    # Two statements of each sample before, one of this one, and one question of the trace asked twice.
    assert judge.hits == 2 * 13 + 1 + 1
    whole = FakeJudge(margin)
    here(samples, whole)
    assert len(list(noted.iterdir())) == len(whole.asked) - judge.hits


def test_refresh_asks_for_everything_again(cluster: Any, tmp_path: Path) -> None:
    path = tmp_path / "verdicts.sqlite3"
    here(data(9), CachedJudge(FakeJudge([1]), Store(path)))
    judge = CachedJudge(FakeJudge(margin), Store(path), refresh=True)
    assert spread(data(9), build, judge) == here(data(9))
    assert judge.hits == 1  # of this very run
    assert here(data(9), CachedJudge(FakeJudge([1]), Store(path))) == here(data(9))


# What is refused


def test_no_rows_and_rows_that_nothing_fits_are_refused_as_in_one_process(cluster: Any) -> None:
    from anvil_local.errors import NothingToJudge

    with pytest.raises(NothingToJudge):
        spread([], build)
    with pytest.raises(InputError, match="no metric fits"):
        spread([Sample(id="1", source="a:1", response="A.")], build)
    executor = RayExecutor(build, workers=WORKERS)
    only = choose_metrics(["goal"])
    with pytest.raises(UsageError, match="fits no row"):
        list(executor(data(3)[:3], judge=FakeJudge(), choices=only, options=HOW))
    assert list(executor(data(3)[:3], judge=FakeJudge(), choices=only, options=HOW, part=True)) == []


def test_a_cluster_too_small_is_refused(cluster: Any) -> None:
    executor = RayExecutor(build, workers=WORKERS, cpus=WORKERS)
    with pytest.raises(UsageError, match="no room for 2 workers with 2 CPUs"):
        list(executor(data(3), judge=FakeJudge(), choices=CHOICES, options=HOW))


def test_without_ray_the_hint_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    path = tmp_path / "data.jsonl"
    path.write_text('{"response": "A.", "retrieved_contexts": ["A."]}', encoding="utf-8")
    with pytest.raises(SystemExit) as exit_:
        cli.main(["run", str(path), "--engine", "ray"])
    assert exit_.value.code == 2
    assert (
        capsys.readouterr().err == "error: the engine ray needs Ray\nhint: pip install 'anvil-local[ray]'\n"
    )


@pytest.mark.parametrize("option", ["--address=auto", "--workers=2", "--worker-cpus=1", "--worker-gpus=0"])
def test_an_option_of_the_cluster_needs_the_cluster(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text('{"response": "A.", "retrieved_contexts": ["A."]}', encoding="utf-8")
    with pytest.raises(SystemExit) as exit_:
        cli.main(["run", str(path), option])
    assert exit_.value.code == 2
    assert f"{option.split('=')[0]} is for a cluster" in capsys.readouterr().err


# Slots

TWO, EIGHT = {"CPU": 2.0}, {"CPU": 8.0}
GPUS = {"CPU": 16.0, "GPU": 4.0}


@pytest.mark.parametrize(
    ("nodes", "asked", "slots"),
    [
        ([TWO], {}, Slots(1, 2, 0)),
        ([TWO], {"workers": 2}, Slots(2, 1, 0)),
        ([TWO], {"workers": 3}, Slots(3, 0.6666, 0)),
        ([EIGHT, EIGHT], {}, Slots(2, 8, 0)),
        ([EIGHT, EIGHT], {"workers": 3}, Slots(3, 4, 0)),
        ([EIGHT, EIGHT], {"cpus": 2}, Slots(8, 2, 0)),
        ([EIGHT, TWO], {}, Slots(2, 2, 0)),
        ([EIGHT, {}], {}, Slots(1, 8, 0)),
        ([GPUS, EIGHT], {"gpus": 1}, Slots(4, 4, 1)),
        ([GPUS], {"gpus": 0.5}, Slots(8, 2, 0.5)),
        ([GPUS], {"gpus": 1, "cpus": 8}, Slots(2, 8, 1)),
        ([GPUS, GPUS], {"gpus": 2, "workers": 3}, Slots(3, 8, 2)),
    ],
)
def test_slots_fill_the_machines(nodes: list[dict[str, float]], asked: dict[str, Any], slots: Slots) -> None:
    assert plan_slots(nodes, **asked) == slots


@pytest.mark.parametrize(
    ("nodes", "asked"),
    [
        ([], {}),
        ([TWO], {"gpus": 1}),
        ([TWO, TWO], {"cpus": 3}),
        ([TWO], {"cpus": 1, "workers": 3}),
        ([GPUS], {"gpus": 3, "workers": 2}),
    ],
)
def test_more_than_the_cluster_has_is_refused(nodes: list[dict[str, float]], asked: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="the cluster has no room"):
        plan_slots(nodes, **asked)
