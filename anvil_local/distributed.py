"""A run on a Ray cluster: one judge an actor, groups of samples go to whoever is free.

    samples -> groups -> what the store knows -> actors -> results in order
                               ^                   |
                               +--- new entries ---+

The driver reads the data and holds the only verdict store. A worker is sent a few samples with the
entries that the store has for them, and sends back the results and the entries it found out. So an
interrupted run goes on from the driver's store on any cluster, and the cache counts are those of all.

Plain actors and not Ray Data, which could spread the work as well. Each promise below is then a few lines
here: the order of the data (Ray Data's own order is off by default), a bounded number of groups on their
way, a fingerprint compared before an actor gets work, a lost group that is counted and sent again, records
as they are instead of Arrow blocks, and no second progress bar. It also does without pandas and pyarrow.

The only module that imports Ray.
"""

from __future__ import annotations

import math
import os
import platform
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from anvil_local._version import __version__
from anvil_local.assess import Options
from anvil_local.cache import CachedJudge, Entries
from anvil_local.engine import physical_cores
from anvil_local.errors import AnvilError, EngineError, ModelError, UsageError
from anvil_local.judge import Judge
from anvil_local.metrics import Choice
from anvil_local.records import Fingerprint, Sample, SampleResult
from anvil_local.replay import compare_fingerprints
from anvil_local.runner import Fit, Progress, run_samples

__all__ = ["GROUP", "RayExecutor", "Slots", "plan_slots"]

GROUP = 8
"""Samples in a group. So many are judged again when a worker is lost."""

_AHEAD = 3
"""Groups a worker that are read and not yet handed on: a slow one holds up what follows it."""

_ATTEMPTS = 3
"""Workers that one group may lose before the run ends: the group itself may be what kills them."""

_PATIENCE = 300.0
"""Seconds to wait for a first worker, and for another one when all are lost."""

Build = Callable[[int], Judge]
"""Builds a worker's judge, given the number of threads of its slot. Travels to the workers."""


@dataclass(frozen=True)
class Slots:
    """The actors of a run."""

    workers: int
    """How many."""
    cpus: float
    """CPUs that each takes, as Ray counts them."""
    gpus: float
    """GPUs that each takes."""


