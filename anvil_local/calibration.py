"""How well a judge agrees with people: labelled rows, what the judge said of them, and the numbers.

    LABELLED.jsonl -> LabelledRow | LabelledTrace -> Judged -> Numbers (a set), Numbers (macro), Threshold

Nothing here asks a model: `cli.calibrate` does. Every number is an `Estimate`: a value with a 95 %
interval, or null with a reason. The rows of a set count as independent of each other, labels as given:
intervals hold for rows like these with as many of each label.

The positive class is the label 1 (supported, reached). *Macro* is the plain mean over the sets that
have the number.
"""

from __future__ import annotations

import hashlib
import io
import math
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from anvil_local.errors import InputError, InputErrors, NothingToJudge
from anvil_local.records import Record, Sample
from anvil_local.samples import FIELD_NAMES, sample_from_row
from anvil_local.samples.formats import find_format
from anvil_local.samples.strict_json import check_json, json_kind
from anvil_local.stats import normal, wilson

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

__all__ = [
    "Confusion",
    "Estimate",
    "Judged",
    "LabelledFile",
    "LabelledRow",
    "LabelledTrace",
    "Measured",
    "Numbers",
    "Threshold",
    "auroc",
    "choose_threshold",
    "estimate_auroc",
    "estimate_gain",
    "estimate_share",
    "measure",
    "read_labelled",
]

Task = Literal["support", "goal"]

DRAWS = 2000
"""Bootstrap resamples."""

BINS = 10
"""Bins of the calibration error; fewer when a set has under ten rows a bin."""

FOLDS = 5
"""Parts of the cross-fitting."""

_LEVEL = 0.95
_NO_SET = "all"
_CELLS = 4_000_000
"""Numbers held at once while resampling: 32 MB."""


# ---------------------------------------------------------------------------------------------
# Labelled rows


class LabelledRow(Record):
    """A statement that somebody judged against a context."""

    context: str
    """What the statement must rest on; several contexts are joined by blank lines. May be empty."""
    statement: str
    """The claim."""
    label: Literal[0, 1]
    """1 supported, 0 not."""
    set: str = _NO_SET
    """The group of rows it belongs to: the row's `set`, else its `source`."""
    kind: str | None = None
    """A finer group, for people; no number is made of it."""
    id: str
    """The row's own `id`, or its number in the file, counted from 1."""
    question: str | None = None
    """The question that was asked, if there was one. The judge does not see it."""
    weight: float = 1.0
    """How many rows of the population it stands for: 1 over its chance to be picked."""

    @property
    def group(self) -> str:
        """What must stay together when rows are split into folds: the context."""
        return self.context


class LabelledTrace(Record):
    """A trace of which somebody said whether it reached what was wanted."""

    sample: Sample
    """The trace, with the reference if there is one."""
    label: Literal[0, 1]
    """1 reached, 0 not."""
    set: str = _NO_SET
    """The group of rows it belongs to: the row's `set`, else its `source`."""
    kind: str | None = None
    """A finer group, for people."""
    id: str
    """The row's own `id`, or its number in the file, counted from 1."""
    weight: float = 1.0
    """How many rows of the population it stands for: 1 over its chance to be picked."""

    @property
    def group(self) -> str:
        """What must stay together when rows are split into folds: the row alone."""
        return self.id


class LabelledFile(Record):
    """A file of labelled rows."""

    name: str
    """The file's name without its folder; `<stdin>` for standard input."""
    sha256: str
    """Of its bytes as they lie on disk."""
    rows: tuple[LabelledRow, ...] | tuple[LabelledTrace, ...]
    """In the order of the file."""


def read_labelled(path: Path | str, *, task: Task = "support") -> LabelledFile:
    """Read labelled rows: JSON lines or a JSON list, also compressed with gzip; `-` is standard input.

    A row for `support` has `context` (or `retrieved_contexts`), `statement` and `label`; one for `goal`
    has the messages of a trace, `reference` if there is one, and `label`. `id`, `set` (or `source`),
    `kind`, `question` and `weight` are optional; other keys are not read.

    Raises:
        InputErrors: bad rows, each with `FILE:LINE` and the field.
        InputError: a file that cannot be read.
        NothingToJudge: no rows.
    """
    name = "<stdin>" if str(path) == "-" else str(path)
    raw = _read_bytes(path, name)
    stream = io.BytesIO(_unpacked(raw, name))
    layout = find_format(name.removesuffix(".gz"), stream)
    read = _labelled_trace if task == "goal" else _labelled_row
    rows: list[LabelledRow | LabelledTrace] = []
    errors: list[InputError] = []
    places: dict[str, str] = {}
    for number, (place, value) in enumerate(layout.read(stream), start=1):
        where = layout.where.format(file=name, place=place)
        try:
            if isinstance(value, InputError):
                raise value
            row = read(value, where, number)
            if row.id in places:
                raise InputError(
                    f"the id is used at {places[row.id]} too",
                    field="id",
                    value=row.id,
                    hint="give each row its own id, or leave all of them out",
                )
            places[row.id] = where
            rows.append(row)
        except InputError as error:
            errors.append(
                InputError(error.message, where=where, field=error.field, value=error.value, hint=error.hint)
            )
    if errors:
        raise InputErrors(errors)
    if not rows:
        raise NothingToJudge("nothing to judge: the file has no rows", where=name)
    short = name if str(path) == "-" else Path(path).name
    return LabelledFile.model_validate(
        {"name": short, "sha256": hashlib.sha256(raw).hexdigest(), "rows": tuple(rows)}
    )


