"""Gate rules about the judge: what is read and what is refused.

    rule = "judge." NUMBER [ "." BOUND ] OP THRESHOLD [ "where" KEY "=" VALUE { "and" KEY "=" VALUE } ]

    NUMBER     balanced_accuracy | kappa | auroc | sensitivity | specificity | accuracy
               | calibration_error | brier
    BOUND      low | high: the end of the number's 95 % interval
    KEY=VALUE  task=support or task=goal: every task of the run when left out
               set=NAME: a set of the labelled rows; the mean over the sets when left out

Comparisons and thresholds are those of `rules`.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Literal

from anvil_local.errors import UsageError
from anvil_local.gates.rules import (
    Comparison,
    Gate,
    parse_gate,
    read_threshold,
    refuse_pointless,
    split_bound,
    split_rule,
    unknown_name,
)
from anvil_local.records import Record

__all__ = ["JudgeGate", "parse_judge_gate", "parse_rules"]

NUMBERS = (
    "accuracy",
    "auroc",
    "balanced_accuracy",
    "brier",
    "calibration_error",
    "kappa",
    "sensitivity",
    "specificity",
)
"""The numbers of a judge card that a rule can be about: fields of `calibration.Numbers`."""

_TASKS = ("goal", "support")


class JudgeGate(Record):
    """A rule about the judge, read."""

    rule: str
    """The rule as it was written."""
    number: str
    """Which number of the card is compared."""
    bound: Literal["low", "high"] | None = None
    """The end of its interval that is compared; None for the number itself."""
    task: Literal["support", "goal"] | None = None
    """The task; None for every task of the run."""
    set: str | None = None
    """The set of labelled rows; None for the mean over the sets."""
    comparison: Comparison
    """How it is compared."""
    threshold: Fraction
    """The number to compare with, exactly as written."""

    @property
    def name(self) -> str:
        """`judge.NUMBER`, with the bound if the rule has one."""
        return f"judge.{self.number}" + (f".{self.bound}" if self.bound else "")


def parse_rules(rules: Iterable[str]) -> tuple[list[JudgeGate], list[Gate]]:
    """Read rules: those about the judge, and those about scores. Raises `UsageError`."""
    judge: list[JudgeGate] = []
    scores: list[Gate] = []
    for rule in rules:
        if rule.strip().startswith("judge."):
            judge.append(parse_judge_gate(rule))
        else:
            scores.append(parse_gate(rule))
    return judge, scores


def parse_judge_gate(text: str) -> JudgeGate:
    """Read a rule about the judge. Raises `UsageError` as `parse_gate` does."""
    name, comparison, written, where = split_rule(text)
    number, bound = split_bound(name.partition(".")[2])
    if number not in NUMBERS:
        raise unknown_name("number of a judge card", number, text, NUMBERS)
    slices: dict[str, str] = {}
    for key, value in where:
        if key not in ("task", "set") or key in slices:
            raise UsageError(
                f"a rule about the judge cannot be sliced by {key!r}"
                if key not in slices
                else f"{key} stands there twice",
                value=text,
                hint="known: task=support, task=goal, set=NAME",
            )
        slices[key] = value
    if slices.get("task", "goal") not in _TASKS:
        raise unknown_name("task", slices["task"], text, _TASKS)
    threshold = read_threshold(comparison, written, text)
    # Kappa alone can be below 0.
    if number != "kappa" or threshold != 0:
        refuse_pointless(comparison, threshold, text)
    return JudgeGate.model_validate(
        {
            "rule": text.strip(),
            "number": number,
            "bound": bound,
            **slices,
            "comparison": comparison,
            "threshold": threshold,
        }
    )
