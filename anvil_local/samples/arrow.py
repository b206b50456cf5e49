"""Parquet, Arrow files, and the folders that `datasets.Dataset.save_to_disk` writes.

They need pyarrow: `pip install 'anvil-local[parquet]'`. Rows are read a few at a time. Dates and times,
which JSON does not have, become ISO 8601 text.
"""

from __future__ import annotations

import datetime
import decimal
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from anvil_local.errors import InputError

STATE = "state.json"
"""The file by which a saved `Dataset` is known."""

SPLITS = "dataset_dict.json"
"""The file by which a saved `DatasetDict` is known."""

_BATCH = 16
_EXTRA = "pip install 'anvil-local[parquet]'"
_FILE_MAGIC = b"ARROW1"


def read_parquet(stream: IO[bytes]) -> Iterator[tuple[int, Any | InputError]]:
    """Yield `(index, row)`, indexes counted from 0; see `formats`."""
    pyarrow = _pyarrow()
    from pyarrow import parquet

    try:
        table = parquet.ParquetFile(stream, buffer_size=1 << 20, pre_buffer=False)
        yield from enumerate(_rows(table.iter_batches(batch_size=_BATCH)))
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"not readable as Parquet: {error}") from None


def read_arrow(stream: IO[bytes]) -> Iterator[tuple[int, Any | InputError]]:
    """Yield `(index, row)` of an Arrow file or stream; see `formats`."""
    yield from enumerate(_arrow_rows(stream))


def read_folder(stream: IO[bytes]) -> Iterator[tuple[int, Any | InputError]]:
    """Yield `(index, row)` of a saved `Dataset`; `stream` is its `state.json`."""
    yield from enumerate(_folder_rows(stream))


def is_folder(path: Path) -> bool:
    """Whether a folder was written by `save_to_disk`. Raises `InputError` for one with several splits."""
    if (path / SPLITS).is_file():
        splits = sorted(child.name for child in path.iterdir() if (child / STATE).is_file())
        raise InputError(
            "this folder holds several data sets",
            where=str(path),
            hint="give the folder of one: " + ", ".join(str(path / name) for name in splits),
        )
    return (path / STATE).is_file()


def _folder_rows(stream: IO[bytes]) -> Iterator[Any]:
    _pyarrow()
    folder = Path(stream.name).parent
    try:
        state = json.load(stream)
        names = [item["filename"] for item in state["_data_files"]]
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{STATE} does not name the data files of a saved data set") from None
    if state.get("_indices_files"):
        raise InputError(
            "the data set was saved with a selection of its rows",
            hint="call flatten_indices() before save_to_disk()",
        )
    for name in names:
        if not isinstance(name, str) or Path(name).name != name:
            raise InputError(f"{STATE} names a file outside its folder", value=name)
        try:
            with (folder / name).open("rb") as part:
                yield from _arrow_rows(part)
        except FileNotFoundError:
            raise InputError("a file of the data set is missing", value=name) from None


def _arrow_rows(stream: IO[bytes]) -> Iterator[Any]:
    pyarrow = _pyarrow()
    from pyarrow import ipc

    try:
        magic = stream.read(len(_FILE_MAGIC))
        stream.seek(0)
        if magic == _FILE_MAGIC:
            table = ipc.open_file(stream)
            batches = (table.get_batch(number) for number in range(table.num_record_batches))
        else:
            batches = iter(ipc.open_stream(stream))
        yield from _rows(batches)
    except (pyarrow.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise InputError(f"not readable as Arrow: {error}") from None


def _rows(batches: Iterable[Any]) -> Iterator[Any]:
    for batch in batches:
        for start in range(0, batch.num_rows, _BATCH):
            for row in batch.slice(start, _BATCH).to_pylist():
                yield {key: plain(value) for key, value in row.items()}


def plain(value: Any) -> Any:
    """A value as JSON has it: times as ISO 8601 text, whole decimals as numbers, others as text."""
    match value:
        case datetime.datetime() | datetime.date() | datetime.time():
            return value.isoformat()
        case decimal.Decimal():
            return int(value) if value.is_finite() and value == int(value) else str(value)
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
    return value


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise InputError("reading this file needs pyarrow", hint=_EXTRA) from None
    return pyarrow