def _read_bytes(path: Path | str, name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if str(path) == "-" else Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=name) from error


def _unpacked(raw: bytes, name: str) -> bytes:
    if not raw.startswith(b"\x1f\x8b"):
        return raw
    import gzip

    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"the gzip file is damaged: {error}", where=name) from error


def _labelled_row(row: Any, where: str, number: int) -> LabelledRow:
    row = _object(row)
    statement = row.get("statement")
    if statement is None:
        raise InputError(
            "`statement` is missing", field="statement", hint="a row has `context`, `statement` and `label`"
        )
    if not isinstance(statement, str):
        raise InputError(f"`statement` must be text, not {json_kind(statement)}", field="statement")
    if not statement.strip():
        raise InputError("`statement` is empty", field="statement")
    return LabelledRow(
        context=_context(row),
        statement=" ".join(statement.split()),
        label=_label(row),
        set=_set(row),
        kind=_text(row, "kind"),
        id=_id(row, number),
        question=_text(row, "question"),
        weight=_weight(row),
    )


def _labelled_trace(row: Any, where: str, number: int) -> LabelledTrace:
    row = _object(row)
    names = {*FIELD_NAMES["user_input"], *FIELD_NAMES["reference"]}
    fields = {key: value for key, value in row.items() if key in names}
    if "messages" in fields:
        # A row may repeat what was asked as text beside its messages.
        fields = {key: value for key, value in fields.items() if not isinstance(row[key], str)} | {
            key: row[key] for key in FIELD_NAMES["reference"] if key in fields
        }
    if not any(isinstance(fields.get(name), list) for name in FIELD_NAMES["user_input"]):
        raise InputError(
            "the row has no trace: `user_input` (or `messages`) must be a list of messages",
            field="user_input",
            hint="statements are calibrated with --task support",
        )
    label, own = _label(row), _id(row, number)
    sample = sample_from_row(fields | {"id": own}, where=where, number=number)
    return LabelledTrace(
        sample=sample, label=label, set=_set(row), kind=_text(row, "kind"), id=own, weight=_weight(row)
    )


def _object(row: Any) -> Mapping[str, Any]:
    if not isinstance(row, Mapping):
        raise InputError(f"a row must be an object with named fields, not {json_kind(row)}")
    check_json(row)
    return row


def _label(row: Mapping[str, Any]) -> Literal[0, 1]:
    label = row.get("label")
    if label is None:
        raise InputError("`label` is missing", field="label", hint="1 supported, 0 not")
    if not isinstance(label, int | float) or label not in (0, 1):
        raise InputError("`label` must be 0 or 1", field="label", value=label, hint="1 supported, 0 not")
    return 1 if label == 1 else 0


def _weight(row: Mapping[str, Any]) -> float:
    weight = row.get("weight", 1.0)
    number = isinstance(weight, int | float) and not isinstance(weight, bool)
    if not number or not 0 < weight < math.inf:
        raise InputError(
            "`weight` must be a number above 0",
            field="weight",
            value=weight,
            hint="1 over the row's chance to be picked, as `label` writes it",
        )
    return float(weight)


def _context(row: Mapping[str, Any]) -> str:
    given = [name for name in ("context", *FIELD_NAMES["retrieved_contexts"]) if row.get(name) is not None]
    if not given:
        raise InputError(
            "`context` is missing", field="context", hint="give `context` as text, or `retrieved_contexts`"
        )
    if len(given) > 1:
        raise InputError(
            f"`{given[0]}` and `{given[1]}` are two names for one field", field=given[1], hint="keep one"
        )
    value = row[given[0]]
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "\n\n".join(item for item in value if item.strip())
    raise InputError(
        f"`{given[0]}` must be text or a list of texts", field=given[0], hint="give the text of each passage"
    )


