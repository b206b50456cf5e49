"""`anvil-local diff`: two reports of the same data, compared."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anvil_local.cli import console, options
from anvil_local.errors import ExitCode

if TYPE_CHECKING:
    from anvil_local.comparison import Change, Diff, MetricDiff, SampleDiff
    from anvil_local.records import Verdict

_SAMPLES_SHOWN = 10
_CHANGES_SHOWN = 5


class FailOn(StrEnum):
    """What makes `diff` exit with 1."""

    NEVER = "never"
    REGRESSION = "regression"


def diff(
    base: Annotated[Path, typer.Argument(help="The earlier report, written by `run -o out.json`.")],
    new: Annotated[Path, typer.Argument(help="The later report.")],
    fail_on: Annotated[
        FailOn, typer.Option(help="regression: exit with 1 if a score fell by more than chance.")
    ] = FailOn.NEVER,
    level: Annotated[
        float, typer.Option(help="Level of the one-sided test of a drop.", min=0.0001, max=0.5)
    ] = 0.05,
    seed: Annotated[int, typer.Option(help="Seed of the resampling.", min=0)] = 0,
    allow_other_judge: Annotated[
        bool,
        typer.Option("--allow-other-judge", help="Compare although judge or settings are not the same."),
    ] = False,
    json: options.Json = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show every sample that changed, not the worst ones.")
    ] = False,
) -> int:
    """Compare two reports: by how much did the scores move, which verdicts flipped, is it chance?

    Samples are paired by their id and question, statements by their words. Two reports of different
    judges are refused: a score moves when the judge does. With --fail-on regression, exits with 1 if a score
    fell by more than chance, if nothing can be compared, or if too many samples lost their score.
    """
    from anvil_local.comparison import check_regression, compare_reports
    from anvil_local.reports import load_report

    before, after = load_report(base), load_report(new)
    found = compare_reports(before, after, allow_other_judge=allow_other_judge, level=level, seed=seed)
    outcomes = (
        check_regression(found, max_unscored=after.settings.max_unscored)
        if fail_on is FailOn.REGRESSION
        else ()
    )
    failed = any(outcome.failed for outcome in outcomes) or (bool(outcomes) and "NEW" in found.incomplete)
    if json:
        document = found.model_dump(mode="json")
        document["regression"] = [outcome.model_dump() for outcome in outcomes]
        document["passed"] = not failed
        console.show_json(document)
    else:
        console.show("\n".join(_describe(found, verbose=verbose)))
        for outcome in outcomes:
            console.show(outcome.message)
        if outcomes and "NEW" in found.incomplete:
            console.show("FAIL: NEW was interrupted, so it is not known how it would have come out")
    return ExitCode.GATE_FAILED if failed else ExitCode.OK


def _describe(found: Diff, *, verbose: bool) -> Iterator[str]:
    if found.measuring:
        yield "NOT MEASURED ALIKE: a change below can be the judge's and not the data's"
        for path, (old, now) in found.measuring.items():
            yield f"  {path}: {old} -> {now}"
    else:
        yield f"judge     {found.base[:12]}, the same in both"
    for name in found.incomplete:
        yield f"warning   {name} was interrupted: what it lacks is not compared"
    if found.contradictions:
        yield (
            f"warning   {found.contradictions} questions are the same to the letter and were answered "
            "differently: a report was edited, or this machine is not deterministic (see `replay`)"
        )
    for row in found.metrics:
        yield ""
        yield from _metric(row, found.level)
    yield ""
    yield from _samples(found, verbose=verbose)
    yield from _unpaired("BASE", found.only_base)
    yield from _unpaired("NEW", found.only_new)


def _metric(row: MetricDiff, level: float) -> Iterator[str]:
    from anvil_local.paired import fewest_losses
    from anvil_local.reports import excerpt
    from anvil_local.reports.text import plural

    yield excerpt(row.metric)
    yield f"  samples     {row.pairs} in both, {row.only_base} only in BASE, {row.only_new} only in NEW"
    if row.became_unscored or row.became_scored:
        yield f"              {row.became_unscored} lost their score, {row.became_scored} gained one"
    if row.old_mean is None or row.new_mean is None or row.change is None or row.p_drop is None:
        yield "  score       none: no sample has a score in both"
        return
    yield (
        f"  score       {row.old_mean:.3f} -> {row.new_mean:.3f}, {_signed(row.change, row.low, row.high)}"
        f", {row.worse} worse, {row.better} better"
    )
    if row.old_pooled is not None and row.new_pooled is not None:
        change = _signed(row.new_pooled - row.old_pooled, row.pooled_low, row.pooled_high)
        yield f"  pooled      {row.old_pooled:.3f} -> {row.new_pooled:.3f}, {change}"
    yield f"  drop        p {row.p_drop:.4f} (one-sided sign-flip test over samples)"
    if row.visible_drop is not None:
        yield f"              a drop of {row.visible_drop:.3f} would show 80 % of the time at level {level:g}"
    elif row.scored_pairs < fewest_losses(level):
        yield f"              {plural(row.scored_pairs, 'sample')} cannot show any drop at level {level:g}"
    yield (
        f"  verdicts    {row.verdict_pairs} in both: {row.lost} lost, {row.gained} gained"
        f" (McNemar p {row.p_mcnemar:.4f})"
    )
    if row.appeared or row.disappeared:
        yield (
            f"  statements  {row.appeared} new ({row.appeared_supported} supported), "
            f"{row.disappeared} gone ({row.disappeared_supported} were supported)"
        )


def _signed(change: float, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return f"{change:+.3f}"
    return f"{change:+.3f} ({low:+.3f} to {high:+.3f})"


def _samples(found: Diff, *, verbose: bool) -> Iterator[str]:
    if not found.samples:
        yield "no sample came out differently"
        return
    shown = found.samples if verbose else found.samples[:_SAMPLES_SHOWN]
    count = f"{len(shown)} of {len(found.samples)}" if len(shown) < len(found.samples) else str(len(shown))
    yield f"samples that came out differently, largest drop first ({count})"
    for sample in shown:
        yield from _sample(sample, verbose=verbose)


def _sample(sample: SampleDiff, *, verbose: bool) -> Iterator[str]:
    from anvil_local.reports import excerpt

    changed = [
        name
        for name, is_changed in (("answer", sample.response_changed), ("context", sample.context_changed))
        if is_changed
    ]
    why = f"another {' and '.join(changed)}" if changed else "the same answer and context"
    scores = f"{_score(sample.old_score)} -> {_score(sample.new_score)}"
    yield f"  sample {excerpt(sample.sample_id, 60)}, {excerpt(sample.metric, 40)} {scores}, {why}"
    # What counts against NEW comes first: refused now, then what went, then what is better.
    order = sorted(sample.changes, key=lambda change: (_rank(change), -abs(change.distance or 0)))
    shown = order if verbose else order[:_CHANGES_SHOWN]
    for change in shown:
        yield f"    {_verdict(change.old)} -> {_verdict(change.new)}  {excerpt(change.text, 120)}"
    if len(shown) < len(order):
        yield f"    and {len(order) - len(shown)} more (-v shows all)"


def _rank(change: Change) -> int:
    if change.new is None:
        return 2
    if change.new.value == 1:
        return 3
    return 0 if change.old is not None else 1


def _score(score: float | None) -> str:
    from anvil_local.reports.text import show_score

    return "unscored" if score is None else show_score(score)


def _verdict(verdict: Verdict | None) -> str:
    if verdict is None:
        return "absent"
    if verdict.value is None:
        return f"undecided ({verdict.reason})"
    return f"{verdict.value} ({verdict.margin:+.2f})" if verdict.margin is not None else str(verdict.value)


def _unpaired(name: str, keys: tuple[str, ...]) -> Iterator[str]:
    from anvil_local.reports import excerpt

    if keys:
        listed = ", ".join(excerpt(key, 60) for key in keys[:5])
        yield f"only in {name}: {listed}" + (f" and {len(keys) - 5} more" if len(keys) > 5 else "")
