"""Is this judge any good? It answers probes of known answers, and gets a verdict of its own.

    fit     the lower bound of its balanced accuracy is at least 0.70, and its margins separate 1 from 0
    weak    better than a coin, but not shown to be fit
    unfit   a coin toss cannot be excluded: the lower bound is 0.50 or less

The bound is that of the 99 % Wilson interval. The probes are balanced, so the balanced accuracy is right
answers over probes, and the interval of a share applies. With the 166 probes of today that means (exact
binomial sums, which the tests repeat):

    right answers     unfit up to 99, weak from 100 (0.60), fit from 132 (0.80)
    a coin            weak with probability 0.5 %, fit with 4e-15
    truly 0.70        fit with 0.4 %
    truly 0.75        unfit with 1e-5
    truly 0.85        unfit with 2e-15, fit with 98 %

Why 0.70: a judge that is right with probability `a` on both classes reports `(2a - 1) s + (1 - a)` where
the true score is `s` (Rogan and Gladen 1978, doi:10.1093/oxfordjournals.aje.a112510). At 0.70 only 0.4
of a difference between two systems is left, and it takes 1 / 0.4^2, about six times as many statements,
to see it; below that a score says too little to steer by.

The probes come in pairs, which are not independent. A judge that knows `c` of `n` pairs and gives both
statements of the others the same answer has a variance of `n c (1 - c)`, never above the binomial
`n (1 - c^2) / 2`, so the interval errs on the careful side. The share of pairs with both right is reported.

A selfcheck looks at the `support` question alone, with texts written by one project. It tells a judge
that cannot judge from one that can; how well it does on your data only your own labels can tell.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from statistics import NormalDist
from typing import Literal

import platformdirs

from anvil_local.assess import judge_statements
from anvil_local.errors import EngineError
from anvil_local.judge import Judge
from anvil_local.probes import Probe, digest_probes, load_probes
from anvil_local.records import Fingerprint, Record, Statement
from anvil_local.reports.text import judge_name
from anvil_local.stats import wilson

__all__ = [
    "FIT_AUROC",
    "FIT_BOUND",
    "LEVEL",
    "RULES",
    "KindResult",
    "ProbeAnswer",
    "SelfcheckResult",
    "Standing",
    "auroc",
    "ensure_selfcheck",
    "find_selfcheck",
    "judge_standing",
    "name_judge",
    "name_standing",
    "remember_selfcheck",
    "run_selfcheck",
    "selfcheck_folder",
    "wilson_interval",
]

Standing = Literal["fit", "weak", "unfit"]
"""What a selfcheck says of a judge."""

RULES = "selfcheck/1"
"""The name and version of the rules in this module's docstring; a result by other rules is no result."""
LEVEL = 0.99
"""The level of the interval."""
FIT_BOUND = 0.70
"""The lower bound of the balanced accuracy that `fit` needs."""
FIT_AUROC = 0.75
"""The AUROC that `fit` needs. A judge with normal margins and an accuracy of 0.79 has 0.87, one that is
always equally sure has 0.79: below 0.75 the margins contradict the verdicts, and no threshold will hold."""


class KindResult(Record):
    """The answers to one kind of probes."""

    kind: str
    """The kind."""
    right: int
    """Right answers."""
    total: int
    """Probes."""
    balanced_accuracy: float
    """The mean of the shares of right answers among the probes that are 1 and those that are 0."""


class ProbeAnswer(Record):
    """What the judge said to one probe."""

    id: str
    """The probe."""
    kind: str
    """Its kind."""
    statement: str
    """Its statement."""
    label: Literal[0, 1]
    """What is right."""
    value: Literal[0, 1] | None
    """What the judge said; None if it could not decide, which counts as wrong."""
    margin: float | None
    """logit(1) - logit(0), in nats."""

    @property
    def right(self) -> bool:
        """Whether the judge said what is right."""
        return self.value == self.label


class SelfcheckResult(Record):
    """A judge's answers to the probes, and what they say of it."""

    rules: str = RULES
    """Name and version of the rules."""
    fingerprint: Fingerprint
    """The judge."""
    probes: str
    """sha256 of the probe file."""
    partial: bool
    """Whether some kinds were left out; such a result is not remembered."""
    created: str
    """When it began, ISO 8601, UTC."""
    seconds: float
    """How long it took, loading included."""
    verdict: Standing
    """`fit`, `weak` or `unfit`."""
    right: int
    """Right answers."""
    total: int
    """Probes."""
    unscored: int
    """Probes that the judge could not decide; they count as wrong."""
    balanced_accuracy: float
    """Over all probes."""
    low: float
    """The lower bound of the balanced accuracy, 99 % Wilson interval."""
    high: float
    """The upper bound."""
    auroc: float | None
    """How often a probe that is 1 has a larger margin than one that is 0; None without margins of both."""
    pairs: int
    """Pairs of probes."""
    pairs_right: int
    """Pairs with both answers right."""
    kinds: tuple[KindResult, ...]
    """One row a kind."""
    answers: tuple[ProbeAnswer, ...]
    """One row a probe."""

    @property
    def misses(self) -> tuple[ProbeAnswer, ...]:
        """The answers that are not right."""
        return tuple(answer for answer in self.answers if not answer.right)


