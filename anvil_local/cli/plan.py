"""`anvil-local plan`: what a threshold means for a number of statements."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anvil_local.cli import console, options
from anvil_local.errors import InputError, UsageError

if TYPE_CHECKING:
    from anvil_local.planning import Plan, Row

_BAR = 24

_FLIP_RATE = 0.05
"""Where nothing was measured."""


def plan(
    threshold: Annotated[str, typer.Argument(help="What the gate asks for, as >=: 0.8 or 80%.")],
    statements: Annotated[int, typer.Option("--statements", "-n", help="Statements expected in a run.")] = 20,
    true_rate: Annotated[
        float | None,
        typer.Option(help="Truly supported share of a build that should pass (midway from threshold to 1)."),
    ] = None,
    bad_rate: Annotated[
        float | None,
        typer.Option(help="That of a build that should fail (as far below the threshold)."),
    ] = None,
    flip_rate: Annotated[
        float | None,
        typer.Option(help="Chance that a verdict is the wrong one, for either label (0.05)."),
    ] = None,
    stability: Annotated[
        Path | None,
        typer.Option(help="Take the flip rate from what `stability -o FILE` wrote."),
    ] = None,
    correlation: Annotated[
        float, typer.Option(help="Correlation of two verdicts of one sample: errors come together.")
    ] = 0.2,
    per_sample: Annotated[int, typer.Option(help="Statements of a sample.")] = 3,
    flake_rate: Annotated[
        float, typer.Option(help="Wanted chance of a false fail and of a false pass, at most.")
    ] = 0.01,
    json: options.Json = False,
) -> None:
    """Say what a threshold means: quorum, chance of a false fail and a false pass, how many statements.

    For a gate on the pooled share, or on the mean when samples have equally many statements.
    """
    import json as json_module

    if flip_rate is not None and stability is not None:
        raise UsageError("--flip-rate and --stability are two flip rates", hint="give one of them")
    if stability is not None:
        flip_rate = measured_flip_rate(stability)
    from anvil_local.gates import parse_gate
    from anvil_local.planning import make_plan

    # The same reading of numbers as in a rule, with its errors.
    exact = parse_gate(f"faithfulness.pooled >= {threshold}").threshold
    found = make_plan(
        exact,
        statements=statements,
        true_rate=(1 + float(exact)) / 2 if true_rate is None else true_rate,
        bad_rate=bad_rate,
        flip_rate=_FLIP_RATE if flip_rate is None else flip_rate,
        correlation=correlation,
        per_sample=per_sample,
        wanted=flake_rate,
    )
    if json:
        console.show(json_module.dumps(found.model_dump(mode="json"), allow_nan=False, indent=2) + "\n")
    else:
        console.show("\n".join(lines(found)) + "\n")


def measured_flip_rate(path: Path) -> float:
    """The flip rate of a stability report: how often a change that should not matter turned a verdict over.

    Raises:
        InputError: the file is no such report, or it has no flip rate.
    """
    from pydantic import ValidationError

    from anvil_local.stability import Stability

    hint = "`anvil-local stability DATA -o stability.json` writes one"
    try:
        found = Stability.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path), hint=hint) from error
    except ValidationError as error:
        raise InputError("this is not a stability report", where=str(path), hint=hint) from error
    if found.flip_rate is None:
        raise InputError(
            "this stability report has no flip rate",
            where=str(path),
            field="flip_rate",
            hint="it needs one of the axes wording, context and formatter",
        )
    return found.flip_rate


def lines(plan: Plan) -> Iterator[str]:
    """The plan in lines of at most 80 columns."""
    from anvil_local.reports.text import plural

    here = plan.here
    yield (
        f"threshold  >= {plan.threshold:g} of {here.statements} statements "
        f"is {here.quorum} of {here.statements}"
    )
    yield f"good build {plan.true_rate:.3f} supported, {plan.observed_rate:.3f} observed"
    yield f"bad build  {plan.bad_rate:.3f} supported, {plan.observed_bad_rate:.3f} observed"
    yield f"judge      flips {plan.flip_rate:.3f} of its verdicts"
    yield (
        f"samples    {plural(plan.per_sample, 'statement')} each, correlation {plan.correlation:g}: "
        f"design effect {plan.design_effect:.2f}"
    )
    yield ""
    yield f"false fail {_chance(here.false_fail)}   the good build fails"
    yield f"false pass {_chance(here.false_pass)}   the bad build passes"
    if plan.needed is None or plan.needed_samples is None:
        yield f"for at most {plan.wanted:g} of each: {plan.reason}"
    else:
        yield (
            f"for at most {plan.wanted:g} of each: {plural(plan.needed, 'statement')} and more "
            f"({plural(plan.needed_samples, 'sample')})"
        )
    yield ""
    yield f"{'statements':>10}  {'quorum':>6}  {'false fail':>10}  {'false pass':>10}"
    for row in plan.chart:
        yield _bar(row).rstrip()


def _bar(row: Row) -> str:
    # Half of the bar is a coin: f for false fails, p for false passes.
    bar = "f" * round(row.false_fail * _BAR) + "p" * round(row.false_pass * _BAR)
    return (
        f"{row.statements:>10}  {row.quorum:>6}  {_chance(row.false_fail):>10}  "
        f"{_chance(row.false_pass):>10}  {bar}"
    )


def _chance(chance: float) -> str:
    return "<0.0001" if 0 < chance < 0.00005 else f"{chance:.4f}"
