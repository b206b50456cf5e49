"""The verdict store: nothing of another judge, nothing half-written, never the end of a run."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sqlite3
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil_local.cache import _MIGRATIONS, CachedJudge, Store
from anvil_local.errors import EngineError
from anvil_local.judge import FakeJudge
from anvil_local.records import Fingerprint, Verdict

FIELDS = {"context": "c", "statement": "s"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "verdicts.sqlite3"


class Other(FakeJudge):
    @property
    def fingerprint(self) -> Fingerprint:
        return Fingerprint(digest="f" * 64, parts={})


def test_a_second_run_finds_all_its_verdicts_and_never_asks_the_judge(path: Path) -> None:
    first = FakeJudge([0.125, -3.5])
    judge = CachedJudge(first, Store(path))
    said = [judge.ask("support", FIELDS | {"statement": str(n)}) for n in range(5)]
    written = judge.write("decompose", {"sentence": "It rained."}, limit=9)
    assert (judge.count_tokens("a b"), judge.room("support", FIELDS)) == (2, 2046)
    judge.close()

    second = FakeJudge([EngineError("asked again")])
    again = CachedJudge(second, Store(path))
    assert [again.ask("support", FIELDS | {"statement": str(n)}) for n in range(5)] == said
    assert again.write("decompose", {"sentence": "It rained."}, limit=9) == written
    assert (again.count_tokens("a b"), again.room("support", FIELDS)) == (2, 2046)
    assert again.hits == 5
    assert second.asked == []
    assert second.wrote == []


def test_a_verdict_of_another_judge_is_never_used(path: Path) -> None:
    CachedJudge(FakeJudge([1]), Store(path)).ask("support", FIELDS)
    assert CachedJudge(Other([0]), Store(path)).ask("support", FIELDS).value == 0


@pytest.mark.parametrize(
    ("task", "fields"),
    [
        ("goal", FIELDS),
        ("support", {"context": "c ", "statement": "s"}),
        ("support", {"context": "cs", "statement": ""}),
        ("support", {"context": "s", "statement": "c"}),
    ],
)
def test_any_other_question_is_another_entry(path: Path, task: str, fields: dict[str, str]) -> None:
    judge = CachedJudge(FakeJudge([1, 0]), Store(path))
    assert judge.ask("support", FIELDS).value == 1
    assert judge.ask(task, fields).value == 0


def test_a_seed_and_a_limit_are_part_of_a_text(path: Path) -> None:
    fake = FakeJudge(writings=["- a\n", "- b\n", "- c\n"])
    judge = CachedJudge(fake, Store(path))
    texts = [
        judge.write("decompose", {}, limit=limit, seed=seed).text
        for limit, seed in ((9, None), (9, 1), (8, 1))
    ]
    assert texts == ["- a\n", "- b\n", "- c\n"]


def test_errors_are_not_stored(path: Path) -> None:
    judge = CachedJudge(FakeJudge([EngineError("now"), 1]), Store(path))
    with pytest.raises(EngineError):
        judge.ask("support", FIELDS)
    assert judge.ask("support", FIELDS).value == 1


def test_refresh_asks_once_and_replaces(path: Path) -> None:
    CachedJudge(FakeJudge([1]), Store(path)).ask("support", FIELDS)
    fake = FakeJudge([0])
    judge = CachedJudge(fake, Store(path), refresh=True)
    assert [judge.ask("support", FIELDS).value for _ in range(3)] == [0, 0, 0]
    assert len(fake.asked) == 1
    assert CachedJudge(FakeJudge([1]), Store(path)).ask("support", FIELDS).value == 0


@given(st.floats(-100, 100), st.floats(0, 1), st.text(max_size=20))
def test_every_bit_comes_back(margin: float, mass: float, text: str) -> None:
    store = Store(Path(":memory:"))
    verdict = Verdict(value=1, margin=margin, mass=mass, p_supported=mass)
    key = f"k{text}"
    store.put(key, verdict.model_dump_json(), judge="j")
    found = store.get(key)
    assert found is not None
    assert Verdict.model_validate_json(found).margin == margin
    assert float.hex(Verdict.model_validate_json(found).margin or 0.0) == float.hex(margin or 0.0)
    store.close()


def test_an_entry_that_was_tampered_with_is_not_trusted(path: Path) -> None:
    judge = CachedJudge(FakeJudge([1]), Store(path))
    judge.ask("support", FIELDS)
    judge.close()
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE entry SET value = replace(value, '\"value\":1', '\"value\":0')")
    raw.close()
    fake = FakeJudge([1])
    assert CachedJudge(fake, Store(path)).ask("support", FIELDS).value == 1
    assert len(fake.asked) == 1


@pytest.mark.parametrize("junk", [b"not a database at all" * 100, b"SQLite format 3\x00" + bytes(5000)])
def test_a_damaged_file_is_set_aside_with_a_message(path: Path, junk: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(junk)
    said: list[str] = []
    store = Store(path, say=said.append)
    store.put("k", "v", judge="j")
    assert store.get("k") == "v"
    store.close()
    assert len(said) == 1
    assert "set aside" in said[0]
    (aside,) = path.parent.glob("*.broken-*")
    assert aside.read_bytes() == junk


def test_a_file_damaged_in_the_middle_never_gives_a_wrong_value(path: Path) -> None:
    store = Store(path)
    for number in range(500):
        store.put(f"k{number}", f"v{number}" * 20, judge="j")
    store.close()
    raw = bytearray(path.read_bytes())
    for place in range(9000, len(raw), 700):
        raw[place] ^= 0xFF
    path.write_bytes(raw)
    damaged = Store(path, say=lambda _: None)
    for number in range(500):
        assert damaged.get(f"k{number}") in (None, f"v{number}" * 20)
    damaged.close()


def test_a_store_of_a_newer_release_is_left_alone(path: Path) -> None:
    Store(path).close()
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA user_version = 99")
    raw.close()
    before, said = path.read_bytes(), []
    store = Store(path, say=said.append)
    store.put("k", "v", judge="j")
    assert store.get("k") is None
    assert path.read_bytes() == before
    assert "newer" in said[0]


def test_every_earlier_layout_is_brought_up_to_date(path: Path) -> None:
    path.parent.mkdir()
    for version in range(len(_MIGRATIONS)):
        path.unlink(missing_ok=True)
        raw = sqlite3.connect(path)
        for step in _MIGRATIONS[:version]:
            raw.execute(step)
        raw.execute(f"PRAGMA user_version = {version}")
        raw.commit()
        raw.close()
        store = Store(path)
        store.put("k", "v", judge="j")
        assert store.get("k") == "v"
        store.close()


def test_a_folder_that_cannot_be_written_costs_a_note_and_not_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    said: list[str] = []
    judge = CachedJudge(FakeJudge([1]), Store(tmp_path / "file" / "v.sqlite3", say=said.append))
    assert judge.ask("support", FIELDS).value == 1
    assert len(said) == 1


def test_a_write_that_fails_costs_one_note_and_not_the_run(path: Path) -> None:
    said: list[str] = []
    store = Store(path, say=said.append)
    assert store._connection is not None
    store._connection.execute("PRAGMA query_only = ON")
    judge = CachedJudge(FakeJudge([1]), store)
    assert [judge.ask("support", FIELDS | {"statement": str(n)}).value for n in range(3)] == [1, 1, 1]
    assert len(said) == 1


def test_size_and_clean(path: Path) -> None:
    store = Store(path)
    for number in range(10):
        store.put(f"k{number}", "v", judge="a" if number < 4 else "b")
    entries, size = store.size()
    assert entries == 10
    assert size > 0
    assert store.clean(keep="a") == 6
    assert store.clean() == 4
    assert store.size()[0] == 0


def _fill(path: str, start: int, count: int) -> None:
    store = Store(Path(path))
    for number in range(start, start + count):
        store.put(f"k{number}", f"v{number}", judge="j")
    store.close()


def test_several_processes_share_a_store(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_fill, args=(str(path), start, 150)) for start in (0, 100, 200)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    store = Store(path)
    assert store.size()[0] == 350
    assert all(store.get(f"k{number}") == f"v{number}" for number in range(350))
    store.close()


def _fill_and_tell(path: str, pipe: int) -> None:
    store = Store(Path(path))
    for number in range(100_000):
        store.put(f"k{number}", f"v{number}", judge="j")
        os.write(pipe, f"{number}\n".encode())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_any_moment_nothing_reported_is_lost(path: Path) -> None:
    for delay in (0.02, 0.05, 0.09):
        path.unlink(missing_ok=True)
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            _fill_and_tell(str(path), writing)
            os._exit(0)
        os.close(writing)
        time.sleep(delay)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        with os.fdopen(reading, encoding="ascii") as told:
            numbers = [int(line) for line in told.read().split("\n") if line]
        store = Store(path)
        assert all(store.get(f"k{number}") == f"v{number}" for number in numbers)
        store.close()
