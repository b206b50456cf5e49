"""Options that several commands share, and the judge they describe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from anvil_local.config import Config
    from anvil_local.judge import GgufJudge

_JUDGE = "Judge"

Model = Annotated[
    str | None,
    typer.Option(
        "--model", "-m", help="A model's name (see `models list`) or a .gguf file.", rich_help_panel=_JUDGE
    ),
]
Prompts = Annotated[
    str | None,
    typer.Option(help="Prompt profile: auto, chat, plain, smollm2.", rich_help_panel=_JUDGE),
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
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes.")]


def build_judge(config: Config) -> GgufJudge:
    """The judge that the settings describe. Reads and checks the model file, does not load it."""
    from anvil_local.judge import GgufJudge
    from anvil_local.models import resolve_model

    return GgufJudge(
        resolve_model(config.model, folder=config.models_dir),
        prompts=None if config.prompts == "auto" else config.prompts,
        use_adapters=config.adapter,
        window=config.window,
        threads=config.threads,
        gpu_layers=config.gpu_layers,
        threshold=config.threshold,
    )
