"""Whether the judge is good enough: gate rules over its card.

    JudgeGate + JudgeCard + Fingerprint -> GateOutcome

A card speaks for the judge that was measured and for nobody else, and not for ever: a rule fails when
the card is of another judge or older than allowed, whatever its numbers say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Literal

from anvil_local.calibration import Estimate
from anvil_local.cards import JudgeCard, Measurement, judge_parts, load_card, show_estimate
from anvil_local.errors import InputError, UsageError
from anvil_local.gates import COMPARISONS, JudgeGate
from anvil_local.gates.rules import compare
from anvil_local.metrics import METRICS
from anvil_local.records import Fingerprint, GateOutcome, Interval
from anvil_local.reports.text import excerpt, plural

__all__ = ["card_complaints", "check_judge_gates", "open_card", "tasks_of"]

Task = Literal["support", "goal"]

_DAY = 86400.0


def open_card(
    path: str | Path | None, gates: Sequence[JudgeGate], *, max_age: float | None = None
) -> JudgeCard | None:
    """The card that rules about the judge are checked with.

    Raises:
        UsageError: rules without a card, or a limit of its age without a rule that it could fail.
        InputError: the file is no card.
    """
    if gates and path is None:
        raise UsageError(
            "a gate rule about the judge needs its judge card",
            value=gates[0].rule,
            hint="`anvil-local calibrate LABELLED.jsonl -o card.json` writes one; give it with "
            "--judge-card card.json",
        )
    if max_age is not None and not gates:
        raise UsageError(
            "a limit of the judge card's age has no gate that it could fail",
            value=max_age,
            hint="add a rule about the judge: --judge-card card.json --gate 'judge.kappa.low >= 0.6'",
        )
    if path is None:
        return None
    card = load_card(path)
    try:
        created = datetime.fromisoformat(card.created)
    except ValueError:
        created = None
    if created is None or created.tzinfo is None:
        raise InputError(
            "this judge card has no date with a time zone",
            where=str(path),
            field="created",
            value=card.created,
            hint="a card is what `anvil-local calibrate -o card.json` wrote",
        )
    return card


def tasks_of(metrics: Iterable[str]) -> tuple[Task, ...]:
    """The tasks of a judge that metrics rest on."""
    kinds = {METRICS[name].kind for name in metrics if name in METRICS}
    tasks: list[Task] = ["support"] if "statements" in kinds else []
    return (*tasks, "goal") if "goal" in kinds else tuple(tasks)


def check_judge_gates(
    gates: Iterable[JudgeGate],
    card: JudgeCard,
    judge: Fingerprint,
    *,
    tasks: Sequence[Task],
    now: datetime,
    max_age: float | None = None,
) -> tuple[GateOutcome, ...]:
    """Check each rule, in the order of the rules.

    Where a card has several measurements that a rule is about, the worst of them decides.

    Args:
        gates: the rules.
        card: see `open_card`.
        judge: of the run.
        tasks: of the run: what a rule without `task=` is about.
        now: when the run began.
        max_age: the age of the card, in days, above which a rule fails.
    """
    return tuple(_check(gate, card, judge, tasks, now, max_age) for gate in gates)


def card_complaints(
    card: JudgeCard, judge: Fingerprint, tasks: Iterable[Task], now: datetime, max_age: float | None = None
) -> Iterator[str]:
    """Why the card does not speak for this judge now."""
    for task in tasks:
        mine, theirs = judge_parts(judge, task), judge_parts(card.judge, task)
        if mine != theirs:
            names = ", ".join(_differing(mine, theirs))
            yield (
                f"the card is of another judge ({card.judge.short}; this one is {judge.short}"
                f"{f'; other {names}' if names else ''})"
            )
            break
    age = (now - datetime.fromisoformat(card.created)).total_seconds() / _DAY
    if max_age is not None and age > max_age:
        yield f"the card is {_days(age)} old, above the limit of {_days(max_age)}"
    if age < -1:
        yield f"the card is from {card.created[:10]}, which is yet to come: look at the clock"


def _days(days: float) -> str:
    # Rounding must not print `30 days old, above the limit of 30 days`.
    return plural(int(days), "day") if days == int(days) else f"{days:.2f} days"


def _differing(mine: Mapping[str, object], theirs: Mapping[str, object]) -> list[str]:
    return sorted(key for key in {*mine, *theirs} if mine.get(key) != theirs.get(key))


def _check(
    gate: JudgeGate,
    card: JudgeCard,
    judge: Fingerprint,
    tasks: Sequence[Task],
    now: datetime,
    max_age: float | None,
) -> GateOutcome:
    asked = (gate.task,) if gate.task else tuple(tasks)
    complaints = list(card_complaints(card, judge, asked, now, max_age))
    found: list[tuple[Measurement, Estimate]] = []
    for task in asked:
        own = [item for item in card.measurements if item.task == task]
        estimates = [(item, number) for item in own if (number := _estimate(gate, item)) is not None]
        if not own:
            complaints.append(f"the card has no measurement of {task}")
        elif not estimates:
            complaints.append(f"the card has no set {excerpt(gate.set or '', 60)} of {task}")
        found += estimates
    worst = min(found, key=lambda pair: _order(gate, pair[1])) if found else None
    value = _value(gate, worst[1]) if worst else None
    holds, shown, reference = compare(value, gate.comparison, gate.threshold)
    passed = holds and not complaints
    message = f"{gate.name} {shown} {gate.comparison} {reference}: {'PASS' if passed else 'FAIL'}"
    message += f" ({_counts(gate, worst)}card of {card.created[:10]})"
    interval = None
    if worst and worst[1].value is None:
        message += f"; {worst[1].reason}"
    elif worst:
        interval = Interval(low=worst[1].low, high=worst[1].high)
        message += f"; {show_estimate(worst[1])} at 95 %"
    for complaint in complaints:
        message += f"; {complaint}"
    return GateOutcome(
        rule=gate.rule,
        passed=passed,
        value=None if value is None else float(value),
        message=message,
        threshold=float(gate.threshold),
        interval=interval,
    )


def _estimate(gate: JudgeGate, measurement: Measurement) -> Estimate | None:
    """The number that the rule is about; None when the measurement has no such set."""
    measured = measurement.measured
    chosen = measured.macro
    if gate.set is not None:
        named = [numbers for numbers in measured.sets if numbers.set == gate.set]
        if not named:
            return None
        chosen = named[0]
    estimate = getattr(chosen, gate.number)
    assert isinstance(estimate, Estimate)
    return estimate


def _value(gate: JudgeGate, estimate: Estimate) -> Fraction | None:
    number = getattr(estimate, gate.bound) if gate.bound else estimate.value
    # The decimal that the card shows: 0.6 is three fifths there and here.
    return None if number is None else Fraction(repr(float(number)))


def _order(gate: JudgeGate, estimate: Estimate) -> tuple[bool, bool, Fraction]:
    """The worst first: no number, then what fails, then what is nearest to failing."""
    value = _value(gate, estimate)
    if value is None:
        return False, False, Fraction(0)
    holds = COMPARISONS[gate.comparison](value, gate.threshold)
    return True, holds, -value if gate.comparison.startswith("<") else value


def _counts(gate: JudgeGate, worst: tuple[Measurement, Estimate] | None) -> str:
    if worst is None:
        return ""
    measurement = worst[0]
    rows = measurement.data.rows if gate.set is None else measurement.data.sets.get(gate.set, 0)
    words = f"{excerpt(measurement.title, 80)}, {plural(rows, 'row')}"
    sets = len(measurement.measured.sets)
    if gate.set is not None:
        words += f" of {excerpt(gate.set, 60)}"
    elif sets > 1:
        words += f", mean of {sets} sets"
    return f"{words}, "
