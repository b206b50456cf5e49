"""What a judge said before: an SQLite store, and a judge that looks there first.

The key of an entry is the judge's fingerprint and the exact question, so a verdict of another judge
is never found. Entries are written one transaction each, in WAL mode: several processes may share a
store, and a process killed at any moment leaves whole entries or none. Every entry carries a
digest of its key and value, checked when it is read. A store that cannot be opened is set aside,
and one that cannot be written is left alone; neither ends a run.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from anvil_local.judge import Judge, Writing
from anvil_local.records import Fingerprint, Verdict

__all__ = ["STORE_NAME", "CachedJudge", "Entries", "Store", "default_folder"]

_T = TypeVar("_T")

_MIGRATIONS = (
    """CREATE TABLE entry (
        key TEXT PRIMARY KEY, judge TEXT NOT NULL, value TEXT NOT NULL, digest TEXT NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX entry_judge ON entry (judge)",
)
"""Each brings the store from version N to N + 1 (`PRAGMA user_version`); never edited, only appended."""

_PATIENCE = 30.0
"""Seconds to wait for another process that is writing."""


STORE_NAME = "verdicts.sqlite3"
"""The name of the store's file in its folder."""


def default_folder() -> Path:
    """The user's cache folder."""
    import platformdirs

    return platformdirs.user_cache_path("anvil-local")


