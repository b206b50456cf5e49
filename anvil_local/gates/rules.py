"""Gate rules: what is read and what is refused.

    rule = METRIC [ "." AGGREGATE ] [ "." BOUND ] OP NUMBER [ "where" KEY "=" VALUE { "and" KEY "=" VALUE } ]

    METRIC     a name of the catalogue, or a group: goal is goal_with_reference and goal_without_reference
    AGGREGATE  mean (when left out) | adjusted | pooled | lowest | unscored | above(X) | at_least(X)
               adjusted: the mean without supported statements that are padding (metrics of statements)
               above(X): the share of scored samples whose score is above X
    BOUND      low | high: the end of the number's 95 % interval
    OP         >= | > | <= | < | ==
    NUMBER     0.8 | .8 | 80%
    KEY=VALUE  only samples with this metadata; a value with blanks stands in double quotes

Rules that begin with `judge.` are about the judge and not about scores: see `judge_rules`.

Everything is compared as exact fractions: 4 of 5 is exactly the `0.8` that the rule says.
"""

from __future__ import annotations

import difflib
import json
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Literal

from anvil_local.errors import UsageError
from anvil_local.metrics import GROUPS, METRICS
from anvil_local.records import Record, SampleResult
from anvil_local.scoring import exact_lowest, exact_mean, exact_pooled, without_padding

TARGETS: dict[str, tuple[str, ...]] = {**{name: (name,) for name in METRICS}, **GROUPS}
"""The name in a rule -> the metrics whose results it looks at."""


def unscored_share(results: Sequence[SampleResult]) -> Fraction | None:
    """The share of samples without a score; None when there is no sample."""
    if not results:
        return None
    return Fraction(sum(result.score is None for result in results), len(results))


AGGREGATES: dict[str, Callable[[Sequence[SampleResult]], Fraction | None]] = {
    "adjusted": exact_mean,  # of what `Gate.choose` leaves
    "lowest": exact_lowest,
    "mean": exact_mean,
    "pooled": exact_pooled,
    "unscored": unscored_share,
}
"""The name in a rule -> the exact number that it stands for."""

SHARES: dict[str, Callable[[Fraction, Fraction], bool]] = {"above": operator.gt, "at_least": operator.ge}
"""The name in a rule -> how a sample's score is compared with the value in brackets."""

BOUNDS = ("low", "high")

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
    value: Fraction | None = None
    """The X of `above(X)` and `at_least(X)`."""
    bound: Literal["low", "high"] | None = None
    """The end of the number's interval that is compared; None for the number itself."""
    where: tuple[tuple[str, str], ...] = ()
    """Metadata that a sample must have, as keys and values; all samples without."""
    comparison: Comparison
    """How it is compared."""
    threshold: Fraction
    """The number to compare with, exactly as written."""

    @property
    def name(self) -> str:
        """`METRIC.AGGREGATE`, with the bound and the slice if the rule has them."""
        name = f"{self.metric}.{self.aggregate}"
        if self.value is not None:
            name += f"({decimals(self.value)})"
        if self.bound:
            name += f".{self.bound}"
        if self.where:
            name += " where " + " and ".join(f"{key}={_quoted(value)}" for key, value in self.where)
        return name

    def choose(self, results: Iterable[SampleResult]) -> list[SampleResult]:
        """The results that the rule looks at; for `adjusted` without padding."""
        chosen = [result for result in results if self.selects(result)]
        return without_padding(chosen) if self.aggregate == "adjusted" else chosen

    def selects(self, result: SampleResult) -> bool:
        """Whether the rule looks at this result."""
        return result.metric in TARGETS[self.metric] and all(
            key in result.metadata and as_text(result.metadata[key]) == value for key, value in self.where
        )


def parse_gate(text: str) -> Gate:
    """Read a rule.

    Raises `UsageError` for a rule that does not follow the grammar, an unknown metric or aggregate,
    a number outside 0 to 1, and a rule that no result could fail or no result could pass.
    """
    name, comparison, number, where = split_rule(text)
    if name.partition(".")[0] == "judge":
        raise UsageError(
            "this gate rule is about the judge, not about scores",
            value=text,
            hint="`anvil-local run --judge-card card.json` checks it",
        )
    fields = _parse_name(name, text)
    threshold = read_threshold(comparison, number, text)
    refuse_pointless(comparison, threshold, text)
    return Gate.model_validate(
        {
            "rule": text.strip(),
            "where": where,
            **fields,
            "comparison": comparison,
            "threshold": threshold,
        }
    )


def split_rule(text: str) -> tuple[str, str, str, tuple[tuple[str, str], ...]]:
    """The parts of a rule as they were written: name, comparison, number and slice. Raises `UsageError`."""
    body, where = _split_where(text)
    parts = re.fullmatch(r"\s*([^\s<>=!≤≥]+)\s*([<>=!≤≥]+)\s*([^\s<>=!≤≥](?:.*\S)?)\s*", body)
    if not parts:
        raise UsageError("cannot read this gate rule", value=text, hint=_GRAMMAR_HINT)
    name, comparison, number = parts.groups()
    return name, comparison, number, where


