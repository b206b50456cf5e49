"""The catalogue of metrics. A metric is a row: what it needs, what it asks, how its score is made."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from anvil_local.errors import UsageError
from anvil_local.records import Sample

__all__ = ["GROUPS", "METRICS", "Metric", "choose_metrics", "missing_fields"]


@dataclass(frozen=True)
class Metric:
    """One row of the catalogue."""

    name: str
    title: str
    kind: Literal["statements", "goal"]
    """`statements`: a verdict a statement, the score is their mean; `goal`: one verdict, the score is it."""
    needs: tuple[str, ...]
    """Fields a sample must have."""
    desired: Literal["reference", "user_goal"] | None = None
    """Where the desired outcome of a goal metric comes from."""
    unless: tuple[str, ...] = ()
    """When chosen by default or through a group: not for samples that have one of these fields."""


METRICS = {
    metric.name: metric
    for metric in (
        Metric("faithfulness", "Faithfulness", "statements", ("response", "retrieved_contexts")),
        Metric(
            "goal_with_reference",
            "Agent goal accuracy with reference",
            "goal",
            ("trace", "reference"),
            desired="reference",
        ),
        Metric(
            "goal_without_reference",
            "Agent goal accuracy without reference",
            "goal",
            ("trace",),
            desired="user_goal",
            unless=("reference",),
        ),
    )
}
"""By name."""

GROUPS = {"goal": ("goal_with_reference", "goal_without_reference")}
"""Names that stand for several metrics, of which each sample gets the one that fits."""


@dataclass(frozen=True)
class Choice:
    """A metric to run, and what the user said to have it."""

    metric: Metric
    named: bool
    """Whether the user named this very metric."""
    asked: str | None = None
    """The name that the user gave, of the metric or of its group; None when nothing was named."""

    def fits(self, sample: Sample) -> bool:
        """Whether this sample is to be judged by it."""
        if missing_fields(self.metric, sample):
            return False
        return self.named or not any(_has(sample, field) for field in self.metric.unless)


def choose_metrics(names: str | Iterable[str] | None) -> tuple[Choice, ...]:
    """The metrics for these names (or groups); all of them when None.

    Raises:
        UsageError: an unknown name, or none at all.
    """
    names = [names] if isinstance(names, str) else names
    if names is None:
        return tuple(Choice(metric, named=False) for metric in METRICS.values())
    chosen: dict[str, Choice] = {}
    for name in names:
        if name in GROUPS:
            for member in GROUPS[name]:
                chosen.setdefault(member, Choice(METRICS[member], named=False, asked=name))
        elif name in METRICS:
            chosen[name] = Choice(METRICS[name], named=True, asked=name)
        else:
            known = [*METRICS, *GROUPS]
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else "known: " + ", ".join(known)
            raise UsageError("no such metric", value=name, hint=hint)
    if not chosen:
        raise UsageError("no metric is chosen", hint="known: " + ", ".join([*METRICS, *GROUPS]))
    return tuple(chosen.values())


def missing_fields(metric: Metric, sample: Sample) -> tuple[str, ...]:
    """The fields that the metric needs and the sample lacks."""
    return tuple(field for field in metric.needs if not _has(sample, field))


def _has(sample: Sample, field: str) -> bool:
    if field == "trace":
        return sample.is_trace
    return getattr(sample, field) is not None
