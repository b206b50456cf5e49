"""Field mapping: `response=answer.text` says where a row keeps a field.

A path is keys joined by dots, with `[0]` for a place in a list and `[*]` for all of them, so that
`retrieved_contexts=documents[*].text` gives the list of the texts. The key itself is tried before the
path, so a column named `answer.text` is found too. A row in which the path leads nowhere does not
have the field; a mapping that leads nowhere in every row is an error of the whole file.

What the path passes through stays in the metadata; a key that is mapped as a whole does not. The
field's own names lose their meaning in mapped rows and are metadata as well.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from anvil_local.errors import InputError, UsageError
from anvil_local.records import Sample
from anvil_local.samples.rows import FIELD_NAMES, field_of, sample_from_row
from anvil_local.samples.strict_json import check_json

_MISSING = object()
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+|\*)\]")
_PATH = re.compile(r"(?:[^.\[\]]+|\[(?:\d+|\*)\])(?:\.[^.\[\]]+|\[(?:\d+|\*)\])*")


class FieldMap:
    """A mapping of fields to paths, applied to rows; it remembers which of its paths led somewhere."""

    def __init__(self, paths: Mapping[str, str] | None = None) -> None:
        self.paths = check_mapping(paths or {})
        """Field to path."""
        self._whole = frozenset(self.paths.values())
        self._rows = 0
        self._used: set[str] = set()

    def apply(self, row: Any, read_cell: Callable[[str, str], Any] | None = None) -> Any:
        """The row with the mapped fields under their own names, and without what was mapped whole.

        `read_cell` says what a text is as a field, for formats that have nothing but text.
        """
        if not self.paths or not isinstance(row, Mapping):
            return row
        mapped = {field: _look_up(row, path) for field, path in self.paths.items()}
        found = {field: value for field, value in mapped.items() if value is not _MISSING}
        if read_cell:
            found = {
                field: read_cell(field, value) if isinstance(value, str) else value
                for field, value in found.items()
            }
        self._rows += 1
        self._used |= found.keys()
        return {key: value for key, value in row.items() if not self._takes(key)} | found

    def sample(
        self, row: Any, *, where: str, number: int, read_cell: Callable[[str, str], Any] | None = None
    ) -> Sample:
        """As `rows.sample_from_row`, of the mapped row."""
        if not self.paths or not isinstance(row, Mapping):
            return sample_from_row(row, where=where, number=number)
        try:
            sample = sample_from_row(self.apply(row, read_cell), where=where, number=number)
            aside = {key: row[key] for key in row if self._takes(key) and key not in self._whole}
            check_json(aside)
        except InputError as error:
            field = re.split(r"[.\[]", error.field or "", maxsplit=1)[0]
            if field in self.paths:
                error.message += f"; `{field}` is read from `{self.paths[field]}`"
                error.args = (error.message,)
            error.where = where
            raise
        return sample.model_copy(update={"metadata": aside | sample.metadata}) if aside else sample

    def check_used(self, name: str) -> None:
        """Raise `UsageError` for a path that led nowhere in every row of the file `name`."""
        for field, path in self.paths.items():
            if self._rows and field not in self._used:
                raise UsageError(
                    f"the mapping {field}={path} leads nowhere in every row",
                    where=name,
                    hint="`anvil-local inspect` shows the keys of the rows",
                )

    def _takes(self, key: str) -> bool:
        return key in self._whole or field_of(key) in self.paths


def parse_mapping(rules: Iterable[str]) -> dict[str, str]:
    """Turn `FIELD=PATH` rules into a mapping of fields to paths. Raises `UsageError`."""
    mapping: dict[str, str] = {}
    for rule in rules:
        field, equals, path = (part.strip() for part in rule.partition("="))
        if not equals:
            raise UsageError("a mapping is FIELD=PATH", value=rule, hint="--map response=answer.text")
        if field in mapping:
            raise UsageError(f"`{field}` is mapped twice", value=rule)
        mapping[field] = path
    return check_mapping(mapping)


def check_mapping(mapping: Mapping[str, str]) -> dict[str, str]:
    """Refuse unknown fields and broken paths, with `UsageError`."""
    for field, path in mapping.items():
        if field not in FIELD_NAMES:
            close = difflib.get_close_matches(field, FIELD_NAMES, 1)
            raise UsageError(
                "no such field to map to",
                value=field,
                hint=f"did you mean {close[0]!r}?" if close else f"known: {', '.join(FIELD_NAMES)}",
            )
        if not _PATH.fullmatch(path):
            raise UsageError(
                f"`{field}` is mapped to something that is no path",
                value=path,
                hint="keys joined by dots, [0] for a place in a list: steps[0].text",
            )
    return dict(mapping)


def _look_up(row: Mapping[str, Any], path: str) -> Any:
    """What stands at a path, or `_MISSING`."""
    return row[path] if path in row else _walk(row, _STEP.findall(path))


def _walk(value: Any, steps: Sequence[tuple[str, str]]) -> Any:
    for number, (key, index) in enumerate(steps):
        if key:
            if not isinstance(value, Mapping) or key not in value:
                return _MISSING
            value = value[key]
        elif not isinstance(value, list | tuple):
            return _MISSING
        elif index == "*":
            found = [_walk(item, steps[number + 1 :]) for item in value]
            # One item without the key would otherwise vanish: null is refused with its place.
            return [None if item is _MISSING else item for item in found]
        # No list has a billion items, and Python turns no text of 5,000 digits into a number.
        elif len(index) < 10 and int(index) < len(value):
            value = value[int(index)]
        else:
            return _MISSING
    return value
