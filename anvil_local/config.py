"""Settings from the command line, the environment and `anvil.toml`, in this order of precedence.

The nearest `anvil.toml`, or `pyproject.toml` with a `[tool.anvil]` table, from the working directory
upwards is read. Every key and every environment variable is declared here, in one table.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator

from anvil_local.errors import UsageError
from anvil_local.records import Record

__all__ = ["VARIABLES", "Config", "load_config"]


class Config(Record):
    """What can be set outside the command line. None means the built-in default."""

    model: tuple[str, ...] = ()
    """Names in the model registry or paths of GGUF files; several vote. The default model without any."""
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
    judge_card: str | None = None
    """The judge card that rules about the judge are checked with."""
    judge_card_max_age: float | None = Field(default=None, ge=0)
    """The age of the judge card, in days, above which rules about the judge fail."""
    max_unscored: float = Field(default=0.05, ge=0, le=1)
    """The unscored share above which a gate fails by itself."""
    unstable_band: float = Field(default=0.4, ge=0)
    """Verdicts whose margin is nearer than this to the judge's threshold are counted as unstable, in nats."""
    stop_early: bool = False
    """Stop judging when the outcome of the gates can no longer change."""
    decomposition: Literal["llm", "sentence"] = "llm"
    """How responses are cut into statements."""
    language: str | None = None
    """The language of the responses, ISO 639-1."""
    seed: int | None = None
    """The seed of sampled decomposition; greedy by default."""
    formatter: str | None = None
    """The trace formatter."""
    shape: bool = False
    """Whether refused statements are asked for contradiction."""
    padding: bool = False
    """Whether statements are asked for what bears on the question and what is known without the context."""
    cache: bool = True
    """Whether verdicts are kept and found again."""
    cache_dir: str | None = None
    """The folder of the verdict store."""
    format: str | None = None
    """The format of the data, where the file alone does not say it."""
    map: dict[str, str] = Field(default={})
    """Where the rows keep a field: field to path, as `response = "answer.text"`."""
    skip_bad_rows: bool = False
    """Leave bad rows out instead of refusing the file."""
    output: tuple[str, ...] = ()
    """Report files to write; the suffix is the format."""

    @field_validator("language")
    @classmethod
    def _known_language(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[a-z]{2,3}(-[A-Za-z0-9]+)*", value):
            raise ValueError("a language is given by its ISO 639 code, such as en or de")
        return value

    @field_validator("model", mode="before")
    @classmethod
    def _one_model(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value


VARIABLES: Mapping[str, str] = {
    "ANVIL_MODEL": "model",
    "ANVIL_MODELS_DIR": "models_dir",
    "ANVIL_CACHE_DIR": "cache_dir",
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
        options: values from the command line; None, () and {} stand for "not given".

    Raises:
        UsageError: an unreadable file, an unknown key or variable, a value of the wrong kind.
    """
    environment = os.environ if environment is None else environment
    file, values = _read_file(folder or Path.cwd())
    places = dict.fromkeys(values, str(file))
    for name in sorted(environment):
        if name in VARIABLES and environment[name] != "":
            values[VARIABLES[name]] = environment[name]
            places[VARIABLES[name]] = name
        elif name.startswith("ANVIL_") and name not in VARIABLES and name not in _NOT_OURS:
            raise UsageError("unknown environment variable", where=name, hint=_suggest(name, VARIABLES))
    for name, value in options.items():
        if value is not None and value != () and value != {}:
            values[name] = value
            places[name] = f"--{name.replace('_', '-')}"
    return _check(values, places)


def _check(values: Mapping[str, Any], places: Mapping[str, str], *, strict: bool = False) -> Config:
    try:
        return Config.model_validate(values, strict=strict)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"{path}: {first['msg']}", where=places.get(str(first["loc"][0])), value=first["input"]
        ) from error


_NOT_OURS = frozenset({"ANVIL_BUILD", "ANVIL_PYTHON", "ANVIL_WHEELS"})
"""Variables of the set-up scripts."""


def _read_file(folder: Path) -> tuple[Path | None, dict[str, Any]]:
    folder = folder.absolute()
    for parent in (folder, *folder.parents):
        for name in ("anvil.toml", "pyproject.toml"):
            path = parent / name
            if not path.is_file():
                continue
            table: Any = _parse(path)
            if name == "pyproject.toml":
                tools = table.get("tool", {})
                table = tools.get("anvil") if isinstance(tools, dict) else None
                if table is None:
                    continue
                if not isinstance(table, dict):
                    raise UsageError("tool.anvil must be a table", where=str(path), value=table)
            for key in table:
                if key not in Config.model_fields:
                    hint = _suggest(key, Config.model_fields)
                    raise UsageError("unknown key", where=str(path), value=key, hint=hint)
            values = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
            # TOML has types, so `threads = "4"` and `adapter = 1` are mistakes; variables are all text.
            _check(values, dict.fromkeys(values, str(path)), strict=True)
            return path, values
    return None, {}


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"cannot be read: {error}", where=str(path)) from error


def _suggest(name: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(name, known, 1)
    return f"did you mean {close[0]!r}?" if close else "known: " + ", ".join(sorted(known))
