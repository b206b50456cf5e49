"""`anvil-local correct`: a report's rates without the judge's errors, as far as labels tell."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anvil_local.cli import console, options
from anvil_local.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from anvil_local.records import CorrectedRate, Report


def correct(
    saved: Annotated[Path, typer.Argument(help="A report that `run -o out.json` wrote.")],
    judge_card: Annotated[
        Path | None,
        typer.Option(help="A card of the same judge: correct by its sensitivity and specificity."),
    ] = None,
    labelled_set: Annotated[
        str | None,
        typer.Option("--set", help="The card's set that is most like this data; the mean over the sets."),
    ] = None,
    labels: Annotated[
        Path | None, typer.Option(help="What `label` wrote for this very report: correct by these labels.")
    ] = None,
    json: options.Json = False,
) -> int:
    """Show the share of supported statements beside what it would be without the judge's errors.

    With --judge-card: Rogan-Gladen; right if the judge errs here as it does on the card's rows. With
    --labels: prediction-powered inference; rests on labels of this report. Exits with 5 if nothing is scored.
    """
    import json as json_module

    from anvil_local.reports import load_report

    if (judge_card is None) == (labels is None):
        raise UsageError("give --judge-card or --labels, one of them")
    if labelled_set is not None and judge_card is None:
        raise UsageError("--set is a set of a judge card", hint="give --judge-card")
    report = load_report(saved)
    found = _by_labels(report, labels) if labels else _by_card(report, judge_card, labelled_set)
    if json:
        console.show(
            json_module.dumps({name: rate.model_dump(mode="json") for name, rate in found.items()}, indent=2)
            + "\n"
        )
    else:
        console.show("\n".join(line for name, rate in found.items() for line in _lines(name, rate)) + "\n")
    return ExitCode.OK if found else ExitCode.NOTHING


def _by_card(report: Report, path: Path | None, labelled_set: str | None) -> dict[str, CorrectedRate]:
    from anvil_local.correction import correct_report
    from anvil_local.judge_gates import open_card

    card = open_card(path, [])
    assert card is not None
    return correct_report(report, card, labelled_set=labelled_set)


def _by_labels(report: Report, path: Path) -> dict[str, CorrectedRate]:
    from anvil_local.calibration import LabelledRow, read_labelled
    from anvil_local.correction import correct_by_labels

    rows = [row for row in read_labelled(path).rows if isinstance(row, LabelledRow)]
    rate = correct_by_labels([r for r in report.results if r.metric == "faithfulness"], rows)
    return {"faithfulness": rate} if rate else {}


def _lines(name: str, rate: CorrectedRate) -> list[str]:
    from anvil_local.reports.text import plural

    def interval(low: float | None, high: float | None) -> str:
        return "no interval" if low is None or high is None else f"[{low:.2f}, {high:.2f}]"

    raw = interval(rate.raw_interval.low, rate.raw_interval.high)
    lines = [name, f"  raw        {rate.raw:.2f}  {raw}"]
    if rate.corrected is None:
        lines.append(f"  corrected  none: {rate.interval.reason}")
    else:
        corrected = interval(rate.interval.low, rate.interval.high)
        lines.append(
            f"  corrected  {rate.corrected:.2f}  {corrected}  {rate.method}, {plural(rate.labels, 'label')}"
        )
    return lines
