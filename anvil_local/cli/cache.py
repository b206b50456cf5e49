"""`anvil-local cache`: the store of verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from anvil_local.cli import console, options

if TYPE_CHECKING:
    from anvil_local.cache import Store

app = typer.Typer(help="See and clean the store of verdicts.", no_args_is_help=True)


def _open(cache_dir: Path | None) -> Store:
    from anvil_local.cache import Store

    return Store(options.store_path(options.load(cache_dir=cache_dir)), say=console.say)


@app.command("dir")
def show_dir(cache_dir: options.CacheDir = None) -> None:
    """Print the folder of the store."""
    console.show(str(options.store_path(options.load(cache_dir=cache_dir)).parent))


@app.command()
def size(cache_dir: options.CacheDir = None) -> None:
    """Print how many entries there are, and their bytes on disk."""
    from anvil_local.reports.text import plural

    store = _open(cache_dir)
    entries, used = store.size()
    store.close()
    console.show(f"{plural(entries, 'entry', 'entries')}, {used / 1e6:.1f} MB")


@app.command()
def clean(cache_dir: options.CacheDir = None) -> None:
    """Remove every entry. Verdicts are judged again when they are next needed."""
    from anvil_local.reports.text import plural

    store = _open(cache_dir)
    gone = store.clean()
    store.close()
    console.show(f"removed {plural(gone, 'entry', 'entries')}")