def plan_slots(
    nodes: Sequence[Mapping[str, float]],
    *,
    workers: int | None = None,
    cpus: float | None = None,
    gpus: float = 0,
) -> Slots:
    """How many workers, and how large.

    Without `workers` it is one a machine, or as many as the asked CPUs or GPUs allow. Without `cpus` the
    workers of a machine share its CPUs; of unlike machines the smallest decides.

    Args:
        nodes: the resources of each machine, `CPU` and `GPU`.
        workers: how many in all.
        cpus: CPUs of each.
        gpus: GPUs of each.

    Raises:
        UsageError: the cluster has no room for them.
    """
    fit = [node for node in nodes if node.get("CPU", 0) >= (cpus or 1) and node.get("GPU", 0) >= gpus]
    if not fit:
        raise _no_room(nodes, f"a worker with {cpus or 1:g} CPUs and {gpus:g} GPUs")

    def room(node: Mapping[str, float], size: float | None) -> int:
        limits = [node["CPU"] // size] if size else []
        limits += [node["GPU"] // gpus] if gpus else []
        return int(min(limits, default=1))

    if workers is None:
        workers = sum(room(node, cpus) for node in fit)
    if cpus is None:
        share = min(node["CPU"] for node in fit) / math.ceil(workers / len(fit))
        # Ray counts whole CPUs, or less than one in steps of 1/10000.
        cpus = math.floor(share) if share >= 1 else math.floor(share * 10_000) / 10_000
    if sum(room(node, cpus) for node in fit) < workers:
        raise _no_room(nodes, f"{workers} workers with {cpus:g} CPUs and {gpus:g} GPUs each")
    return Slots(workers, cpus, gpus)


def _no_room(nodes: Sequence[Mapping[str, float]], wanted: str) -> UsageError:
    found = "; ".join(f"{node.get('CPU', 0):g} CPUs, {node.get('GPU', 0):g} GPUs" for node in nodes)
    return UsageError(
        f"the cluster has no room for {wanted}",
        value=found or "no machine",
        hint="fewer --workers, --worker-cpus or --worker-gpus; `ray status` shows the machines",
    )


class RayExecutor:
    """Judges samples with the actors of a Ray cluster; see `runner.Executor`.

    The cluster is joined when the first sample needs a judge, and left when the results are read. Where
    Ray is already running in this process, it is used and left running.

    Args:
        build: makes the judge of a worker, given its number of threads. It must be one that pickle can
            carry to other machines, and the judge must be the driver's: fingerprints are compared.
        address: a cluster's address as `ray.init` takes it; None starts one on this machine.
        workers: actors in all; see `plan_slots`.
        cpus: CPUs of each.
        gpus: GPUs of each.
        group: samples that a worker gets at a time.
        say: takes a line for people when a worker is lost.

    Raises:
        UsageError: Ray is not installed.
    """

    def __init__(
        self,
        build: Build,
        *,
        address: str | None = None,
        workers: int | None = None,
        cpus: float | None = None,
        gpus: float = 0,
        group: int = GROUP,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._ray = _import_ray()
        self._build = build
        self._address = address
        self._wanted = {"workers": workers, "cpus": cpus, "gpus": gpus}
        self._group = group
        self._say = say

    def __call__(
        self,
        samples: Iterable[Sample],
        *,
        judge: Judge,
        choices: Sequence[Choice],
        options: Options,
        on_progress: Callable[[Progress], None] | None = None,
        part: bool = False,
    ) -> Iterator[SampleResult]:
        """See `runner.run_samples`. Results wait for those before them, progress does not.

        Raises:
            ModelError: a worker has another judge than this process.
            EngineError: no worker came up, or a group lost too many of them.
        """
        fit = Fit(choices)
        cached = judge if isinstance(judge, CachedJudge) else None
        iterator = iter(samples)
        line: deque[_Group] = deque()  # in the order of the data
        waiting: deque[_Group] = deque()
        crew: _Crew | None = None
        finished = verdicts = 0

        def count(results: Iterable[SampleResult]) -> None:
            nonlocal finished, verdicts
            for result in results:
                finished += 1
                verdicts += result.scored + result.unscored
            if on_progress:
                on_progress(Progress(finished, verdicts, "judge"))

        def read() -> Iterator[_Group]:
            while rows := list(islice(iterator, self._group)):
                group = _Group([], choices, options, {} if cached else None)
                for sample in rows:
                    size = len(fit.metrics_for(sample))
                    done, known = _recall(sample, cached, choices, options) if size else ([], {})
                    if done is None:
                        group.samples.append((len(group.results), size, sample))
                        if group.known is not None:
                            group.known.update(known)
                    group.results.append(done)
                count(result for done in group.results for result in done or ())
                yield group

        reading = read()
        try:
            while True:
                limit = crew.slots.workers * _AHEAD if crew else 1
                for group in islice(reading, max(0, limit - len(line))):
                    line.append(group)
                    if group.samples:
                        waiting.append(group)
                if not line:
                    break
                if not line[0].samples:
                    for done in line.popleft().results:
                        yield from done or ()
                    continue
                crew = crew or _Crew(self._ray, self._address, self._wanted, self._build, judge, self._say)
                for group, answer in crew.work(waiting):
                    if cached:
                        cached.learn(answer.entries, hits=answer.hits)
                    group.take(answer.results)
                    count(answer.results)
        finally:
            if crew:
                crew.dismiss()
        if not part:
            fit.check()


def _recall(
    sample: Sample, judge: CachedJudge | None, choices: Sequence[Choice], options: Options
) -> tuple[list[SampleResult] | None, dict[str, str]]:
    """The results of a sample if the store knows all of them, and what it knows."""
    if judge is None:
        return None, {}
    return judge.recall(
        lambda known: list(run_samples([sample], judge=known, choices=choices, options=options, part=True))
    )


@dataclass
class _Group:
    """Neighbouring samples, and what became of them."""

    samples: list[tuple[int, int, Sample]]
    """Those still to be judged: place in the group, number of results, sample."""
    choices: Sequence[Choice]
    options: Options
    known: dict[str, str] | None
    """What the store has for them; None without a store."""
    results: list[list[SampleResult] | None] = field(default_factory=list)
    losses: int = 0

    def take(self, results: Iterable[SampleResult]) -> None:
        """Put the results of the open samples in their places."""
        iterator = iter(results)
        for place, size, sample in self.samples:
            self.results[place] = own = list(islice(iterator, size))
            assert [result.sample_id for result in own] == [sample.id] * size
        assert next(iterator, None) is None
        self.samples.clear()


@dataclass(frozen=True)
class _Answer:
    """What a worker sends back."""

    results: list[SampleResult]
    entries: dict[str, str]
    hits: int


class _Worker:
    """The actor: one judge in one process of the cluster."""

    def __init__(self, build: Build, cpus: float) -> None:
        self._build = build
        self._threads = max(1, min(int(cpus), physical_cores()))
        self._judge: Judge | None = None

    def open(self) -> tuple[str, str, Fingerprint]:
        """Build the judge; the machine, the version and the fingerprint."""
        self._judge = self._build(self._threads)
        return platform.node(), __version__, self._judge.fingerprint

    def judge(
        self,
        samples: list[Sample],
        choices: Sequence[Choice],
        options: Options,
        known: dict[str, str] | None,
    ) -> _Answer:
        """Judge a group."""
        assert self._judge is not None
        if known is None:
            judge, entries, hits = self._judge, Entries(), 0
            results = list(run_samples(samples, judge=judge, choices=choices, options=options, part=True))
        else:
            entries = Entries(known)
            cached = CachedJudge(self._judge, entries)
            results = list(run_samples(samples, judge=cached, choices=choices, options=options, part=True))
            hits = cached.hits
        return _Answer(results, entries.new, hits)


class _Crew:
    """The actors of a run: those that start, are free, are at work."""

    def __init__(
        self,
        ray: Any,
        address: str | None,
        wanted: Mapping[str, Any],
        build: Build,
        judge: Judge,
        say: Callable[[str], None],
    ) -> None:
        self._ray, self._build, self._judge, self._say = ray, build, judge, say
        self._starting: dict[Any, Any] = {}
        self._free: list[Any] = []
        self._working: dict[Any, tuple[Any, _Group]] = {}
        self._failed_starts = 0
        self._joined = _join(ray, address)
        try:
            nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
            self.slots = plan_slots(nodes, **wanted)
            for _ in range(self.slots.workers):
                self._hire()
        except BaseException:
            self.dismiss()
            raise

    def work(self, waiting: deque[_Group]) -> Iterator[tuple[_Group, _Answer]]:
        """Hand out groups to whoever is free, wait until something happens, and yield what is judged.

        A group whose worker was lost goes back to the front of the line.
        """
        while waiting and self._free:
            actor, group = self._free.pop(), waiting.popleft()
            samples = [sample for _, _, sample in group.samples]
            call = actor.judge.remote(samples, group.choices, group.options, group.known)
            self._working[call] = actor, group
        # While one works, there is no hurry with the others.
        patience = None if self._working else _PATIENCE
        ready, _ = self._ray.wait([*self._working, *self._starting], num_returns=1, timeout=patience)
        if not ready:
            raise EngineError(
                f"no worker came up within {_PATIENCE:.0f} seconds",
                hint="others may be using the cluster: `ray status` shows what is free; fewer --worker-cpus",
            )
        for call in ready:
            if call in self._starting:
                self._welcome(call, self._starting.pop(call))
                continue
            actor, group = self._working.pop(call)
            answer, reason = self._get(call)
            if answer is not None:
                self._free.append(actor)
                yield group, answer
                continue
            group.losses += 1
            first = group.samples[0][2]
            if group.losses == _ATTEMPTS:
                raise EngineError(
                    f"{_ATTEMPTS} workers were lost over the same {len(group.samples)} samples: {reason}",
                    where=first.source or f"sample {first.id}",
                    hint="a machine may be out of memory; what was judged before is in the verdict store",
                )
            self._say(f"note: a worker was lost, {len(group.samples)} samples go to another one: {reason}")
            waiting.appendleft(group)
            self._replace(actor)

    def dismiss(self) -> None:
        """Stop the actors, whatever they do, and leave the cluster."""
        actors = [*self._starting.values(), *self._free, *(actor for actor, _ in self._working.values())]
        for actor in actors:
            self._ray.kill(actor)
        if self._joined:
            self._ray.shutdown()

    def _hire(self) -> None:
        # Restarts are ours: Ray's own would give work to an actor whose judge nobody has compared.
        actor = self._ray.remote(
            num_cpus=self.slots.cpus, num_gpus=self.slots.gpus, max_restarts=0, max_task_retries=0
        )(_Worker).remote(self._build, self.slots.cpus)
        self._starting[actor.open.remote()] = actor

    def _replace(self, actor: Any) -> None:
        self._ray.kill(actor)  # it may be out of reach and not dead
        self._hire()

    def _welcome(self, call: Any, actor: Any) -> None:
        """Let an actor work if its judge is the driver's."""
        opened, reason = self._get(call)
        if opened is None:
            self._failed_starts += 1
            if self._failed_starts == _ATTEMPTS * self.slots.workers:
                raise EngineError(
                    f"{self._failed_starts} workers died while they started: {reason}",
                    hint="is anvil-local[ray] installed on every machine of the cluster?",
                )
            self._replace(actor)
            return
        machine, version, fingerprint = opened
        mine = self._judge.fingerprint
        if version != __version__:
            raise ModelError(
                f"a worker has another version of anvil-local than the {__version__} here",
                where=machine,
                value=version,
            )
        if fingerprint.digest != mine.digest:
            differences = compare_fingerprints(mine, fingerprint)
            raise ModelError(
                "a worker's judge is not the judge here: they differ in " + ", ".join(differences),
                where=machine,
                value=next(iter(differences.values()), None),
                hint="every machine needs the same model files and the same build of llama-cpp-python; "
                "`anvil-local info` shows them",
            )
        self._free.append(actor)

    def _get(self, call: Any) -> tuple[Any, str]:
        """What a call returned; or None and why its worker was lost. Raises what the worker raised."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(call), ""
        except errors.RayTaskError as error:
            if isinstance(error.cause, AnvilError):
                raise error.cause from None
            raise
        except errors.RayError as error:
            lines = str(error).strip().splitlines()
            return None, (lines or [type(error).__name__])[0]


def _import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise UsageError("the engine ray needs Ray", hint="pip install 'anvil-local[ray]'") from None
    return ray


def _join(ray: Any, address: str | None) -> bool:
    """Join the cluster, or start one here; False if this process is in one already."""
    if ray.is_initialized():
        return False
    # Ray reports its use to its makers unless told otherwise.
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    here: dict[str, Any] = {"address": "local", "include_dashboard": False}
    try:
        ray.init(log_to_driver=False, logging_level="ERROR", **({"address": address} if address else here))
    except (ConnectionError, RuntimeError, ValueError) as error:
        lines = str(error).strip().splitlines()
        raise UsageError(
            f"no Ray cluster can be joined: {(lines or [type(error).__name__])[0]}",
            value=address,
            hint="`ray start --head` starts one and prints its address; without --address one starts here",
        ) from error
    return True
