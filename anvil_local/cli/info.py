"""`anvil-local info`: what is installed here, for bug reports and for people without a network."""

from __future__ import annotations

import platform
from typing import Any

from anvil_local.cli import console, options
from anvil_local.errors import AnvilError


def info(
    model: options.Model = None,
    prompts: options.Prompts = None,
    adapter: options.Adapter = None,
    window: options.Window = None,
    threshold: options.Threshold = None,
    models_dir: options.ModelsDir = None,
    json: options.Json = False,
) -> None:
    """Show versions, the llama.cpp build, folders, and the judge with its fingerprint."""
    from importlib.metadata import version

    from anvil_local._version import __version__
    from anvil_local.config import load_config
    from anvil_local.engine import build_info, physical_cores
    from anvil_local.models import models_folder

    config = load_config(
        **options.given(
            model=model,
            prompts=prompts,
            adapter=adapter,
            window=window,
            threshold=threshold,
            models_dir=models_dir,
        )
    )
    facts: dict[str, Any] = {
        "anvil_local": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "outlines": version("outlines"),
        "outlines_core": version("outlines_core"),
        "numpy": version("numpy"),
        **build_info(),
        "threads": config.threads or physical_cores(),
        "models_folder": str(models_folder(config.models_dir)),
    }
    try:
        judge = options.build_judge(config)
        facts["judge"] = judge.fingerprint.model_dump()
    except AnvilError as error:
        facts["judge"] = None
        facts["judge_error"] = str(error)
    if json:
        console.show_json(facts)
        return
    for name, value in facts.items():
        if name != "judge":
            console.show(f"{name:<18} {value}")
    if facts["judge"]:
        console.show(f"{'judge':<18} {facts['judge']['digest']}")
        for name, value in facts["judge"]["parts"].items():
            console.show(f"  {name:<16} {value}")
