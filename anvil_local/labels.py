"""Which verdicts of a report a person should check, and what the answers stand for.

    Report -> Selection (near the threshold, and at random) -> Label -> rows that `calibrate` reads

Half of the verdicts picked are those nearest to the judge's threshold, where a label teaches most; each of
them is taken for certain. The other half is drawn at random from the rest, each with the same known
chance. So every verdict of the report has a known chance to be picked, and a row that weighs as
many verdicts as it stands for (Horvitz and Thompson 1952) gives unbiased numbers for the whole report.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from anvil_local.assess import join_contexts
from anvil_local.errors import InputError, NothingToJudge, UsageError
from anvil_local.records import Record, Report

__all__ = ["Label", "Pick", "Selection", "read_labels", "render_labels", "select_verdicts"]

Stratum = Literal["near", "random"]


class Pick(Record):
    """A verdict to be checked."""

    id: str
    """`SAMPLE#NUMBER`, the number of the statement in its sample, from 1."""
    sample_id: str
    """The sample."""
    question: str | None
    """The question that was asked, if there was one."""
    context: str
    """What the statement must rest on."""
    statement: str
    """The claim."""
    stratum: Stratum
    """`near` the threshold, or from the rest at `random`."""


class Selection(Record):
    """The verdicts to be checked."""

    picks: tuple[Pick, ...]
    """In an order that depends on the seed alone, so that stopping early leaves a random part of each."""
    population: dict[Stratum, int]
    """How many verdicts of the report each part was taken from."""
    aside: int
    """Statements that no model judged (empty context, failures): there is no judge to measure by them."""


class Label(Record):
    """What a person said of one pick."""

    pick: Pick
    """What was asked."""
    label: Literal[0, 1]
    """1 the context supports it, 0 it does not."""


def select_verdicts(
    report: Report, *, count: int = 50, random_share: float = 0.5, seed: int = 0
) -> Selection:
    """Pick the verdicts of statements that a person should check.

    A larger `count` of the same report and seed picks all that a smaller one does.

    Args:
        report: the report.
        count: how many; fewer when the report has no more.
        random_share: the share drawn at random; the rest is nearest to the judge's threshold.
        seed: of the random part and of the order.

    Raises:
        NothingToJudge: the report has no statement that a model judged.
        UsageError: a share that leaves nothing for the random part.
    """
    if not 0 < random_share <= 1:
        raise UsageError(
            "the random share must be above 0 and at most 1",
            value=random_share,
            hint="without a random part the labels say nothing of the verdicts far from the threshold",
        )
    threshold = _threshold(report)
    found: list[tuple[float, str, Pick]] = []
    aside = 0
    for result in report.results:
        for number, item in enumerate(result.statements, 1):
            if item.verdict.margin is None or item.verdict.value is None:
                aside += 1
                continue
            own = f"{result.sample_id}#{number}"
            pick = Pick(
                id=own,
                sample_id=result.sample_id,
                question=result.sample.question,
                context=join_contexts(result.sample),
                statement=item.statement.text,
                stratum="random",
            )
            found.append((abs(item.verdict.margin - threshold), _draw(seed, own), pick))
    if not found:
        raise NothingToJudge(
            "nothing to label: the report has no statement that a model judged",
            hint="labels are for faithfulness; traces are labelled in a file (see `calibrate --task goal`)",
        )
    count = min(count, len(found))
    at_random = max(1, round(count * random_share))
    near = sorted(found, key=lambda item: item[:2])[: count - at_random]
    certain = {pick.id for _, _, pick in near}
    rest = sorted((draw, pick) for _, draw, pick in found if pick.id not in certain)
    drawn = rest[: count - len(near)]
    picks = [(draw, pick.model_copy(update={"stratum": "near"})) for _, draw, pick in near] + drawn
    return Selection(
        picks=tuple(pick for _, pick in sorted(picks, key=lambda item: item[0])),
        population={"near": len(near), "random": len(rest)},
        aside=aside,
    )


def _threshold(report: Report) -> float:
    """The threshold of support; a vote's margins are counted from 0."""
    thresholds = report.judge.parts.get("thresholds")
    value = thresholds.get("support") if isinstance(thresholds, Mapping) else None
    return float(value) if isinstance(value, int | float) else 0.0


def _draw(seed: int, own: str) -> str:
    """A place in the random order: of the seed and the statement alone, not of what else there is."""
    return hashlib.sha256(f"{seed}/{own}".encode("utf-8", "backslashreplace")).hexdigest()


def render_labels(labels: Sequence[Label], selection: Selection) -> str:
    """Labelled rows as JSON lines: what `calibrate` reads.

    `weight` is the number of verdicts of the report that a row stands for: those of its part over those of
    its part that are labelled. Skipped ones count as if they were like the labelled ones.
    """
    labelled = Counter(label.pick.stratum for label in labels)
    lines = []
    for label in labels:
        pick = label.pick
        row = {
            "id": pick.id,
            "context": pick.context,
            "question": pick.question,
            "statement": pick.statement,
            "label": label.label,
            "weight": selection.population[pick.stratum] / labelled[pick.stratum],
            "kind": pick.stratum,
        }
        lines.append(json.dumps(row, ensure_ascii=False, allow_nan=False))
    return "".join(f"{line}\n" for line in lines)


def read_labels(path: Path, selection: Selection) -> list[Label]:
    """The labels of an earlier sitting, in the order of the selection; none if there is no file.

    Raises:
        InputError: a file that this did not write, or whose rows are not in the selection.
    """
    if not path.exists():
        return []
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from error
    picks = {pick.id: pick for pick in selection.picks}
    found: dict[str, Label] = {}
    strangers: list[str] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        row = _row(line, f"{path}:{number}")
        pick = picks.get(row["id"])
        if pick is None or (pick.statement, pick.context) != (row["statement"], row["context"]):
            strangers.append(row["id"])
        else:
            found[pick.id] = Label(pick=pick, label=row["label"])
    if strangers:
        raise InputError(
            f"{len(strangers)} labels in this file are not of this selection",
            where=str(path),
            value=strangers[0],
            hint="give the report, -n, --random-share and --seed of the first sitting (a larger -n is fine), "
            "or another -o",
        )
    return [found[pick.id] for pick in selection.picks if pick.id in found]


def _row(line: str, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"this line is not JSON: {error}", where=where) from error
    wanted = {"id": str, "statement": str, "context": str, "label": int}
    if not isinstance(row, dict) or any(not isinstance(row.get(key), kind) for key, kind in wanted.items()):
        raise InputError(
            "this is not a row that `label` wrote", where=where, hint="give another file with -o"
        )
    if isinstance(row["label"], bool) or row["label"] not in (0, 1):
        raise InputError("`label` must be 0 or 1", where=where, field="label", value=row["label"])
    return row


def count_strata(picks: Iterable[Pick]) -> dict[Stratum, int]:
    """How many picks each part has."""
    counts = Counter(pick.stratum for pick in picks)
    return {"near": counts["near"], "random": counts["random"]}
