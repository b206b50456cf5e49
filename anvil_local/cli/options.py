"""Options that several commands share, and the judge they describe."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anvil_local.cli import console
from anvil_local.errors import UsageError

if TYPE_CHECKING:
    from anvil_local.assess import Options
    from anvil_local.config import Config
    from anvil_local.judge import Judge
    from anvil_local.records import Fingerprint

_JUDGE = "Judge"
_DATA = "Data"

Model = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        "-m",
        help="A model's name (see `models list`) or a .gguf file. Repeated: they vote.",
        rich_help_panel=_JUDGE,
    ),
]
Prompts = Annotated[
    str | None,
    typer.Option(
        help="Prompt profile: auto, chat, plain, smollm2, minicheck, granite-guardian.",
        rich_help_panel=_JUDGE,
    ),
]
Adapter = Annotated[
    bool | None,
    typer.Option("--adapter/--no-adapter", help="Use the model's trained adapters.", rich_help_panel=_JUDGE),
]
Window = Annotated[
    int | None, typer.Option(help="Tokens of the model's window.", min=256, rich_help_panel=_JUDGE)
]
Threads = Annotated[
    int | None, typer.Option(help="Threads (physical cores by default).", min=1, rich_help_panel=_JUDGE)
]
GpuLayers = Annotated[
    int | None, typer.Option(help="Layers kept on the GPU, -1 for all.", min=-1, rich_help_panel=_JUDGE)
]
Threshold = Annotated[
    float | None,
    typer.Option(
        help="Margin (logit of 1 minus logit of 0) above which a verdict is 1.", rich_help_panel=_JUDGE
    ),
]
ModelsDir = Annotated[
    Path | None,
    typer.Option(help="Folder of installed models (ANVIL_MODELS_DIR).", rich_help_panel=_JUDGE),
]
Cache = Annotated[
    bool | None,
    typer.Option("--cache/--no-cache", help="Keep verdicts and find them again.", rich_help_panel=_JUDGE),
]
Refresh = Annotated[
    bool,
    typer.Option("--refresh", help="Judge everything anew and replace what is kept.", rich_help_panel=_JUDGE),
]
CacheDir = Annotated[
    Path | None,
    typer.Option(help="Folder of the verdict store (ANVIL_CACHE_DIR).", rich_help_panel=_JUDGE),
]
DataFormat = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="jsonl, json, csv, parquet, arrow, datasets, openai, langgraph, llamaindex, deepeval, "
        "promptfoo, inspect, otel; known by the file where that is certain.",
        rich_help_panel=_DATA,
    ),
]
Map = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        help="Where rows keep a field, FIELD=PATH: response=answer.text, "
        "retrieved_contexts=documents[*].text. Repeatable.",
        rich_help_panel=_DATA,
    ),
]
SkipBadRows = Annotated[
    bool | None,
    typer.Option(
        "--skip-bad-rows",
        help="Leave bad rows out, count and list them; they count as unscored.",
        rich_help_panel=_DATA,
    ),
]
Output = Annotated[
    list[Path] | None,
    typer.Option(
        "--output", "-o", help="A report file: .html, .json, .xml (JUnit), .md or .sarif. Repeatable."
    ),
]
MinSampleScore = Annotated[
    float | None,
    typer.Option(
        help="JUnit: a sample that scores below it is a failed test; by default only gates fail.",
        min=0,
        max=1,
    ),
]
JudgeCard = Annotated[
    Path | None,
    typer.Option(help="A judge card of `calibrate`, for gates on the judge such as 'judge.kappa.low>=0.6'."),
]
GitHub = Annotated[
    bool,
    typer.Option(
        "--github", help="GitHub Actions: annotations on stderr, and the step's summary if there is one."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes.")]


def given(
    *,
    model: list[str] | None = None,
    prompts: str | None = None,
    adapter: bool | None = None,
    window: int | None = None,
    threads: int | None = None,
    gpu_layers: int | None = None,
    threshold: float | None = None,
    models_dir: Path | None = None,
) -> dict[str, Any]:
    """The judge's options of a command as `load_config` takes them."""
    return {
        "model": tuple(model or ()),
        "prompts": prompts,
        "adapter": adapter,
        "window": window,
        "threads": threads,
        "gpu_layers": gpu_layers,
        "threshold": threshold,
        "models_dir": str(models_dir) if models_dir else None,
    }


def judging(config: Config) -> Options:
    """How the settings say that responses are cut and traces are formatted."""
    from anvil_local.assess import Options
    from anvil_local.samples import DEFAULT_FORMATTER

    return Options(
        decomposition=config.decomposition,
        language=config.language,
        seed=config.seed,
        formatter=config.formatter or DEFAULT_FORMATTER,
        shape=config.shape,
        padding=config.padding,
    )


def of_judge(fingerprint: Fingerprint) -> dict[str, Any]:
    """The options that build the judge of a fingerprint, for `load_config`.

    Raises:
        UsageError: the fingerprint is not of a judge that these options can build.
    """
    judges = [vote["parts"] for vote in fingerprint.parts.get("vote", ())] or [fingerprint.parts]
    try:
        first = judges[0]
        return {
            "model": tuple(judge["model"]["name"] for judge in judges),
            "prompts": first["options"]["profile"] if len(judges) == 1 else None,
            "adapter": first["options"]["adapter"],
            "threshold": first["options"]["threshold"],
            "window": first["decode"]["window"],
            "gpu_layers": first["decode"]["gpu_layers"],
        }
    except (KeyError, TypeError) as error:
        raise UsageError(
            "this report was not judged by a GGUF model",
            value=fingerprint.short,
            hint="only a report that `anvil-local run` wrote can be judged again",
        ) from error


def load(*, cache_dir: Path | None = None, **given: Any) -> Config:
    """The settings in force, for commands that need few of them."""
    from anvil_local.config import load_config

    return load_config(cache_dir=str(cache_dir) if cache_dir else None, **given)


def store_path(config: Config) -> Path:
    """The file of the verdict store."""
    from anvil_local.cache import STORE_NAME, default_folder

    return (Path(config.cache_dir).expanduser() if config.cache_dir else default_folder()) / STORE_NAME


def build_judge(config: Config, *, refresh: bool = False) -> Judge:
    """The judge that the settings describe. Reads and checks the model files, does not load them."""
    from anvil_local.cache import CachedJudge, Store
    from anvil_local.judge import GgufJudge
    from anvil_local.models import resolve_model
    from anvil_local.voting import VotingJudge

    judges: list[Judge] = [
        GgufJudge(
            resolve_model(model, folder=config.models_dir),
            prompts=config.prompts,
            use_adapters=config.adapter,
            window=config.window,
            threads=config.threads,
            gpu_layers=config.gpu_layers,
            threshold=config.threshold,
        )
        for model in config.model or (None,)
    ]
    judge = judges[0] if len(judges) == 1 else VotingJudge(judges)
    if not config.cache:
        return judge
    return CachedJudge(judge, Store(store_path(config), say=console.say), refresh=refresh)


def for_workers(config: Config) -> Config:
    """The settings of a worker's judge, which may be built on another machine: no store, full paths."""
    return config.model_copy(
        update={
            "cache": False,
            "model": tuple(
                str(Path(model).expanduser().absolute())
                if os.sep in model or model.endswith(".gguf")
                else model
                for model in config.model
            ),
            "models_dir": str(Path(config.models_dir).expanduser().absolute()) if config.models_dir else None,
        }
    )


def build_worker(config: Config, threads: int) -> Judge:
    """The judge of a worker with so many threads, unless the settings name a number."""
    return build_judge(config.model_copy(update={"threads": config.threads or threads}))
