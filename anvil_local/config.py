"""Settings from the command line, the environment and `anvil.toml`, in this order of precedence.

The nearest `anvil.toml`, or `pyproject.toml` with a `[tool.anvil]` table, from the working directory
upwards is read. Every key and every environment variable is declared here, in one table.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from anvil_local.errors import UsageError
from anvil_local.records import Record

__all__ = ["VARIABLES", "Config", "load_config"]


class Config(Record):
    """What can be set outside the command line. None means the built-in default."""

    model: str | None = None
    """A name in the model registry, or the path of a GGUF file."""
    models_dir: str | None = None
    """The folder of installed weights."""
    prompts: str | None = None
    """The prompt profile."""
    adapter: bool = True
    """Whether the model's adapters are used."""
    window: int | None = Field(default=None, ge=256)
    """Tokens of the model's window."""
    threads: int | None = Field(default=None, ge=1)
    """Threads; the physical cores by default."""
    gpu_layers: int = Field(default=0, ge=-1)
    """Layers kept on the GPU; -1 for all."""
    threshold: float | None = None
    """The margin above which a verdict is 1."""
    metrics: tuple[str, ...] | None = None
    """The metrics to run; every one that fits a sample by default."""
    gates: tuple[str, ...] = ()
    """The gate rules."""
    max_unscored: float = Field(default=0.05, ge=0, le=1)
    """The unscored share above which a gate fails by itself."""
    decomposition: Literal["llm", "sentence"] = "llm"
    """How responses are cut into statements."""
    language: str | None = None
    """The language of the responses, ISO 639-1."""
    seed: int | None = None
    """The seed of sampled decomposition; greedy by default."""
    formatter: str | None = None
    """The trace formatter."""
    skip_bad_rows: bool = False
    """Leave bad rows out instead of refusing the file."""
    output: tuple[str, ...] = ()
    """Report files to write; the suffix is the format."""


VARIABLES: Mapping[str, str] = {
    "ANVIL_MODEL": "model",
    "ANVIL_MODELS_DIR": "models_dir",
    "ANVIL_THREADS": "threads",
    "ANVIL_WINDOW": "window",
    "ANVIL_GPU_LAYERS": "gpu_layers",
    "ANVIL_MAX_UNSCORED": "max_unscored",
}
"""The environment variables that are read, and the keys they set. `NO_COLOR` is honoured besides."""


def load_config(
    folder: Path | None = None, environment: Mapping[str, str] | None = None, **options: Any
) -> Config:
    """The settings in force.

    Args:
        folder: where to begin looking for `anvil.toml`; the working directory by default.
        environment: `os.environ` by default.
        options: values from the command line; None and () stand for "not given".

    Raises:
        UsageError: an unreadable file, an unknown key or variable, a value of the wrong kind.
    """
    environment = os.environ if environment is None else environment
    file, values = _read_file(folder or Path.cwd())
    places = dict.fromkeys(values, str(file) if file else "")
    for name in sorted(environment):
        if name in VARIABLES and environment[name] != "":
            values[VARIABLES[name]] = environment[name]
            places[VARIABLES[name]] = name
        elif name.startswith("ANVIL_") and name not in VARIABLES and name not in _NOT_OURS:
            raise UsageError("unknown environment variable", where=name, hint=_suggest(name, VARIABLES))
    for name, value in options.items():
        if value is not None and value != ():
            values[name] = value
            places[name] = f"--{name.replace('_', '-')}"
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = str(first["loc"][0])
        raise UsageError(
            f"{'.'.join(map(str, first['loc']))}: {first['msg']}", where=places.get(key), value=first["input"]
        ) from error


_NOT_OURS = frozenset({"ANVIL_BUILD", "ANVIL_WHEELS"})
"""Variables of the set-up scripts."""


def _read_file(folder: Path) -> tuple[Path | None, dict[str, Any]]:
    for parent in (folder, *folder.parents):
        for name in ("anvil.toml", "pyproject.toml"):
            path = parent / name
            if not path.is_file():
                continue
            table = _parse(path)
            if name == "pyproject.toml":
                table = table.get("tool", {}).get("anvil")
                if table is None:
                    continue
            for key in table:
                if key not in Config.model_fields:
                    raise UsageError(
                        "unknown key", where=str(path), value=key, hint=_suggest(key, Config.model_fields)
                    )
            return path, dict(table)
    return None, {}


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(path)) from error


def _suggest(name: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    return f"did you mean {close[0]!r}?" if close else "known: " + ", ".join(sorted(known))