def read_threshold(comparison: str, number: str, text: str) -> Fraction:
    """The number that a rule compares with. Raises `UsageError` for it or for the comparison."""
    if comparison not in COMPARISONS:
        meant = {"=>": ">=", "=<": "<=", "=": "==", "≥": ">=", "≤": "<="}.get(comparison)
        hint = f"did you mean {meant}?" if meant else f"known: {' '.join(COMPARISONS)}"
        raise UsageError(f"unknown comparison {comparison!r} in a gate rule", value=text, hint=hint)
    return _parse_number(number, text)


def refuse_pointless(comparison: str, threshold: Fraction, text: str) -> None:
    """Raise `UsageError` for a rule that no number from 0 to 1 can fail, or that none can pass."""
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


def _split_where(text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The rule without its slice, and the slice."""
    found = re.search(r"\swhere(\s.*)?$", text, re.DOTALL)
    if not found:
        return text, ()
    pair = r'\s+([^\s="]+)=(?:"([^"]*)"|([^\s"]+))'
    slices = found.group(1) or ""
    if not re.fullmatch(rf"{pair}(?:\s+and{pair})*\s*", slices):
        raise UsageError(
            "cannot read the slice of a gate rule",
            value=text,
            hint='write where KEY=VALUE, a value with blanks in double quotes: where topic="opening hours"',
        )
    pairs = tuple((key, quoted or plain) for key, quoted, plain in re.findall(pair, slices))
    return text[: found.start()], pairs


def _parse_name(name: str, text: str) -> dict[str, object]:
    """METRIC.AGGREGATE.BOUND as fields of a `Gate`."""
    metric, dot, rest = name.partition(".")
    if metric not in TARGETS:
        raise unknown_name("metric", metric, text, TARGETS)
    rest, bound = split_bound(rest)
    aggregate = rest if rest or (dot and not bound) else "mean"
    fields: dict[str, object] = {"metric": metric, "aggregate": aggregate, "bound": bound}
    call = re.fullmatch(r"(\w+)\((.*)\)", aggregate)
    if call and call.group(1) in SHARES:
        value = _parse_number(call.group(2), text)
        if (call.group(1), value) in (("above", Fraction(1)), ("at_least", Fraction(0))):
            which = "no" if value else "every"
            raise UsageError(f"{which} score is {aggregate.replace('(', ' ').rstrip(')')}", value=text)
        return {**fields, "aggregate": call.group(1), "value": value}
    if aggregate not in AGGREGATES:
        shares = [f"{share}(X)" for share in SHARES]
        raise unknown_name("aggregate", aggregate, text, AGGREGATES, shares)
    if aggregate == "adjusted" and any(METRICS[name].kind != "statements" for name in TARGETS[metric]):
        raise UsageError("a goal has no padding", value=text, hint="known: mean, pooled, above(X)")
    if aggregate == "lowest" and bound:
        raise UsageError("the lowest score has no interval", value=text, hint="known: mean, pooled, above(X)")
    return fields


def split_bound(rest: str) -> tuple[str, str | None]:
    """The name without its bound, and the bound."""
    head, _, last = rest.rpartition(".")
    return (head, last) if last in BOUNDS else (rest, None)


def as_text(value: object) -> str:
    """A value of the metadata as a rule writes it: true, 3, de."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def _quoted(value: str) -> str:
    return f'"{value}"' if not value or any(char.isspace() for char in value) else value


def unknown_name(
    kind: str, name: str, text: str, known: Iterable[str], further: Iterable[str] = ()
) -> UsageError:
    """The error for a name that is not known, with the nearest one that is."""
    names = [*sorted(known), *further]
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


def compare(value: Fraction | None, comparison: Comparison, threshold: Fraction) -> tuple[bool, str, str]:
    """Whether the rule holds, and both numbers as decimals; no value holds nothing. Kappa may be below 0."""
    if value is None:
        return False, "none", decimals(threshold)
    shown, reference = show_apart(abs(value), threshold)
    return COMPARISONS[comparison](value, threshold), f"-{shown}" if value < 0 else shown, reference


def show_apart(value: Fraction, threshold: Fraction) -> tuple[str, str]:
    """Both numbers as decimals, with as many digits as it takes to see which one is larger.

    Rounding must not print `0.80 >= 0.80: FAIL`.
    """
    reference = decimals(threshold)
    digits = len(reference.partition(".")[2])
    shown = decimals(value, digits)
    # Two unequal fractions part after some digits; the bound keeps a line a line.
    while value != threshold and shown == decimals(threshold, digits) and digits < 30:
        digits += 1
        shown = decimals(value, digits)
    return shown, reference


def decimals(number: Fraction, digits: int | None = None) -> str:
    """A fraction from 0 to 1 as a decimal; without `digits` as many as it has, from 2 to 22."""
    if digits is None:
        digits = next((count for count in range(2, 22) if not (number * 10**count) % 1), 22)
    scaled = str(round(number * 10**digits)).zfill(digits + 1)
    return f"{scaled[:-digits]}.{scaled[-digits:]}"
