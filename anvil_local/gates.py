"""Gates: rules over scores that pass or fail, `faithfulness.mean >= 0.8`.

    rule = METRIC [ "." AGGREGATE ] OP NUMBER

    METRIC     a name of the catalogue, or a group: goal is goal_with_reference and goal_without_reference
    AGGREGATE  mean (when left out) | pooled | lowest | unscored
    OP         >= | > | <= | < | ==
    NUMBER     0.8 | .8 | 80%

Everything is compared as exact fractions: 4 of 5 is exactly the `0.8` that the rule says.
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Literal

from anvil_local.errors import UsageError
from anvil_local.metrics import GROUPS, METRICS
from anvil_local.records import GateOutcome, MetricSummary, Record, SampleResult
from anvil_local.scoring import exact_lowest, exact_mean, exact_pooled, summarize_group

__all__ = ["AGGREGATES", "COMPARISONS", "TARGETS", "Gate", "check_gates", "parse_gate", "show_apart"]

TARGETS: dict[str, tuple[str, ...]] = {**{name: (name,) for name in METRICS}, **GROUPS}
"""The name in a rule -> the metrics whose results it looks at."""


def unscored_share(results: Sequence[SampleResult]) -> Fraction | None:
    """The share of samples without a score; None when there is no sample."""
    if not results:
        return None
    return Fraction(sum(result.score is None for result in results), len(results))


AGGREGATES: dict[str, Callable[[Sequence[SampleResult]], Fraction | None]] = {
    "lowest": exact_lowest,
    "mean": exact_mean,
    "pooled": exact_pooled,
    "unscored": unscored_share,
}
"""The name in a rule -> the exact number that it stands for."""

Comparison = Literal[">=", ">", "<=", "<", "=="]

COMPARISONS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
}

# For a number that is always between 0 and 1.
_CANNOT_FAIL = {(">=", Fraction(0)), ("<=", Fraction(1))}
_CANNOT_PASS = {("<", Fraction(0)), (">", Fraction(1))}

_GRAMMAR_HINT = (
    "a rule is METRIC[.AGGREGATE] OP NUMBER, in quotes: --gate 'faithfulness.mean >= 0.8' "
    "(the shell takes an unquoted > for itself)"
)


class Gate(Record):
    """A rule, read."""

    rule: str
    """The rule as it was written."""
    metric: str
    """The name of the metric or of the group of metrics."""
    aggregate: str = "mean"
    """Which number of the metric is compared."""
    comparison: Comparison
    """How it is compared."""
    threshold: Fraction
    """The number to compare with, exactly as written."""

    @property
    def name(self) -> str:
        """`METRIC.AGGREGATE`."""
        return f"{self.metric}.{self.aggregate}"


def parse_gate(text: str) -> Gate:
    """Read a rule.

    Raises `UsageError` for a rule that does not follow the grammar, an unknown metric or aggregate,
    a number outside 0 to 1, and a rule that no result could fail or no result could pass.
    """
    parts = re.fullmatch(r"\s*([^\s<>=!≤≥]+)\s*([<>=!≤≥]+)\s*([^\s<>=!≤≥](?:.*\S)?)\s*", text)
    if not parts:
        raise UsageError("cannot read this gate rule", value=text, hint=_GRAMMAR_HINT)
    name, comparison, number = parts.groups()
    metric, _, aggregate = name.partition(".")
    aggregate = aggregate if "." in name else "mean"
    if metric not in TARGETS:
        raise _unknown("metric", metric, text, TARGETS)
    if aggregate not in AGGREGATES:
        raise _unknown("aggregate", aggregate, text, AGGREGATES)
    if comparison not in COMPARISONS:
        meant = {"=>": ">=", "=<": "<=", "=": "==", "≥": ">=", "≤": "<="}.get(comparison)
        hint = f"did you mean {meant}?" if meant else f"known: {' '.join(COMPARISONS)}"
        raise UsageError(f"unknown comparison {comparison!r} in a gate rule", value=text, hint=hint)
    threshold = _parse_number(number, text)
    if (comparison, threshold) in _CANNOT_FAIL:
        raise UsageError(
            "this gate rule can never fail: every score is between 0 and 1",
            value=text,
            hint="leave the rule out, or choose a number that a bad run would miss",
        )
    if (comparison, threshold) in _CANNOT_PASS:
        raise UsageError(
            "this gate rule can never pass: every score is between 0 and 1",
            value=text,
            hint=f"did you mean {comparison}= ?",
        )
    return Gate.model_validate(
        {
            "rule": text.strip(),
            "metric": metric,
            "aggregate": aggregate,
            "comparison": comparison,
            "threshold": threshold,
        }
    )


def _unknown(kind: str, name: str, text: str, known: Iterable[str]) -> UsageError:
    names = sorted(known)
    close = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]}? " if close else ""
    return UsageError(
        f"unknown {kind} {name!r} in a gate rule", value=text, hint=f"{hint}known: {', '.join(names)}"
    )


def _parse_number(number: str, text: str) -> Fraction:
    if not re.fullmatch(r"(?:[0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})(?:\s*%)?", number):
        hint = "write 0.8 or 80%"
        if re.fullmatch(r"[0-9]+,[0-9]+%?", number):
            hint = f"write the decimal point as a dot: {number.replace(',', '.')}"
        elif re.fullmatch(r"-[0-9.]+%?", number):
            hint = "every score is between 0 and 1"
        raise UsageError(f"cannot read the number {number!r} in a gate rule", value=text, hint=hint)
    percent = number.endswith("%")
    threshold = Fraction(number.rstrip("% \t")) / (100 if percent else 1)
    if threshold > 1:
        hint = "every score is between 0 and 1"
        if not percent and threshold <= 100:
            hint += f"; did you mean {number}%?"
        raise UsageError(f"the number {number} of a gate rule is above 1", value=text, hint=hint)
    return threshold


def check_gates(
    gates: Iterable[Gate], results: Iterable[SampleResult], *, max_unscored: float = 0.05, rejected: int = 0
) -> tuple[GateOutcome, ...]:
    """Check each gate against the results, in the order of the gates.

    A gate fails by itself when nothing is scored, or when more than `max_unscored` of the metric's
    samples have no score or of its verdicts have no value. The one exception is a rule on
    `unscored`: it sets its own limit. Without gates nothing fails.

    `rejected` is the number of bad rows that were skipped. Which metrics they were meant for nobody
    knows, so each of them counts as an unscored sample of every gate, also of a rule on `unscored`.
    """
    if not 0 <= max_unscored <= 1:
        raise UsageError("the limit of unscored samples must be between 0 and 1", value=max_unscored)
    limit = Fraction(repr(max_unscored))
    everything = tuple(results)
    return tuple(_check_gate(gate, everything, limit, rejected) for gate in gates)


def _check_gate(gate: Gate, results: Sequence[SampleResult], limit: Fraction, rejected: int) -> GateOutcome:
    members = TARGETS[gate.metric]
    chosen = [result for result in results if result.metric in members]
    value = AGGREGATES[gate.aggregate](chosen)
    summary = summarize_group(gate.metric, chosen)
    if gate.aggregate == "unscored" and rejected:
        value = Fraction(summary.unscored_samples + rejected, summary.samples + rejected)
    if value is None:
        passed, shown, reference = False, "none", _decimals(gate.threshold)
    else:
        passed = COMPARISONS[gate.comparison](value, gate.threshold)
        shown, reference = show_apart(value, gate.threshold)
    complaints = [] if gate.aggregate == "unscored" else _excess(summary, limit, rejected)
    passed = passed and not complaints
    message = f"{gate.name} {shown} {gate.comparison} {reference}: {'PASS' if passed else 'FAIL'}"
    message += f" ({_counts(gate, summary)})"
    for complaint in complaints:
        message += f"; {complaint}"
    return GateOutcome(
        rule=gate.rule, passed=passed, value=None if value is None else float(value), message=message
    )


def _excess(summary: MetricSummary, limit: Fraction, rejected: int) -> list[str]:
    """What is unscored beyond the limit, in words."""
    complaints = []
    noun = f"samples ({_plural(rejected, 'bad row')} skipped)" if rejected else "samples"
    samples = (summary.unscored_samples + rejected, summary.samples + rejected, noun)
    # One decided statement gives a sample its score, so a sample can be scored and mostly undecided.
    verdicts = (summary.unscored, summary.scored + summary.unscored, "verdicts")
    # A goal has one verdict: the same complaint would stand there twice.
    for part, whole, noun in (samples,) if samples[:2] == verdicts[:2] else (samples, verdicts):
        if whole and Fraction(part, whole) > limit:
            share, allowed = show_apart(Fraction(part, whole), limit)
            complaints.append(f"{part} of {whole} {noun} unscored is {share}, above the limit {allowed}")
    return complaints


def _counts(gate: Gate, summary: MetricSummary) -> str:
    if not summary.samples:
        return f"no sample was judged by {gate.metric}"
    words = [_plural(summary.samples, "sample")]
    of_statements = all(METRICS[name].kind == "statements" for name in TARGETS[gate.metric])
    if summary.scored:
        noun = "statements supported" if of_statements else "goals reached"
        words.append(f"{summary.supported} of {summary.scored} {noun}")
    else:
        words.append("nothing scored")
    if summary.unscored_samples:
        reasons = ", ".join(f"{reason} {count}" for reason, count in summary.reasons.items())
        words.append(f"{_plural(summary.unscored_samples, 'sample')} unscored: {reasons}")
    if summary.unscored and of_statements:
        words.append(f"{_plural(summary.unscored, 'statement')} undecided")
    return ", ".join(words)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def show_apart(value: Fraction, threshold: Fraction) -> tuple[str, str]:
    """Both numbers as decimals, with as many digits as it takes to see which one is larger.

    Rounding must not print `0.80 >= 0.80: FAIL`.
    """
    reference = _decimals(threshold)
    digits = len(reference.partition(".")[2])
    shown = _decimals(value, digits)
    # Two unequal fractions part after some digits; the bound keeps a line a line.
    while value != threshold and shown == _decimals(threshold, digits) and digits < 30:
        digits += 1
        shown = _decimals(value, digits)
    return shown, reference


def _decimals(number: Fraction, digits: int | None = None) -> str:
    """A fraction from 0 to 1 as a decimal; without `digits` as many as it has, from 2 to 22."""
    if digits is None:
        digits = next((count for count in range(2, 22) if not (number * 10**count) % 1), 22)
    scaled = str(round(number * 10**digits)).zfill(digits + 1)
    return f"{scaled[:-digits]}.{scaled[-digits:]}"
