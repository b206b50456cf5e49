"""Objects of other libraries that hold many rows, known by what they can do; none is imported.

| object | known by |
|---|---|
| pandas `DataFrame` | `itertuples` and `columns` |
| polars `DataFrame` | `iter_rows` |
| pyarrow `Table` | `to_batches` |
| Ragas `EvaluationDataset` | `samples` |
| DeepEval `EvaluationDataset` | `test_cases` |
| Hugging Face `Dataset` | it iterates over dicts, as any list of rows |
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from anvil_local.errors import InputError
from anvil_local.samples.arrow import plain


def rows_of(data: Any) -> Iterable[Any]:
    """The rows of an object that holds many; anything else comes back as it is."""
    if isinstance(data, Mapping):
        if data and all(hasattr(part, "features") and hasattr(part, "num_rows") for part in data.values()):
            names = ", ".join(map(repr, data))
            raise InputError("this holds several data sets", hint=f"give one of them: {names}")
    elif hasattr(data, "itertuples") and hasattr(data, "columns"):
        return _pandas_rows(data)
    elif hasattr(data, "iter_rows"):
        return _plain_rows(data.iter_rows(named=True))
    elif hasattr(data, "to_batches") and hasattr(data, "schema"):
        return _plain_rows(row for batch in data.to_batches() for row in batch.to_pylist())
    else:
        for name in ("samples", "test_cases"):
            items = getattr(data, name, None)
            if isinstance(items, list | tuple):
                return items
    return data  # type: ignore[no-any-return]


def _pandas_rows(frame: Any) -> Iterator[dict[str, Any]]:
    columns = [str(name) for name in frame.columns]
    twice = next((name for name in columns if columns.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"the column `{twice}` is there twice", field=twice, hint="keep one of them")
    for values in frame.itertuples(index=False, name=None):
        yield {name: _cell(value) for name, value in zip(columns, values, strict=True)}


def _plain_rows(rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for row in rows:
        yield {key: plain(value) for key, value in row.items()}


def _cell(value: Any) -> Any:
    """A cell of pandas: its missing values are null, arrays are lists, numpy's numbers are numbers."""
    if type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and math.isnan(value)):
        return None
    if not isinstance(value, str | list | dict | tuple) and hasattr(value, "tolist"):
        value = value.tolist()
        if isinstance(value, float) and math.isnan(value):
            return None
    return plain(value)
