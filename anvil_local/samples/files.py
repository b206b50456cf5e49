"""A file of samples, read twice: once to check every row, once to hand them out.

Nothing is judged before the whole file is known to be good, and neither pass keeps more than one row.
Standard input, pipes and other things that can be read only once go to a temporary file first.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
import tempfile
from array import array
from collections.abc import Iterator, Mapping
from itertools import islice, pairwise
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from anvil_local.errors import InputError, InputErrors, NothingToJudge, shorten
from anvil_local.records import Record, Sample
from anvil_local.samples.arrow import STATE, is_folder
from anvil_local.samples.formats import Format, find_format
from anvil_local.samples.mapping import FieldMap
from anvil_local.samples.rows import has_lone_context
from anvil_local.samples.strict_json import without_frames

MAX_ERRORS = 1000
"""Bad rows after which checking stops, unless bad rows are skipped: more of them help nobody."""

# What is kept of a row's kind between the passes: bits of one byte.
_REJECTED, _ANSWER, _TRACE, _LONE_CONTEXT = 0, 1, 2, 4

_Row = tuple[int, int, Any]
"""The row's number from 1, its place in the file, and its value or the error that refuses it."""


class Counts(Record):
    """What a file holds."""

    rows: int
    """All rows: answers, traces and rejected ones."""
    answers: int
    """Single-turn answers."""
    traces: int
    """Multi-turn traces."""
    rejected: int
    """Bad rows that were skipped."""
    lone_contexts: int = 0
    """Rows whose contexts were given as one text, taken as one context."""


