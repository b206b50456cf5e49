"""Judge a report again and compare bit by bit.

A JSON report holds the samples and the judge's settings, so it is a lock file of its run: the same
files must give the same verdicts, to the last bit of every margin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from anvil_local.assess import Options
from anvil_local.judge import Judge
from anvil_local.metrics import choose_metrics
from anvil_local.records import Fingerprint, Record, Report, SampleResult, Verdict
from anvil_local.runner import Progress, run_samples

__all__ = ["Move", "Replay", "compare_fingerprints", "compare_results", "replay"]


class Move(Record):
    """A question whose answer is not the same bits as before."""

    sample_id: str
    """The sample."""
    metric: str
    """The metric."""
    question: str
    """The statement, or `reached`, `claimed`, `done`."""
    old: Verdict | None
    """The verdict of the report; None for a statement that only the replay has."""
    new: Verdict | None
    """The verdict of the replay; None for a statement that only the report has."""

    @property
    def flipped(self) -> bool:
        """Whether the value changed, or the question is in one of the two only."""
        return self.old is None or self.new is None or self.old.value != self.new.value

    @property
    def distance(self) -> float | None:
        """How far the margin moved, in nats."""
        if self.old is None or self.new is None or self.old.margin is None or self.new.margin is None:
            return None
        return abs(self.new.margin - self.old.margin)


class Replay(Record):
    """What came of judging a report again."""

    questions: int
    """Questions in the report or in the replay."""
    moves: tuple[Move, ...]
    """Those whose verdict is not bit-equal."""
    judge: dict[str, tuple[Any, Any]]
    """What differs in the fingerprints: path -> (the report's, the replay's)."""

    @property
    def flips(self) -> tuple[Move, ...]:
        """The moves that changed a value."""
        return tuple(move for move in self.moves if move.flipped)


def replay(report: Report, judge: Judge, *, on_progress: Callable[[Progress], None] | None = None) -> Replay:
    """Judge the samples of a report again, as its settings say, and compare."""
    settings = report.settings
    options = Options(
        decomposition=settings.decomposition,
        language=settings.language,
        seed=settings.seed,
        formatter=settings.formatter,
        shape=settings.shape,
        padding=settings.padding,
    )
    # A sample under several metrics stands in the report once for each.
    by_metric: dict[str, list[SampleResult]] = {}
    for result in report.results:
        by_metric.setdefault(result.metric, []).append(result)
    old: list[SampleResult] = []
    new: list[SampleResult] = []
    for metric, results in by_metric.items():
        old += results
        new += run_samples(
            (result.sample for result in results),
            judge=judge,
            choices=choose_metrics([metric]),
            options=options,
            on_progress=on_progress,
        )
    questions, moves = 0, []
    for before, after in zip(old, new, strict=True):
        count, moved = compare_results(before, after)
        questions += count
        moves += moved
    return Replay(
        questions=questions,
        moves=tuple(moves),
        judge=compare_fingerprints(report.judge, judge.fingerprint),
    )


def compare_results(old: SampleResult, new: SampleResult) -> tuple[int, list[Move]]:
    """The number of questions of two results of one sample, and those that are not bit-equal."""
    before, after = dict(_verdicts(old)), dict(_verdicts(new))
    names = list(dict.fromkeys([*before, *after]))
    moves = [
        Move(
            sample_id=old.sample_id,
            metric=old.metric,
            question=name[0],
            old=before.get(name),
            new=after.get(name),
        )
        for name in names
        if before.get(name) != after.get(name)
    ]
    return len(names), moves


def _verdicts(result: SampleResult) -> Iterator[tuple[tuple[str, int], Verdict]]:
    for item in result.statements:
        yield (item.statement.text, item.statement.sentence), item.verdict
        if item.contradiction:
            yield (f"contradicted: {item.statement.text}", item.statement.sentence), item.contradiction
        if item.unaided:
            yield (f"without the context: {item.statement.text}", item.statement.sentence), item.unaided
        if item.bears:
            yield (f"bears on the question: {item.statement.text}", item.statement.sentence), item.bears
    if result.goal:
        for name in ("reached", "claimed", "done"):
            yield (name, 0), getattr(result.goal, name)


def compare_fingerprints(old: Fingerprint, new: Fingerprint) -> dict[str, tuple[Any, Any]]:
    """The parts that differ, by their path: `build.instruction_sets`."""
    before, after = dict(_leaves(old.parts)), dict(_leaves(new.parts))
    names = sorted({*before, *after})
    return {
        name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)
    }


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{number}]")
    else:
        yield path, value
