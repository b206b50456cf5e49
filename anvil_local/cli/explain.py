"""`anvil-local explain`: why a statement of a report got its verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anvil_local.cli import console, options
from anvil_local.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from anvil_local.explanation import ContextSentence, Explanation
    from anvil_local.records import JudgedStatement, Report, SampleResult, Verdict

_SHOWN = 6


def explain(
    report: Annotated[Path, typer.Argument(help="A report that `run -o out.json` wrote.")],
    statement: Annotated[
        str, typer.Argument(help="A part of the statement's text; with --sample also its number, from 1.")
    ],
    sample: Annotated[str | None, typer.Option(help="The id of the statement's sample.")] = None,
    model: options.Model = None,
    prompts: options.Prompts = None,
    adapter: options.Adapter = None,
    window: options.Window = None,
    threads: options.Threads = None,
    gpu_layers: options.GpuLayers = None,
    threshold: options.Threshold = None,
    models_dir: options.ModelsDir = None,
    cache: options.Cache = None,
    cache_dir: options.CacheDir = None,
    json: options.Json = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show every sentence, not those that matter most.")
    ] = False,
) -> int:
    """Find the sentences of the context that a verdict hangs on.

    Each sentence is left out, and the statement is judged again: what flips or weakens the verdict is
    what the judge went by. The judge is the one of the report; options change it.
    """
    from anvil_local.assess import join_contexts
    from anvil_local.explanation import explain_statement
    from anvil_local.reports import load_report

    found = load_report(report)
    result, item = find_statement(found, statement, sample=sample)
    given = options.given(
        model=model,
        prompts=prompts,
        adapter=adapter,
        window=window,
        threads=threads,
        gpu_layers=gpu_layers,
        threshold=threshold,
        models_dir=models_dir,
    )
    chosen = {key: value for key, value in given.items() if value not in (None, ())}
    config = options.load(**(options.of_judge(found.judge) | chosen), cache=cache, cache_dir=cache_dir)
    with closing(options.build_judge(config)) as judge:
        explanation = explain_statement(
            item.statement.text,
            join_contexts(result.sample),
            judge,
            language=found.settings.language,
        )
        same_judge = judge.fingerprint.digest == found.judge.digest
    if json:
        document = explanation.model_dump(mode="json")
        document |= {
            "sample_id": result.sample_id,
            "reported": item.verdict.model_dump(mode="json"),
            "shape": item.shape,
            "same_judge": same_judge,
        }
        console.show_json(document)
    else:
        console.show("\n".join(_describe(explanation, result, item, same_judge, verbose=verbose)))
    return ExitCode.OK


def find_statement(
    report: Report, wanted: str, *, sample: str | None
) -> tuple[SampleResult, JudgedStatement]:
    """The one statement of a report that is meant.

    Raises:
        UsageError: none, or several.
    """
    results = [result for result in report.results if result.statements]
    if sample is not None:
        results = [result for result in results if result.sample_id == sample]
        if not results:
            raise UsageError(
                "the report has no sample with this id whose statements were judged", value=sample
            )
    everything = [(result, item) for result in results for item in result.statements]
    if sample is not None and wanted.isdecimal() and 1 <= int(wanted) <= len(everything):
        return everything[int(wanted) - 1]
    key = " ".join(wanted.split()).casefold()
    matching = [pair for pair in everything if key in pair[1].statement.text.casefold()]
    # The whole text of one may be a part of another.
    whole = [pair for pair in matching if key == pair[1].statement.text.casefold()]
    found = whole or matching
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError("no judged statement has this text", value=wanted, hint=_some(everything))
    raise UsageError(f"{len(found)} statements have this text", value=wanted, hint=_some(found))


def _some(pairs: Sequence[tuple[SampleResult, JudgedStatement]]) -> str:
    from anvil_local.reports import excerpt

    shown = [
        f"--sample {excerpt(result.sample_id, 40)}: {excerpt(item.statement.text, 80)}"
        for result, item in pairs[:5]
    ]
    more = [f"and {len(pairs) - 5} more"] if len(pairs) > 5 else []
    return "there are\n  " + "\n  ".join([*shown, *more]) if shown else "the report has no judged statement"


def _describe(
    found: Explanation, result: SampleResult, item: JudgedStatement, same_judge: bool, *, verbose: bool
) -> Iterator[str]:
    from anvil_local.reports import excerpt
    from anvil_local.reports.text import plural

    verdict = found.verdict
    yield f"sample     {excerpt(result.sample_id, 60)}"
    yield f"statement  {excerpt(found.statement, None)}"
    yield f"verdict    {_value(verdict)}{_against(item.verdict, verdict, same_judge)}"
    if item.shape:
        yield f"shape      {str(item.shape).replace('_', ' ')}"
    if verdict.windows > 1:
        yield f"context    window {(verdict.window or 0) + 1} of {verdict.windows} decided"
    yield f"asked      {plural(found.questions, 'question')}"
    yield ""
    yield "sentence  without  alone    words"
    ranked = sorted(found.sentences, key=lambda sentence: _rank(found, sentence))
    shown = ranked if verbose else ranked[:_SHOWN]
    for sentence in shown:
        cells = f"{_short(sentence.without):<8} {_short(sentence.alone):<8} {sentence.overlap:>4.0%}"
        yield f"{sentence.number:>8}  {cells}  {excerpt(sentence.text, None if verbose else 120)}"
    if len(shown) < len(ranked):
        yield f"          and {len(ranked) - len(shown)} more (-v shows all)"
    yield ""
    yield from _conclusion(found)


def _conclusion(found: Explanation) -> Iterator[str]:
    supported = found.verdict.value == 1
    if found.flips_without:
        names = _names(found.flips_without)
        yield f"without {names} it is {'refused' if supported else 'supported'}"
    elif found.strongest is not None:
        word = "weakens" if supported else "softens"
        yield f"no few sentences flip it; leaving out sentence {found.strongest} {word} it most"
    else:
        yield "no sentence of the context weighs for this verdict: leaving out any makes it only surer"
    if supported:
        enough = [s.number for s in found.sentences if s.alone is not None and s.alone.value == 1]
        if enough:
            yield f"enough alone: {_names(enough)}"
    elif found.nearest is not None:
        yield f"nearest: sentence {found.nearest}"
    if found.foreign:
        yield f"words that the context does not have: {', '.join(found.foreign)}"


def _names(numbers: Sequence[int]) -> str:
    noun = "sentence" if len(numbers) == 1 else "sentences"
    return f"{noun} {', '.join(map(str, numbers))}"


def _rank(found: Explanation, sentence: ContextSentence) -> tuple[bool, float, float]:
    """What flips first, then what moves the margin most, then what is nearest."""
    moved = 0.0
    if sentence.without is not None and found.verdict.margin is not None:
        sign = 1 if found.verdict.value else -1
        after = sentence.without.margin
        moved = float("inf") if after is None else sign * (found.verdict.margin - after)
    near = found.verdict.value != 1 and sentence.number == found.nearest
    return (sentence.number not in found.flips_without and not near, -moved, -sentence.overlap)


def _value(verdict: Verdict) -> str:
    return (
        f"{verdict.value}, margin {verdict.margin:+.2f}" if verdict.margin is not None else str(verdict.value)
    )


def _against(reported: Verdict, now: Verdict, same_judge: bool) -> str:
    if reported.margin == now.margin and reported.value == now.value:
        return ", as in the report to the last bit"
    said = _value(reported) if reported.value is not None else f"undecided ({reported.reason})"
    return f"; the report says {said}{'' if same_judge else ' (another judge)'}"


def _short(verdict: Verdict | None) -> str:
    if verdict is None:
        return "-"
    return f"{verdict.value} {verdict.margin:+.2f}" if verdict.margin is not None else f"{verdict.value}"