def _set(row: Mapping[str, Any]) -> str:
    return _text(row, "set") or _text(row, "source") or _NO_SET


def _text(row: Mapping[str, Any], name: str) -> str | None:
    value = row.get(name)
    if value is not None and not isinstance(value, str):
        raise InputError(f"`{name}` must be text, not {json_kind(value)}", field=name)
    return value


def _id(row: Mapping[str, Any], number: int) -> str:
    value = row.get("id")
    if value is None:
        return str(number)
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise InputError("`id` must be text or a whole number", field="id", value=value)
    return str(value)


# ---------------------------------------------------------------------------------------------
# What the judge said


class Judged(Record):
    """A labelled row with the judge's verdict."""

    label: Literal[0, 1]
    """What people said."""
    margin: float | None
    """logit(1) - logit(0), in nats; None when no model was asked, or when it failed."""
    value: Literal[0, 1] | None
    """The verdict; None when undecided. A 0 without a margin is a 0 at every threshold (empty context)."""
    p_supported: float | None = None
    """p(1) / (p(0) + p(1)); None: the logistic of the margin. A vote of several judges has its own."""
    mass: float | None = None
    """p(0) + p(1) before the constraint."""
    set: str = _NO_SET
    """The group of rows it belongs to."""
    kind: str | None = None
    """A finer group."""
    id: str
    """The row."""
    group: str | None = None
    """What must stay together in cross-fitting, such as the context; None: the row alone."""
    weight: float = 1.0
    """How many rows of the population it stands for."""

    @property
    def score(self) -> float:
        """The margin; minus infinity for a 0, infinity for a 1 that needed no model."""
        if self.margin is not None:
            return self.margin
        return math.inf if self.value else -math.inf

    @property
    def probability(self) -> float:
        """p_supported; 0 or 1 for what needed no model."""
        if self.p_supported is not None:
            return self.p_supported
        # The half that does not overflow.
        small = math.exp(-abs(self.score))
        return 1 / (1 + small) if self.score > 0 else small / (1 + small)


class Estimate(Record):
    """A number with its 95 % interval."""

    value: float | None
    """None when it cannot be said; `reason` then says why."""
    low: float | None = None
    """The lower end of the interval."""
    high: float | None = None
    """The upper end of the interval."""
    reason: str | None = None
    """Why there is no value."""
    sets: int | None = None
    """Macro: the sets that have the number."""


class Confusion(Record):
    """Counts of scored rows: label, then verdict."""

    true_positives: int
    """Label 1, verdict 1."""
    false_negatives: int
    """Label 1, verdict 0."""
    false_positives: int
    """Label 0, verdict 1."""
    true_negatives: int
    """Label 0, verdict 0."""


class Numbers(Record):
    """How the judge did on one set, or on all sets together."""

    set: str
    """The set; `macro` for the mean over sets."""
    rows: int
    """Labelled rows."""
    weighted: bool = False
    """Whether the scored rows have unequal weights: every number but counts and masses is then weighted."""
    unscored: int
    """Rows that the judge could not decide: counted here, part of no number."""
    confusion: Confusion
    """Counts; those of macro are the sum over the sets."""
    balanced_accuracy: Estimate
    """Mean of sensitivity and specificity: 0.5 for a coin."""
    sensitivity: Estimate
    """Share of the rows labelled 1 that got a 1."""
    specificity: Estimate
    """Share of the rows labelled 0 that got a 0."""
    accuracy: Estimate
    """Share of right verdicts."""
    auroc: Estimate
    """Chance that a row labelled 1 has a larger margin than one labelled 0; ties count half."""
    kappa: Estimate
    """Cohen's kappa of verdict and label: agreement beyond chance."""
    calibration_error: Estimate
    """Expected calibration error of p_supported."""
    bins: int
    """Bins of the calibration error, of equal numbers of rows; of macro: the most that a set has."""
    brier: Estimate
    """Mean squared difference of p_supported and label."""
    mean_mass: float | None = None
    """Mean of `mass`: low when the prompt does not fit the model."""


class Measured(Record):
    """The numbers of every set and their mean."""

    sets: tuple[Numbers, ...]
    """In the order of their names."""
    macro: Numbers
    """Plain means over the sets."""


