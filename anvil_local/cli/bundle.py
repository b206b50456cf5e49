"""`anvil-local bundle`: everything for a machine without a network, in one file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from anvil_local.cli import console, options
from anvil_local.errors import ExitCode


def bundle(
    output: Annotated[Path, typer.Argument(help="The tar file to write.")],
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", help="An installed model. Repeatable; the default one."),
    ] = None,
    wheels: Annotated[
        list[Path] | None,
        typer.Option(
            help="A folder of wheels to take before the index. Repeatable; the set-up's wheel cache."
        ),
    ] = None,
    package: Annotated[
        Path | None, typer.Option(help="A wheel of anvil_local, if this one does not run from a checkout.")
    ] = None,
    models_dir: options.ModelsDir = None,
) -> int:
    """Put wheels, models, checksums, licences and an install script into one file.

    It is for machines of this kind: same system, processor family and Python. Over there: tar xf OUT.tar,
    then sh anvil-bundle/install.sh.
    """
    import tempfile

    from anvil_local.bundling import bundle as write_bundle
    from anvil_local.bundling import collect_wheels
    from anvil_local.errors import AnvilError, UsageError
    from anvil_local.reports.text import plural

    if output.exists():
        raise UsageError("this file is there already", value=str(output), hint="name another, or remove it")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "anvil-local" / "wheels"
    try:
        # Beside the output and not in /tmp, which is often small and kept in memory.
        with tempfile.TemporaryDirectory(prefix=f".{output.name}.", dir=output.parent) as folder:
            console.say("bringing the wheels together")
            found = collect_wheels(Path(folder), places=wheels or [cache], source=package)
            made = write_bundle(
                output, wheels=found, models=model or (), models_dir=models_dir, say=console.say
            )
    except OSError as error:
        raise AnvilError(f"the bundle cannot be made: {error.strerror}", where=str(output)) from error
    console.show(
        f"{made.path}  {made.bytes / 1e6:.0f} MB, {plural(len(made.wheels), 'wheel')}, "
        f"{plural(len(made.models), 'model')}\n"
    )
    console.show(f"sha256 {made.sha256}\n")
    return ExitCode.OK