class Store:
    """Entries by key. Every method is safe to call when the file is gone, broken or read-only.

    Args:
        path: the SQLite file; its folder is made.
        say: takes one line for people when something is wrong with the file.
    """

    def __init__(self, path: Path, *, say: Callable[[str], None] = lambda _: None) -> None:
        self.path = path
        self._say = say
        self._connection: sqlite3.Connection | None = None
        self._writable = True
        try:
            self._open()
        except sqlite3.DatabaseError as error:
            self._broken(error)
        except OSError as error:
            self._say(f"note: no verdict cache: {path}: {error.strerror}")

    def _open(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            # In WAL mode a killed process loses nothing with NORMAL; a power cut may lose the last entries.
            connection.execute("PRAGMA synchronous = NORMAL")
            self._migrate(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def _migrate(self, connection: sqlite3.Connection) -> None:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version > len(_MIGRATIONS):
            raise sqlite3.NotSupportedError(f"it was written by a newer anvil_local (layout {version})")
        while version < len(_MIGRATIONS):
            connection.execute("BEGIN IMMEDIATE")
            try:  # another process may have been faster
                (version,) = connection.execute("PRAGMA user_version").fetchone()
                if version < len(_MIGRATIONS):
                    connection.execute(_MIGRATIONS[version])
                    version += 1
                    connection.execute(f"PRAGMA user_version = {version}")
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise

    def _broken(self, error: sqlite3.Error) -> None:
        """Put a file that is not a store out of the way; leave one alone that only refuses for now."""
        self.close()
        text = str(error)
        if isinstance(error, sqlite3.OperationalError | sqlite3.NotSupportedError):
            self._say(f"note: the verdict cache cannot be used, going on without it: {self.path}: {text}")
            return
        aside = self.path.with_name(f"{self.path.name}.broken-{time.time_ns()}")
        with contextlib.suppress(OSError):
            self.path.rename(aside)
            for suffix in ("-wal", "-shm"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)
        self._say(f"note: the verdict cache was damaged ({text}); it was set aside as {aside}")
        try:
            self._open()
        except (sqlite3.Error, OSError) as again:
            self._say(f"note: going on without a verdict cache: {again}")

    def get(self, key: str) -> str | None:
        """The value, or None when there is none that can be trusted."""
        if self._connection is None:
            return None
        try:
            row = self._connection.execute("SELECT value, digest FROM entry WHERE key = ?", (key,)).fetchone()
        except sqlite3.DatabaseError as error:
            self._broken(error)
            return None
        if row is None or _digest(key, row[0]) != row[1]:
            return None
        return str(row[0])

    def put(self, key: str, value: str, *, judge: str) -> None:
        """Store a value under a key; returns when it is safe from `kill -9`."""
        if self._connection is None or not self._writable:
            return
        try:
            self._connection.execute(
                "INSERT OR REPLACE INTO entry VALUES (?, ?, ?, ?)", (key, judge, value, _digest(key, value))
            )
        except sqlite3.OperationalError as error:  # full, read-only, or locked for too long
            self._writable = False
            self._say(f"note: the verdict cache cannot be written, going on without: {self.path}: {error}")
        except sqlite3.DatabaseError as error:
            self._broken(error)

    def size(self) -> tuple[int, int]:
        """Entries, and bytes on disk."""
        entries = 0
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                (entries,) = self._connection.execute("SELECT count(*) FROM entry").fetchone()
        files = (self.path.with_name(self.path.name + suffix) for suffix in ("", "-wal", "-shm"))
        return entries, sum(file.stat().st_size for file in files if file.exists())

    def clean(self, *, keep: str | None = None) -> int:
        """Remove all entries, or all but those of one judge (a fingerprint's digest); how many went."""
        if self._connection is None:
            return 0
        cursor = self._connection.execute("DELETE FROM entry WHERE judge IS NOT ?", (keep,))
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.execute("VACUUM")
        return cursor.rowcount

    def close(self) -> None:
        """Let go of the file."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _digest(key: str, value: str) -> str:
    return hashlib.blake2b(f"{key}\n{value}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class Entries:
    """A store in memory, for a judge in another process: what is known beforehand, and what came new."""

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self._known = dict(known or {})
        self.new: dict[str, str] = {}
        """What was put."""

    def get(self, key: str) -> str | None:
        """See `Store.get`."""
        return self.new.get(key, self._known.get(key))

    def put(self, key: str, value: str, *, judge: str) -> None:
        """See `Store.put`; gone with the process."""
        self.new[key] = value

    def close(self) -> None:
        """Nothing to let go of."""


class CachedJudge:
    """A judge that asks the store first and the judge behind it second.

    When the store knows every answer, the judge behind it is never asked, so its model is never loaded.

    Args:
        judge: the judge behind.
        store: where answers are kept.
        refresh: ask the judge for everything and replace what is stored.
    """

    def __init__(self, judge: Judge, store: Store | Entries, *, refresh: bool = False) -> None:
        self._judge = judge
        self._store = store
        self._refresh = refresh
        self._fresh: set[str] = set()  # keys answered in this run, which `refresh` need not ask again
        self.hits = 0
        """Verdicts that were found in the store."""

    @property
    def fingerprint(self) -> Fingerprint:
        """The judge's own: a cached verdict is the same verdict."""
        return self._judge.fingerprint

    def ask(self, task: str, fields: Mapping[str, str]) -> Verdict:
        """See `Judge.ask`. Errors are not stored."""
        key = self._key("ask", task, fields)
        found = self._get(key)
        if found is not None:
            self.hits += 1
            return Verdict.model_validate_json(found)
        verdict = self._judge.ask(task, fields)
        self._put(key, verdict.model_dump_json())
        return verdict

    def write(self, task: str, fields: Mapping[str, str], *, limit: int, seed: int | None = None) -> Writing:
        """See `Judge.write`."""
        key = self._key("write", task, fields, limit, seed)
        found = self._get(key)
        if found is not None:
            text, complete = json.loads(found)
            return Writing(text, complete)
        writing = self._judge.write(task, fields, limit=limit, seed=seed)
        self._put(key, json.dumps([writing.text, writing.complete]))
        return writing

    def count_tokens(self, text: str) -> int:
        """See `Judge.count_tokens`."""
        key = self._key("count", text)
        found = self._get(key)
        if found is not None:
            return int(found)
        count = self._judge.count_tokens(text)
        self._put(key, str(count))
        return count

    def room(self, task: str, fields: Mapping[str, str]) -> int:
        """See `Judge.room`."""
        key = self._key("room", task, fields)
        found = self._get(key)
        if found is not None:
            return int(found)
        room = self._judge.room(task, fields)
        self._put(key, str(room))
        return room

    def threshold_of(self, task: str) -> float:
        """See `Judge.threshold_of`."""
        return self._judge.threshold_of(task)

    def recall(self, work: Callable[[Judge], _T]) -> tuple[_T | None, dict[str, str]]:
        """Do a piece of work from the store alone, without the judge behind it.

        Returns:
            What came of it, or None where the store lacks an answer; and the entries that were found, with
            which another process can go on (`Entries`). With `refresh` the store knows nothing.
        """
        if self._refresh:
            return None, {}
        found = _Found(self._store)
        recalling = CachedJudge(_Silent(self._judge), found)
        try:
            done = work(recalling)
        except _Unknown:
            return None, found.new
        self.hits += recalling.hits
        return done, found.new

    def learn(self, entries: Mapping[str, str], *, hits: int) -> None:
        """Keep what the same judge found out in another process, and count the hits it had there."""
        for key, value in entries.items():
            self._put(key, value)
        self.hits += hits

    def close(self) -> None:
        """Close the judge and the store."""
        self._judge.close()
        self._store.close()

    def _get(self, key: str) -> str | None:
        if self._refresh and key not in self._fresh:
            return None
        return self._store.get(key)

    def _put(self, key: str, value: str) -> None:
        if self._refresh:
            self._fresh.add(key)
        self._store.put(key, value, judge=self.fingerprint.digest)

    def _key(self, *question: Any) -> str:
        parts = [self.fingerprint.digest, *(dict(p) if isinstance(p, Mapping) else p for p in question)]
        text = json.dumps(parts, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("ascii")).hexdigest()


class _Unknown(Exception):
    """The store lacks an answer. Not an `AnvilError`: nothing may take it for a judge's failure."""


class _Found(Entries):
    """Looks into a store and remembers what was there."""

    def __init__(self, store: Store | Entries) -> None:
        super().__init__()
        self._store = store

    def get(self, key: str) -> str | None:
        value = self._store.get(key)
        if value is not None:
            self.new[key] = value
        return value


class _Silent:
    """A judge that is itself but answers nothing."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge

    @property
    def fingerprint(self) -> Fingerprint:
        return self._judge.fingerprint

    def ask(self, task: str, fields: Mapping[str, str]) -> Verdict:
        raise _Unknown

    def write(self, task: str, fields: Mapping[str, str], *, limit: int, seed: int | None = None) -> Writing:
        raise _Unknown

    def count_tokens(self, text: str) -> int:
        raise _Unknown

    def room(self, task: str, fields: Mapping[str, str]) -> int:
        raise _Unknown

    def threshold_of(self, task: str) -> float:
        return self._judge.threshold_of(task)

    def close(self) -> None:
        pass