def measure(judged: Iterable[Judged], *, seed: int = 0, draws: int = DRAWS, bins: int = BINS) -> Measured:
    """The numbers of judged rows, set by set and over the sets.

    Intervals are at 95 %:
    sensitivity, specificity, accuracy: Wilson (1927);
    balanced accuracy, kappa, macro numbers: square-and-add of the parts' intervals (Newcombe 1998,
    "Interval estimation for the difference between independent proportions", method 10; Zou and Donner
    2008, "Construction of confidence limits about effect measures: a general approach", eq. 5 and 6);
    AUROC, Brier: percentile bootstrap, resampling each label of a set apart (Efron and Tibshirani 1993,
    ch. 13); an AUROC of 0 or 1, whose resamples are all alike: Newcombe 2006, part 2, method 5;
    calibration error: basic bootstrap, because it is biased upwards in resamples as it is in samples.
    Shares of rows with unequal weights: Wilson's interval with Kish's effective number of rows, the squared
    sum of the weights over the sum of their squares (Kish 1965, "Survey sampling").

    Args:
        judged: the rows; unscored ones are counted only.
        seed: of the bootstrap. A set's numbers depend on the seed, its name and its rows alone.
        draws: resamples.
        bins: of the calibration error, at most.
    """
    groups: dict[str, list[Judged]] = {}
    for row in judged:
        groups.setdefault(row.set, []).append(row)
    found = [_measure_set(name, groups[name], seed, draws, bins) for name in sorted(groups)]
    return Measured(
        sets=tuple(numbers for numbers, _ in found), macro=_macro(found, sum(map(len, groups.values())))
    )


def auroc(scores: Sequence[float], labels: Sequence[int]) -> float | None:
    """P(score of a 1 > score of a 0) + P(equal) / 2, by ranks (Hanley and McNeil 1982).

    Both have shape (n,); None when one label is missing.
    """
    from scipy.stats import rankdata

    ones = sum(labels)
    zeros = len(labels) - ones
    if not ones or not zeros:
        return None
    ranks = rankdata(scores)
    total = float(sum(rank for rank, label in zip(ranks, labels, strict=True) if label))
    return (total - ones * (ones + 1) / 2) / (ones * zeros)


def estimate_auroc(
    scores: Sequence[float], labels: Sequence[int], *, name: str = "", seed: int = 0, draws: int = DRAWS
) -> Estimate:
    """The AUROC of any scores, with the interval that `measure` gives."""
    value = auroc(scores, labels)
    if value is None:
        return _one_label(labels)
    return _estimate_auroc(_Rows.of(scores, labels), value, name, seed, draws)


def estimate_gain(
    before: Sequence[Judged], after: Sequence[Judged], *, seed: int = 0, draws: int = DRAWS
) -> Estimate:
    """What the macro AUROC gains from one way of scoring the same rows to another.

    The interval is a percentile bootstrap over pairs: both scores of a row are drawn together.

    Args:
        before: rows, scored.
        after: the same rows in the same order.
        seed: of the bootstrap.
        draws: resamples.
    """
    import numpy as np

    pairs: dict[str, list[tuple[Judged, Judged]]] = {}
    for old, new in zip(before, after, strict=True):
        assert old.id == new.id
        pairs.setdefault(old.set, []).append((old, new))
    values, found = [], []
    for name in sorted(pairs):
        labels = [old.label for old, _ in pairs[name]]
        scores = [[row.score for row in column] for column in zip(*pairs[name], strict=True)]
        first, second = (auroc(column, labels) for column in scores)
        if first is None or second is None:
            continue
        values.append(second - first)
        old_rows, new_rows = (_Rows.of(column, labels) for column in scores)
        found.append(
            np.concatenate(
                [
                    _weighted_auroc(new_rows, counts) - _weighted_auroc(old_rows, counts)
                    for counts in old_rows.resamples(name, seed, draws)
                ]
            )
        )
    if not values:
        return Estimate(value=None, reason="no set has scored rows of both labels", sets=0)
    low, high = _percentiles(np.mean(found, axis=0))
    return Estimate(value=math.fsum(values) / len(values), low=low, high=high, sets=len(values))