class SampleFile:
    """The samples of one file; iterating reads them one by one, as often as you like.

        with SampleFile("answers.jsonl") as samples:
            print(samples.check())
            for sample in samples:
                ...

    The path `-` is standard input; a folder is one that `datasets` saved. `format` is a name of
    `formats.FORMATS` where the file alone does not say it, `mapping` is for `FieldMap`. Nothing is opened
    before `check`, which iterating calls itself when nobody has.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        skip_bad_rows: bool = False,
        format: str | None = None,
        mapping: Mapping[str, str] | None = None,
    ) -> None:
        self.name = "<stdin>" if str(path) == "-" else str(path)
        """The file in messages and in `Sample.source`."""
        self.skip_bad_rows = skip_bad_rows
        """Whether bad rows are left out instead of refusing the file."""
        self.rejected: list[InputError] = []
        """The bad rows that were left out, in the order of the file."""
        self._wanted = format
        self._map = FieldMap(mapping)
        self._path = path
        self._spool: IO[bytes] | None = None
        self._format: Format | None = None
        self._counts: Counts | None = None
        # One entry a row, 17 bytes in all, so that a file of many short rows stays small in memory.
        self._kinds = bytearray()
        self._ids = array("Q")
        self._places = array("Q")
        self._stamp: tuple[int, int] | None = None

    def check(self) -> Counts:
        """Read the whole file once and say what it holds.

        Raises `InputErrors` with the bad rows (the first thousand), `InputError` when the file itself
        cannot be read, and `NothingToJudge` when it holds no row, or none that is good.
        """
        if self._counts is None:
            self._counts = self._check()
        return self._counts

    def __iter__(self) -> Iterator[Sample]:
        """Yield the good rows in the order of the file."""
        self.check()
        with self._open() as stream:
            for number, place, row in self._rows(stream):
                if self._kinds[number - 1] != _REJECTED:
                    yield self._sample(number, place, row)

    def entries(self) -> Iterator[Sample | InputError]:
        """Yield every row in the order of the file: the sample, or why it is refused."""
        self.check()
        rejected = iter(self.rejected)
        with self._open() as stream:
            for number, place, row in self._rows(stream):
                if self._kinds[number - 1] == _REJECTED:
                    yield next(rejected)
                else:
                    yield self._sample(number, place, row)

    @property
    def title(self) -> str:
        """What the format is called; known after `check`."""
        return self._format.title if self._format else ""

    def close(self) -> None:
        """Drop the temporary copy of standard input, if there is one."""
        if self._spool is not None:
            self._spool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check(self) -> Counts:
        errors: dict[int, InputError] = {}
        with self._open() as stream:
            broken = self._check_rows(self._rows(stream), errors)
        self._map.check_used(self.name)
        self._refuse_duplicates(errors)
        found = [errors[number] for number in sorted(errors)]
        if broken is not None:
            if not found or self.skip_bad_rows:
                raise broken
            found.append(broken)
        if found and not self.skip_bad_rows:
            raise InputErrors(found)
        self.rejected = found
        kinds = self._kinds
        if len(kinds) == kinds.count(_REJECTED):
            raise NothingToJudge(
                f"nothing to judge: all {len(kinds)} rows are bad" if kinds else "nothing to judge: no rows",
                where=self.name,
                hint=f"the first: {found[0].where}: {found[0].message}" if found else None,
            )
        return Counts(
            rows=len(kinds),
            answers=kinds.count(_ANSWER) + kinds.count(_ANSWER | _LONE_CONTEXT),
            traces=kinds.count(_TRACE) + kinds.count(_TRACE | _LONE_CONTEXT),
            rejected=kinds.count(_REJECTED),
            lone_contexts=kinds.count(_ANSWER | _LONE_CONTEXT) + kinds.count(_TRACE | _LONE_CONTEXT),
        )

    def _check_rows(self, rows: Iterator[_Row], errors: dict[int, InputError]) -> InputError | None:
        """Fill `errors` and what is kept of each row; return the error that ended the file early."""
        self._kinds, self._ids, self._places = bytearray(), array("Q"), array("Q")
        try:
            for number, place, row in rows:
                kind, digest = _REJECTED, 0
                try:
                    sample = self._sample(number, place, row)
                except InputError as error:
                    errors[number] = without_frames(error)
                else:
                    kind = _TRACE if sample.is_trace else _ANSWER
                    assert self._format is not None
                    mapped = self._map.apply(row, self._format.read_cell)
                    kind |= _LONE_CONTEXT if has_lone_context(mapped) else 0
                    digest = _digest(sample.id)
                self._kinds.append(kind)
                self._ids.append(digest)
                self._places.append(place)
                if len(errors) == MAX_ERRORS and not self.skip_bad_rows:
                    return InputError(f"checking stopped after {MAX_ERRORS} bad rows", where=self.name)
        except InputError as error:
            return without_frames(error)
        return None

    def _refuse_duplicates(self, errors: dict[int, InputError]) -> None:
        """Reject each row whose id an earlier good row has; the rows in question are read again."""
        digests = sorted(digest for digest, kind in zip(self._ids, self._kinds, strict=True) if kind)
        twice = {digest for digest, following in pairwise(digests) if digest == following}
        if not twice:
            return
        first: dict[str, int] = {}
        with self._open() as stream:
            for number, place, row in islice(self._rows(stream), len(self._kinds)):
                if self._kinds[number - 1] == _REJECTED or self._ids[number - 1] not in twice:
                    continue
                sample_id = self._sample(number, place, row).id
                if sample_id not in first:
                    first[sample_id] = place
                    continue
                self._kinds[number - 1] = _REJECTED
                errors[number] = InputError(
                    f"the id {shorten(sample_id)} is used at {self._where(first[sample_id])} too",
                    where=self._where(place),
                    field="id",
                    hint="give each row its own `id`; a row without one has its number in the file",
                )

    def _sample(self, number: int, place: int, row: Any) -> Sample:
        where = self._where(place)
        if isinstance(row, InputError):
            row.where = where
            raise row
        assert self._format is not None
        return self._map.sample(row, where=where, number=number, read_cell=self._format.read_cell)

    def _where(self, place: int) -> str:
        assert self._format is not None
        return self._format.where.format(file=self.name, place=place)

    def _rows(self, stream: IO[bytes]) -> Iterator[_Row]:
        self._format = find_format(self.name, stream, wanted=self._wanted)
        number = 0
        try:
            for place, row in self._format.read(stream):
                number += 1
                yield number, place, row
        except InputError as error:
            error.where = self.name
            raise
        except OSError as error:
            raise self._unreadable(error) from None

    def _open(self) -> IO[bytes]:
        try:
            if self.name == "<stdin>" and self._spool is None:
                if sys.stdin is None:
                    raise InputError("there is no standard input", where=self.name)
                self._spool = _spool(sys.stdin.buffer)
            path = self._path if self._spool is None else self._spool.name
            status = os.stat(path)
            if stat.S_ISDIR(status.st_mode):
                if not is_folder(Path(path)):
                    raise InputError("this is a directory, not a file", where=self.name)
                self._wanted = "datasets"
                path = Path(path) / STATE
                status = os.stat(path)
            if not stat.S_ISREG(status.st_mode):
                with open(path, "rb") as pipe:
                    self._spool = _spool(pipe)
                path, status = self._spool.name, os.stat(self._spool.name)
            stamp = (status.st_size, status.st_mtime_ns)
            if self._counts is not None and stamp != self._stamp:
                raise InputError("the file changed after it was checked", where=self.name)
            self._stamp = stamp
            return open(path, "rb")
        except FileNotFoundError:
            raise InputError(
                "no such file", where=self.name, hint="give the path of a data file, or - for standard input"
            ) from None
        except OSError as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: OSError) -> InputError:
        return InputError(f"cannot be read: {error.strerror or error}", where=self.name)


def _spool(source: IO[bytes]) -> IO[bytes]:
    # It lives as long as its `SampleFile`, whose `close` removes it.
    spool = tempfile.NamedTemporaryFile(prefix="anvil-local-")  # noqa: SIM115
    shutil.copyfileobj(source, spool)
    spool.flush()
    return spool


def _digest(sample_id: str) -> int:
    # Only a hint: rows whose digests agree are read again and their ids compared.
    return int.from_bytes(hashlib.blake2b(sample_id.encode(), digest_size=8).digest(), "little")