def run_selfcheck(
    judge: Judge,
    *,
    kinds: Iterable[str] | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> SelfcheckResult:
    """Ask the judge every probe, on the same path as a run does.

    Args:
        judge: the judge.
        kinds: only these kinds of probes. With fewer than 16 probes nothing can be shown to be fit.
        on_progress: called with the probes answered and their number.

    Raises:
        UsageError: an unknown kind.
        EngineError: not one probe could be decided.
    """
    probes = load_probes(kinds)
    created, started = datetime.now(UTC), time.monotonic()
    answers: list[ProbeAnswer] = []
    # Neighbours share their context, and so its prefill.
    for (context, language), group in groupby(probes, key=lambda probe: (probe.context, probe.language)):
        answers += _answer(list(group), context, judge, language[:2])
        if on_progress:
            on_progress(len(answers), len(probes))
    if all(answer.value is None for answer in answers):
        raise EngineError(
            "the judge could not decide a single probe",
            hint="try one statement: anvil-local judge -c 'It rained.' 'It rained.'; or a larger --window",
        )
    return _sum_up(
        answers,
        fingerprint=judge.fingerprint,
        partial=len(probes) < len(load_probes()),
        created=created,
        seconds=time.monotonic() - started,
    )


def _answer(probes: Sequence[Probe], context: str, judge: Judge, language: str) -> list[ProbeAnswer]:
    statements = [
        Statement(text=probe.statement, start=0, end=len(probe.statement), sentence=0) for probe in probes
    ]
    judged = judge_statements(statements, context, judge, language=language)
    return [
        ProbeAnswer(
            id=probe.id,
            kind=probe.kind,
            statement=probe.statement,
            label=probe.label,
            value=item.verdict.value,
            margin=item.verdict.margin,
        )
        for probe, item in zip(probes, judged, strict=True)
    ]


def _sum_up(
    answers: Sequence[ProbeAnswer],
    *,
    fingerprint: Fingerprint,
    partial: bool,
    created: datetime,
    seconds: float,
) -> SelfcheckResult:
    right = sum(answer.right for answer in answers)
    low, high = wilson_interval(right, len(answers))
    area = auroc([(a.label, a.margin) for a in answers if a.margin is not None])
    pairs: dict[str, bool] = {}
    for answer in answers:
        pairs[answer.id[:-1]] = pairs.get(answer.id[:-1], True) and answer.right
    rows = []
    for kind in dict.fromkeys(answer.kind for answer in answers):
        of_kind = [answer for answer in answers if answer.kind == kind]
        rows.append(
            KindResult(
                kind=kind,
                right=sum(answer.right for answer in of_kind),
                total=len(of_kind),
                balanced_accuracy=_balanced_accuracy(of_kind),
            )
        )
    return SelfcheckResult(
        fingerprint=fingerprint,
        probes=digest_probes(),
        partial=partial,
        created=created.isoformat(timespec="seconds"),
        seconds=round(seconds, 3),
        verdict=name_standing(low, area),
        right=right,
        total=len(answers),
        unscored=sum(answer.value is None for answer in answers),
        balanced_accuracy=_balanced_accuracy(answers),
        low=low,
        high=high,
        auroc=area,
        pairs=len(pairs),
        pairs_right=sum(pairs.values()),
        kinds=tuple(rows),
        answers=tuple(answers),
    )


# The arithmetic


def name_standing(low: float, area: float | None) -> Standing:
    """The verdict on a judge.

    Args:
        low: the lower bound of its balanced accuracy.
        area: its AUROC; None when it gives no margins, which then are not asked to separate.
    """
    if low <= 0.5:
        return "unfit"
    return "fit" if low >= FIT_BOUND and (area is None or area >= FIT_AUROC) else "weak"


def wilson_interval(right: int, total: int, level: float = LEVEL) -> tuple[float, float]:
    """The score interval of a share (Wilson 1927, doi:10.1080/01621459.1927.10502953).

    It has no width of zero at 0 and at 1, and stays within them.
    """
    if not 0 <= right <= total or total < 1:
        raise ValueError(f"no share: {right} of {total}")
    return wilson(right / total, total, NormalDist().inv_cdf((1 + level) / 2))


def auroc(margins: Sequence[tuple[int, float]]) -> float | None:
    """The share of pairs of a 1 and a 0 in which the 1 has the larger margin; a tie counts half.

    This is the area under the ROC curve (Hanley and McNeil 1982, doi:10.1148/radiology.143.1.7063747).

    Args:
        margins: label and margin of each probe.

    Returns:
        None if one of the labels is missing.
    """
    ones = [margin for label, margin in margins if label == 1]
    zeros = [margin for label, margin in margins if label == 0]
    if not ones or not zeros:
        return None
    halves = sum((one > zero) + (one >= zero) for one in ones for zero in zeros)
    return halves / (2 * len(ones) * len(zeros))


def _balanced_accuracy(answers: Sequence[ProbeAnswer]) -> float:
    shares = []
    for label in (0, 1):
        of_label = [answer.right for answer in answers if answer.label == label]
        shares.append(sum(of_label) / len(of_label))
    return sum(shares) / 2


# What is remembered


def selfcheck_folder() -> Path:
    """Where results are remembered, one file a judge."""
    return platformdirs.user_cache_path("anvil-local") / "selfcheck"


def find_selfcheck(fingerprint: Fingerprint) -> SelfcheckResult | None:
    """The remembered result of this judge: of these very probes, by these very rules.

    A file that cannot be read is no result.
    """
    try:
        text = _path(fingerprint).read_text(encoding="utf-8")
        result = SelfcheckResult.model_validate_json(text)
    except (OSError, ValueError):
        return None
    same = (result.fingerprint.digest, result.probes, result.rules)
    wanted = (fingerprint.digest, digest_probes(), RULES)
    return result if same == wanted and not result.partial else None


def remember_selfcheck(result: SelfcheckResult) -> Path | None:
    """Write a result for later runs, as a whole file or not at all.

    A result of some kinds only, or with probes that could not be decided, is not remembered: the next run
    may do better. Nor is one that cannot be written; it is only asked again then.

    Returns:
        The file; None if nothing was written.
    """
    if result.partial or result.unscored:
        return None
    path = _path(result.fingerprint)
    temporary = path.with_name(f".{path.name}-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            temporary.write_text(result.model_dump_json(), encoding="utf-8")
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError:
        return None
    return path


def _path(fingerprint: Fingerprint) -> Path:
    digest = fingerprint.digest
    if not (digest.isascii() and digest.isalnum() and len(digest) <= 128):
        # Somebody else's judge may call its digest as it likes.
        digest = hashlib.sha256(digest.encode("utf-8", "surrogatepass")).hexdigest()
    return selfcheck_folder() / f"{digest}.json"


# For a run


def ensure_selfcheck(
    judge: Judge,
    say: Callable[[str], None],
    *,
    on_progress: Callable[[int, int], None] | None = None,
) -> SelfcheckResult:
    """The remembered result of this judge, or a new one, which is remembered.

    Args:
        judge: the judge.
        say: takes one line for people before the probes are asked; not called for a remembered result.
        on_progress: see `run_selfcheck`.

    Raises:
        EngineError: not one probe could be decided.
    """
    found = find_selfcheck(judge.fingerprint)
    if found is not None:
        return found
    say(f"selfcheck: asking the judge {len(load_probes())} probes, once for this judge")
    result = run_selfcheck(judge, on_progress=on_progress)
    remember_selfcheck(result)
    return result


def judge_standing(fingerprint: Fingerprint, *, models_dir: str | Path | None = None) -> str | None:
    """What to warn of before this judge is believed: not measured at all, or measured and unfit.

    Args:
        fingerprint: the judge.
        models_dir: the folder of installed models, whose cards are looked through.

    Returns:
        None when it has a card for the `support` question, or a selfcheck result that is `fit` or `weak`.
    """
    name = name_judge(fingerprint)
    result = find_selfcheck(fingerprint)
    if result is not None:
        if result.verdict != "unfit":
            return None
        return (
            f"the selfcheck found this judge ({name}) unfit: {result.right} of {result.total} probes right, "
            "so a coin toss cannot be excluded"
        )
    from anvil_local.cards import find_card  # brings numpy

    if find_card(fingerprint, task="support", folder=models_dir) is not None:
        return None
    return (
        f"nothing is known of this judge ({name}): it has neither a judge card nor a selfcheck result; "
        "`anvil-local selfcheck` with the same options takes about half a minute with a small model"
    )


def name_judge(fingerprint: Fingerprint) -> str:
    """A judge in a few words, safe for a terminal: its model and the first digits of its fingerprint."""
    votes = fingerprint.parts.get("vote")
    name = f"a vote of {len(votes)}" if isinstance(votes, list) else judge_name(fingerprint.parts)
    return f"{name}, {fingerprint.short}"