@dataclass(frozen=True)
class _Rows:
    """Scored rows as arrays of shape (n,)."""

    labels: Bools
    scores: Floats
    weights: Floats

    @classmethod
    def of(
        cls, scores: Sequence[float], labels: Sequence[int], weights: Sequence[float] | None = None
    ) -> _Rows:
        import numpy as np

        return cls(
            labels=np.array(labels, dtype=bool),
            scores=np.array(scores, dtype=np.float64),
            weights=np.ones(len(labels)) if weights is None else np.array(weights, dtype=np.float64),
        )

    @property
    def weighted(self) -> bool:
        return bool((self.weights != self.weights[0]).any())

    def resamples(self, name: str, seed: int, draws: int) -> Iterator[Floats]:
        """How often each row is drawn, times its weight, in blocks of shape (draws, n); as many of each label
        as there are.
        """
        import numpy as np

        random = np.random.default_rng([seed, zlib.crc32(name.encode("utf-8", "backslashreplace"))])
        block = max(1, _CELLS // len(self.labels))
        for first in range(0, draws, block):
            size = min(block, draws - first)
            counts = np.zeros((size, len(self.labels)))
            for mask in (self.labels, ~self.labels):
                n = int(mask.sum())
                if n:
                    counts[:, mask] = random.multinomial(n, np.full(n, 1 / n), size=size)
            yield counts * self.weights


def _measure_set(
    name: str, rows: Sequence[Judged], seed: int, draws: int, bins: int
) -> tuple[Numbers, Floats | None]:
    """The numbers of a set, and the resampled calibration errors (None: no scored row)."""
    scored = [row for row in rows if row.value is not None]
    counts = {(label, value): 0 for label in (0, 1) for value in (0, 1)}
    for row in scored:
        counts[row.label, row.value or 0] += 1
    confusion = Confusion(
        true_positives=counts[1, 1],
        false_negatives=counts[1, 0],
        false_positives=counts[0, 1],
        true_negatives=counts[0, 0],
    )
    labels = [row.label for row in scored]
    weights = [row.weight for row in scored]
    right = [(row.value == row.label, row.weight) for row in scored]
    ones, zeros = (
        [pair for pair, label in zip(right, labels, strict=True) if label == own] for own in (1, 0)
    )
    sensitivity = _weighted_share(ones, "no scored row is labelled 1")
    specificity = _weighted_share(zeros, "no scored row is labelled 0")
    discrimination = calibration_error = brier = balanced = kappa = _one_label(labels)
    errors = None
    used = max(1, min(bins, len(scored) // 10))
    if scored:
        arrays = _Rows.of([row.score for row in scored], labels, weights)
        probabilities = [row.probability for row in scored]
        calibration_error, brier, errors = _calibration(arrays, probabilities, used, name, seed, draws)
        if 0 < sum(labels) < len(labels):
            prevalence = math.fsum(weight for _, weight in ones) / math.fsum(weights)
            balanced = _square_and_add(lambda s: (s[0] + s[1]) / 2, [sensitivity, specificity])
            kappa = _square_and_add(lambda s: _kappa(s[0], s[1], prevalence), [sensitivity, specificity])
            assert kappa.low is not None
            assert kappa.high is not None
            # Not linear in its parts, so their distances can add up to a little too much.
            kappa = kappa.model_copy(update={"low": max(-1.0, kappa.low), "high": min(1.0, kappa.high)})
            value = auroc([row.score for row in scored], labels)
            if arrays.weighted:
                value = float(_weighted_auroc(arrays, arrays.weights[None, :])[0])
            assert value is not None
            discrimination = _estimate_auroc(arrays, value, name, seed, draws)
    masses = [row.mass for row in scored if row.mass is not None]
    numbers = Numbers(
        set=name,
        rows=len(rows),
        weighted=len(set(weights)) > 1,
        unscored=len(rows) - len(scored),
        confusion=confusion,
        balanced_accuracy=balanced,
        sensitivity=sensitivity,
        specificity=specificity,
        accuracy=_weighted_share(right, "no row is scored"),
        auroc=discrimination,
        kappa=kappa,
        calibration_error=calibration_error,
        bins=used,
        brier=brier,
        mean_mass=math.fsum(masses) / len(masses) if masses else None,
    )
    return numbers, errors


def _one_label(labels: Sequence[int]) -> Estimate:
    if not labels:
        return Estimate(value=None, reason="no row is scored")
    return Estimate(value=None, reason=f"every scored row is labelled {labels[0]}")


def estimate_share(part: int, whole: int, reason: str) -> Estimate:
    """A proportion with the Wilson score interval."""
    if not whole:
        return Estimate(value=None, reason=reason)
    from scipy.stats import binomtest

    interval = binomtest(part, whole).proportion_ci(_LEVEL, method="wilson")
    return Estimate(value=part / whole, low=float(interval.low), high=float(interval.high))


def _weighted_share(parts: Sequence[tuple[bool, float]], reason: str) -> Estimate:
    """The share of what is true among parts with their weights."""
    weights = [weight for _, weight in parts]
    if len(set(weights)) < 2:
        return estimate_share(sum(true for true, _ in parts), len(parts), reason)
    total = math.fsum(weights)
    share = math.fsum(weight for true, weight in parts if true) / total
    low, high = wilson(share, total**2 / math.fsum(weight**2 for weight in weights), normal())
    return Estimate(value=share, low=low, high=high)


def _kappa(sensitivity: float, specificity: float, prevalence: float) -> float:
    """Cohen 1960: (agreement - chance) / (1 - chance), from shares; `prevalence` is that of label 1."""
    agreement = prevalence * sensitivity + (1 - prevalence) * specificity
    said = prevalence * sensitivity + (1 - prevalence) * (1 - specificity)
    chance = prevalence * said + (1 - prevalence) * (1 - said)
    return (agreement - chance) / (1 - chance)


def _square_and_add(
    function: Callable[[Sequence[float]], float], parts: Sequence[Estimate], **others: Any
) -> Estimate:
    """The interval of a function of independent parts: each part's share of the width, squared and added.

    The function rises with every part, as balanced accuracy, kappa and means do.
    """
    values = [part.value for part in parts if part.value is not None]
    assert len(values) == len(parts)
    value = function(values)
    ends = []
    for end in ("low", "high"):
        squares = []
        for number, part in enumerate(parts):
            moved = [*values]
            moved[number] = getattr(part, end)
            squares.append((function(moved) - value) ** 2)
        ends.append(math.sqrt(math.fsum(squares)))
    return Estimate(value=value, low=value - ends[0], high=value + ends[1], **others)


def _estimate_auroc(rows: _Rows, value: float, name: str, seed: int, draws: int) -> Estimate:
    import numpy as np

    if value in (0.0, 1.0):
        ones = int(rows.labels.sum())
        low, high = _newcombe_auroc(value, ones, len(rows.labels) - ones)
        return Estimate(value=value, low=low, high=high)
    found = np.concatenate([_weighted_auroc(rows, counts) for counts in rows.resamples(name, seed, draws)])
    low, high = _percentiles(found)
    return Estimate(value=value, low=low, high=high)


def _weighted_auroc(rows: _Rows, counts: Floats) -> Floats:
    """The AUROC of each resample; `counts` has shape (draws, n), the result (draws,)."""
    import numpy as np

    order = np.argsort(rows.scores, kind="stable")
    ordered = rows.scores[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    ones = np.add.reduceat((counts * rows.labels)[:, order], starts, axis=1)
    zeros = np.add.reduceat((counts * ~rows.labels)[:, order], starts, axis=1)
    below = np.cumsum(zeros, axis=1) - zeros
    wins: Floats = (ones * (below + zeros / 2)).sum(axis=1)
    pairs: Floats = ones.sum(axis=1) * zeros.sum(axis=1)
    return wins / pairs


def _newcombe_auroc(value: float, ones: int, zeros: int) -> tuple[float, float]:
    """The interval for an AUROC of 0 or 1.

    Newcombe 2006, "Confidence intervals for an effect size measure based on the Mann-Whitney statistic.
    Part 2", method 5: solve |value - t| = z * sqrt(var(t)) with the variance of Hanley and McNeil 1982
    in which both sample sizes of the numerator are (ones + zeros) / 2.
    """
    from scipy.optimize import brentq
    from scipy.stats import norm

    z = float(norm.ppf((1 + _LEVEL) / 2))
    half = (ones + zeros) / 2 - 1

    def gap(t: float) -> float:
        spread = 1 + half * ((1 - t) / (2 - t) + t / (1 + t))
        return 1 - t - z * math.sqrt(t * (1 - t) * spread / (ones * zeros))

    low = float(brentq(gap, 1e-9, 1 - 1e-9))
    return (low, 1.0) if value == 1 else (0.0, 1 - low)


def _calibration(
    rows: _Rows, said: Sequence[float], bins: int, name: str, seed: int, draws: int
) -> tuple[Estimate, Estimate, Floats]:
    """Calibration error and Brier score, and the resampled calibration errors.

    The calibration error is the mean over rows of |share of label 1 - mean of p_supported| in the row's
    bin (Naeini et al. 2015, with bins of equal mass as in Nguyen and O'Connor 2015). Equal probabilities
    share a bin; the bins are those of the sample in all resamples.
    """
    import numpy as np

    probabilities = np.array(said, dtype=np.float64)
    order = np.argsort(probabilities, kind="stable")
    ordered = probabilities[order]
    first = np.searchsorted(ordered, ordered, side="left")
    starts = np.flatnonzero(np.r_[True, np.diff(first * bins // len(ordered)) > 0])
    gaps = (rows.labels - probabilities)[order]
    squares = (rows.labels - probabilities) ** 2

    def error(counts: Floats) -> Floats:
        found: Floats = np.abs(np.add.reduceat(counts[:, order] * gaps, starts, axis=1)).sum(axis=1)
        total: Floats = counts.sum(axis=1)
        return found / total

    value = float(error(rows.weights[None, :])[0])
    blocks = [
        (error(counts), counts @ squares / counts.sum(axis=1)) for counts in rows.resamples(name, seed, draws)
    ]
    errors = np.concatenate([block for block, _ in blocks])
    low, high = _percentiles(np.concatenate([block for _, block in blocks]))
    mean = float(np.average(squares, weights=rows.weights)) if rows.weighted else float(squares.mean())
    brier = Estimate(value=mean, low=low, high=high)
    return _basic(value, errors), brier, errors


def _percentiles(found: Floats) -> tuple[float, float]:
    import numpy as np

    low, high = np.quantile(found, [(1 - _LEVEL) / 2, (1 + _LEVEL) / 2])
    return float(low), float(high)


def _basic(value: float, found: Floats, **others: Any) -> Estimate:
    """The basic bootstrap interval of an error, which is not below 0; it is drawn out to hold the value."""
    low, high = _percentiles(found)
    return Estimate(
        value=value,
        low=min(value, max(0.0, 2 * value - high)),
        high=max(value, 2 * value - low),
        **others,
    )


def _macro(found: Sequence[tuple[Numbers, Floats | None]], rows: int) -> Numbers:
    import numpy as np

    sets = [numbers for numbers, _ in found]

    def mean(name: str) -> Estimate:
        parts = [part for numbers in sets if (part := getattr(numbers, name)).value is not None]
        if not parts:
            return Estimate(value=None, reason="no set has this number", sets=0)
        return _square_and_add(lambda values: math.fsum(values) / len(values), parts, sets=len(parts))

    errors = [error for _, error in found if error is not None]
    if errors:
        values = [n.calibration_error.value for n in sets if n.calibration_error.value is not None]
        # Its bias is that of every set, so it does not average out as errors that are independent do.
        calibration_error = _basic(math.fsum(values) / len(values), np.mean(errors, axis=0), sets=len(errors))
    else:
        calibration_error = Estimate(value=None, reason="no set has this number", sets=0)
    masses = [numbers.mean_mass for numbers in sets if numbers.mean_mass is not None]
    return Numbers(
        set="macro",
        rows=rows,
        weighted=any(numbers.weighted for numbers in sets),
        unscored=sum(numbers.unscored for numbers in sets),
        confusion=Confusion(
            **{
                name: sum(getattr(numbers.confusion, name) for numbers in sets)
                for name in Confusion.model_fields
            }
        ),
        balanced_accuracy=mean("balanced_accuracy"),
        sensitivity=mean("sensitivity"),
        specificity=mean("specificity"),
        accuracy=mean("accuracy"),
        auroc=mean("auroc"),
        kappa=mean("kappa"),
        calibration_error=calibration_error,
        bins=max((numbers.bins for numbers in sets), default=1),
        brier=mean("brier"),
        mean_mass=math.fsum(masses) / len(masses) if masses else None,
    )


# ---------------------------------------------------------------------------------------------
# The threshold


class Threshold(Record):
    """The margin above which a verdict is 1: the one in force, and the best one for these rows."""

    in_force: float
    """The judge's own."""
    best: float | None
    """The one with the highest macro balanced accuracy; None when no set has both labels."""
    low: float | None = None
    """Where its plateau begins: every margin of the plateau does as well. None: it has no end."""
    high: float | None = None
    """Where its plateau ends."""
    balanced_accuracy: float | None = None
    """The macro balanced accuracy at `best` on the rows that chose it: too good to be true."""
    cross_fitted: Estimate
    """The macro balanced accuracy when each fold is judged at the threshold that the other folds choose."""
    folds: tuple[float | None, ...] = ()
    """The thresholds that the folds were judged at."""


@dataclass(frozen=True)
class _Plateau:
    """A stretch of thresholds, from `low` up to but not including `high`, that do equally well."""

    low: float
    high: float
    value: float

    @property
    def middle(self) -> float:
        if math.isinf(self.low) and math.isinf(self.high):
            return 0.0
        if math.isinf(self.low):
            return self.high - 1
        return self.low + 1 if math.isinf(self.high) else (self.low + self.high) / 2

    @property
    def order(self) -> tuple[bool, float, float]:
        """The widest with two ends, then the one nearest to 0."""
        ends = math.isfinite(self.high - self.low)
        return (not ends, -(self.high - self.low) if ends else 0.0, abs(self.middle))


def choose_threshold(judged: Iterable[Judged], *, in_force: float = 0.0, folds: int = FOLDS) -> Threshold:
    """The margin with the highest macro balanced accuracy, and what it is worth on rows not seen.

    Of several best stretches of margins the widest is taken, and of a stretch its middle. Rows fall into
    folds by the sha256 of their `group` (their id without one), so the same rows always do, whatever
    their order. Rows of sets with one label take no part.
    """
    scored = [row for row in judged if row.value is not None]
    sets = {row.set for row in scored if row.label} & {row.set for row in scored if not row.label}
    used = [row for row in scored if row.set in sets]
    best = _best_plateau(used)
    if best is None:
        reason = Estimate(value=None, reason="no set has scored rows of both labels", sets=0)
        return Threshold(in_force=in_force, best=None, cross_fitted=reason)
    fold_of = [_fold(row, folds) for row in used]
    chosen: list[float | None] = []
    refitted: list[Judged] = []
    for fold in range(folds):
        plateau = _best_plateau([row for row, own in zip(used, fold_of, strict=True) if own != fold])
        chosen.append(plateau.middle if plateau else None)
        if plateau:
            refitted += [
                row.model_copy(update={"value": int(row.score > plateau.middle)})
                for row, own in zip(used, fold_of, strict=True)
                if own == fold
            ]
    cross_fitted = _macro_balanced(refitted)
    return Threshold(
        in_force=in_force,
        best=best.middle,
        low=best.low if math.isfinite(best.low) else None,
        high=best.high if math.isfinite(best.high) else None,
        balanced_accuracy=best.value,
        cross_fitted=cross_fitted,
        folds=tuple(chosen),
    )


def _fold(row: Judged, folds: int) -> int:
    key = row.id if row.group is None else row.group
    return int(hashlib.sha256(key.encode("utf-8", "backslashreplace")).hexdigest()[:15], 16) % folds


@dataclass
class _Counts:
    """Rows of a set by label: their weights, and margin, label and weight of each."""

    ones: Fraction = Fraction(0)
    zeros: Fraction = Fraction(0)
    margins: list[tuple[float, int, Fraction]] = field(default_factory=list)


def _best_plateau(rows: Sequence[Judged]) -> _Plateau | None:
    """The best stretch of thresholds by macro balanced accuracy; None when no set has both labels.

    Sums are of exact fractions, so that equal stretches are equal: a row is worth its weight over the
    weight of its set and label.
    """
    sets: dict[str, _Counts] = {}
    for row in rows:
        counts = sets.setdefault(row.set, _Counts())
        weight = Fraction(row.weight)
        counts.ones += weight if row.label else 0
        counts.zeros += 0 if row.label else weight
        counts.margins.append((row.score, row.label, weight))
    both = [counts for counts in sets.values() if counts.ones and counts.zeros]
    if not both:
        return None
    # At a threshold of minus infinity every row is said to be 1, but for those that are 0 at any.
    total = Fraction(0)
    steps: dict[float, Fraction] = {}
    for counts in both:
        for margin, label, weight in counts.margins:
            worth = weight / (counts.ones if label else counts.zeros)
            if margin == -math.inf:
                total += 0 if label else worth
            elif margin == math.inf:
                total += worth if label else 0
            else:
                total += worth if label else 0
                steps[margin] = steps.get(margin, Fraction(0)) + (-worth if label else worth)
    edges = sorted(steps)
    values = [total]
    for edge in edges:
        values.append(values[-1] + steps[edge])
    top = max(values)
    found = []
    bounds = [-math.inf, *edges, math.inf]
    number = 0
    while number < len(values):
        last = number
        while last + 1 < len(values) and values[last + 1] == values[number]:
            last += 1
        if values[number] == top:
            found.append(_Plateau(bounds[number], bounds[last + 1], float(top / (2 * len(both)))))
        number = last + 1
    return min(found, key=lambda plateau: plateau.order)


def _macro_balanced(rows: Sequence[Judged]) -> Estimate:
    sets = []
    for name in sorted({row.set for row in rows}):
        own = [row for row in rows if row.set == name]
        ones = [(row.value == 1, row.weight) for row in own if row.label]
        zeros = [(row.value == 0, row.weight) for row in own if not row.label]
        if ones and zeros:
            parts = [_weighted_share(ones, ""), _weighted_share(zeros, "")]
            sets.append(_square_and_add(lambda values: (values[0] + values[1]) / 2, parts))
    if not sets:
        return Estimate(value=None, reason="too few rows to hold some back", sets=0)
    return _square_and_add(lambda values: math.fsum(values) / len(values), sets, sets=len(sets))
