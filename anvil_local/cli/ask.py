"""`judge`, `decompose` and `goal`: one question at a time."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from anvil_local.cli import console, options
from anvil_local.cli.run import Decomposition
from anvil_local.errors import ExitCode, InputError, UsageError


def judge(
    statement: Annotated[
        list[str] | None,
        typer.Argument(help="Statements to judge; without any, one a line from --statements."),
    ] = None,
    context: Annotated[str | None, typer.Option("--context", "-c", help="The context, as text.")] = None,
    context_file: Annotated[
        Path | None, typer.Option("--context-file", "-f", help="The context, from a file; - reads stdin.")
    ] = None,
    statements: Annotated[
        Path | None, typer.Option("--statements", "-s", help="A file with one statement a line.")
    ] = None,
    model: options.Model = None,
    prompts: options.Prompts = None,
    adapter: options.Adapter = None,
    window: options.Window = None,
    threads: options.Threads = None,
    gpu_layers: options.GpuLayers = None,
    threshold: options.Threshold = None,
    models_dir: options.ModelsDir = None,
    json: options.Json = False,
) -> int:
    """Judge statements against one context: 1 if the context supports it, 0 if not.

    Exits with 1 if any statement is not supported, with 3 if one could not be decided.
    """
    from anvil_local.assess import judge_statements
    from anvil_local.config import load_config
    from anvil_local.records import Statement
    from anvil_local.reports import printable

    if (context is None) == (context_file is None):
        raise UsageError("give the context once", hint="use either --context TEXT or --context-file FILE")
    texts = [text for text in statement or () if text.strip()]
    if statements is not None:
        texts += [line.strip() for line in _read(statements).split("\n") if line.strip()]
    if not texts:
        raise UsageError(
            "no statement to judge", hint="anvil-local judge -c 'It rained.' 'The street was wet.'"
        )
    config = load_config(
        **options.given(
            model=model,
            prompts=prompts,
            adapter=adapter,
            window=window,
            threads=threads,
            gpu_layers=gpu_layers,
            threshold=threshold,
            models_dir=models_dir,
        )
    )
    text = context if context is not None else _read(context_file or Path("-"))
    records = [
        Statement(text=" ".join(item.split()), start=0, end=0, sentence=number)
        for number, item in enumerate(texts)
    ]
    with closing(options.build_judge(config)) as asked:
        judged = judge_statements(records, text, asked)
        fingerprint = asked.fingerprint
    if json:
        console.show_json(
            {
                "judge": fingerprint.model_dump(),
                "verdicts": [
                    {"statement": item.statement.text, **item.verdict.model_dump(mode="json")}
                    for item in judged
                ],
            }
        )
    else:
        for item in judged:
            console.show(f"{_verdict_line(item.verdict)}  {printable(item.statement.text)}")
    if any(not item.verdict.scored for item in judged):
        return ExitCode.INCOMPLETE
    return ExitCode.OK if all(item.verdict.value == 1 for item in judged) else ExitCode.GATE_FAILED


def decompose(
    response: Annotated[str, typer.Argument(help="The response; - reads stdin.")],
    question: Annotated[str | None, typer.Option("--question", help="The question it answers.")] = None,
    decomposition: Annotated[
        Decomposition, typer.Option(help="Who cuts the response: the model, or its sentences as they are.")
    ] = Decomposition.LLM,
    language: Annotated[str | None, typer.Option(help="ISO 639-1 code; detected by default.")] = None,
    seed: Annotated[int | None, typer.Option(help="Sample with this seed; greedy by default.")] = None,
    model: options.Model = None,
    prompts: options.Prompts = None,
    adapter: options.Adapter = None,
    window: options.Window = None,
    threads: options.Threads = None,
    gpu_layers: options.GpuLayers = None,
    models_dir: options.ModelsDir = None,
    json: options.Json = False,
) -> int:
    """Cut a response into standalone statements, each with its place in the response.

    Exits with 5 if the response makes no claim.
    """
    from anvil_local.config import load_config
    from anvil_local.decompose import split_statements
    from anvil_local.reports import printable

    text = _read(Path("-")) if response == "-" else response
    if not text.strip():
        raise InputError("the response is empty", field="response")
    config = load_config(
        **options.given(
            model=model,
            prompts=prompts,
            adapter=adapter,
            window=window,
            threads=threads,
            gpu_layers=gpu_layers,
            models_dir=models_dir,
        )
    )
    if decomposition is Decomposition.SENTENCE:
        found = split_statements(text, question=question, mode="sentence", language=language)
    else:
        with closing(options.build_judge(config)) as asked:
            found = split_statements(text, question=question, judge=asked, language=language, seed=seed)
    if json:
        console.show_json(found.model_dump(mode="json"))
        return ExitCode.OK
    for item in found.statements:
        console.show(f"{item.start:>5}-{item.end:<5} {printable(item.text)}")
    for lost in found.dropped:
        console.say(f"dropped ({lost.reason}): {printable(lost.text)}")
    if not found.statements:
        console.say("no statement: the response makes no claim")
        return ExitCode.NOTHING
    return ExitCode.OK


def goal(
    trace: Annotated[
        str, typer.Argument(help="A JSON file with a list of messages, or one sample; - reads stdin.")
    ],
    reference: Annotated[
        str | None,
        typer.Option("--reference", "-r", help="The desired outcome; inferred from the trace without it."),
    ] = None,
    formatter: Annotated[
        str | None, typer.Option(help="Trace formatter: anvil-trace/1, anvil-trace/2 or ragas/1.")
    ] = None,
    model: options.Model = None,
    prompts: options.Prompts = None,
    adapter: options.Adapter = None,
    window: options.Window = None,
    threads: options.Threads = None,
    gpu_layers: options.GpuLayers = None,
    threshold: options.Threshold = None,
    models_dir: options.ModelsDir = None,
    json: options.Json = False,
) -> int:
    """Judge one agent trace: did it end as desired?

    Exits with 1 if it did not, with 3 if that could not be decided.
    """
    from anvil_local.assess import Options
    from anvil_local.config import load_config
    from anvil_local.reports import printable
    from anvil_local.runner import evaluate
    from anvil_local.samples import DEFAULT_FORMATTER

    row = _read_trace(trace)
    if reference is not None:
        row["reference"] = reference
    config = load_config(
        formatter=formatter,
        **options.given(
            model=model,
            prompts=prompts,
            adapter=adapter,
            window=window,
            threads=threads,
            gpu_layers=gpu_layers,
            threshold=threshold,
            models_dir=models_dir,
        ),
    )
    how = Options(formatter=config.formatter or DEFAULT_FORMATTER)
    with closing(options.build_judge(config)) as asked:
        report = evaluate([row], judge=asked, metrics=["goal"], options=how)
    result = report.results[0]
    parts = result.goal
    assert parts is not None
    if json:
        console.show_json({"judge": report.judge.model_dump(), **result.model_dump(mode="json")})
    else:
        console.show(f"{_verdict_line(parts.reached)}  reached: {printable(parts.desired)}")
        console.show(f"{_verdict_line(parts.claimed)}  claimed, by the agent's words alone")
        console.show(f"{_verdict_line(parts.done)}  done, by the tool results alone")
        if parts.workflow:
            console.show(f"user goal  {printable(parts.workflow.user_goal)}")
            console.show(f"end state  {printable(parts.workflow.end_state)}")
    if result.score is None:
        return ExitCode.INCOMPLETE
    return ExitCode.OK if result.score == 1 else ExitCode.GATE_FAILED


def _verdict_line(verdict: Any) -> str:
    if verdict.value is None:
        return f"- ({verdict.reason})"
    if verdict.margin is None:
        return f"{verdict.value} ({verdict.reason})"
    return f"{verdict.value}  margin {verdict.margin:+.2f}"


def _read(path: Path) -> str:
    try:
        raw = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise InputError("this is not UTF-8 text", where=f"{path}, byte {error.start}") from error


def _read_trace(path: str) -> dict[str, Any]:
    from anvil_local.samples.strict_json import parse_json

    value = parse_json(_read(Path(path)).encode("utf-8"))
    if isinstance(value, list):
        return {"user_input": value}
    if isinstance(value, dict):
        return value
    raise InputError("wanted a list of messages or one sample", where=path, value=value)
