"""Shards: the parts together are the run without shards, and what does not belong together is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil_local.cli import app as cli
from anvil_local.cli import options
from anvil_local.errors import InputError, UsageError
from anvil_local.judge import FakeJudge
from anvil_local.records import Report, Sample, Shard
from anvil_local.reports import load_report
from anvil_local.shards import block_of, cut, merge, parse_shard, shard_of

ROWS: list[dict[str, Any]] = [
    {
        "id": f"row-{number}",
        "response": "It rained. " + "It snowed. " * (number % 3),
        "retrieved_contexts": [f"It rained on day {number // 2}."],
        "lang": ("de", "en")[number % 2],
    }
    for number in range(7)
]
# A metric that fits rows of the last part alone.
ROWS.append({"id": "trace", "user_input": [{"role": "user", "content": "Stop."}], "reference": "It stopped."})
GATES = ("faithfulness>=0.6", "faithfulness.pooled>=0.99", "faithfulness.lowest>=0.1", "goal>=0.5")


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> FakeJudge:
    fake = FakeJudge(lambda task, fields: 1.5 if "snow" not in str(fields.get("statement")) else -0.2)
    monkeypatch.setattr(options, "build_judge", lambda config, **_: fake)
    return fake


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return path


def run(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as exit_:
        cli.main([str(argument) for argument in arguments])
    return int(exit_.value.code or 0)


@pytest.fixture
def parts(judge: FakeJudge, data: Path, tmp_path: Path) -> Callable[..., list[Path]]:
    def make(count: int, *arguments: str) -> list[Path]:
        paths = [tmp_path / f"part-{index}.json" for index in range(1, count + 1)]
        rules = [word for gate in GATES for word in ("-g", gate)]
        for index, path in enumerate(paths, 1):
            assert run("run", data, "--shard", f"{index}/{count}", "-o", path, *rules, *arguments) == 0
        return paths

    return make


def without_time(report: Report) -> dict[str, Any]:
    return report.model_dump(mode="json", exclude={"created"})


@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_the_parts_together_are_the_whole_run(
    count: int, parts: Callable[..., list[Path]], data: Path, tmp_path: Path
) -> None:
    paths = parts(count)
    whole, merged = tmp_path / "whole.json", tmp_path / "merged.json"
    assert run("run", data, "-o", whole, *[word for gate in GATES for word in ("-g", gate)]) == 1
    assert run("merge", *reversed(paths), "-o", merged) == 1
    assert without_time(load_report(merged)) == without_time(load_report(whole))


def test_every_sample_is_judged_by_one_part(parts: Callable[..., list[Path]]) -> None:
    ids = [result.sample_id for path in parts(3) for result in load_report(path).results]
    assert ids == [row["id"] for row in ROWS]


def test_a_part_says_that_it_is_one_and_leaves_the_gates_to_the_whole(
    parts: Callable[..., list[Path]], capsys: pytest.CaptureFixture[str]
) -> None:
    report = load_report(parts(2)[1])
    assert (report.shard and report.shard.index, report.gates, report.passed) == (2, (), True)
    assert report.settings.gates == GATES
    assert "part 2 of 2: gates are checked when the parts are merged" in capsys.readouterr().out


def test_a_metric_that_a_part_has_no_row_for_is_no_error_there_but_in_the_whole(
    judge: FakeJudge, data: Path, tmp_path: Path
) -> None:
    arguments = ["--metric", "goal_with_reference", "--metric", "faithfulness"]
    assert run("run", data, "--shard", "1/2", "-o", tmp_path / "a.json", *arguments) == 0
    data.write_text("".join(json.dumps(row) + "\n" for row in ROWS[:-1]), encoding="utf-8")
    assert run("run", data, "--shard", "1/2", *arguments) == 2


def test_skipped_rows_are_counted_once(judge: FakeJudge, tmp_path: Path) -> None:
    data = tmp_path / "bad.jsonl"
    lines = [json.dumps(row) for row in ROWS]
    data.write_text("\n".join([*lines[:3], '{"response": ""}', *lines[3:]]), encoding="utf-8")
    paths = [tmp_path / f"{index}.json" for index in (1, 2)]
    for index, path in enumerate(paths, 1):
        arguments = ["-o", path, "--skip-bad-rows", "-g", "faithfulness.unscored<=0.2"]
        assert run("run", data, "--shard", f"{index}/2", *arguments) == 0
    merged = merge({path.name: load_report(path) for path in paths})
    assert len(merged.rejected) == 1
    assert merged.gates[0].value == 1 / 8


# What is refused


@pytest.mark.parametrize("text", ["", "0/3", "4/3", "1", "1/0", "a/b", "-1/3", "1/3/5", "1.0/3"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="K/N"):
        parse_shard(text)


def test_a_missing_a_double_and_a_foreign_part_are_refused(
    parts: Callable[..., list[Path]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two, three = parts(3)
    copy = tmp_path / "copy.json"
    copy.write_bytes(one.read_bytes())
    for arguments, words in (
        ([one, three], "1 of 3 parts missing"),
        ([one, two, three, copy], "part 1/3 is there twice"),
        ([one, one, two, three], "a part is named twice"),
    ):
        assert run("merge", *arguments) == 2
        assert words in capsys.readouterr().err
    whole = load_report(one).model_copy(update={"shard": None})
    with pytest.raises(InputError, match="not a part"):
        merge({"whole": whole})
    with pytest.raises(InputError, match="interrupted"):
        merge({"one": load_report(one).model_copy(update={"complete": False})})


def test_parts_of_different_runs_are_refused_with_what_differs(parts: Callable[..., list[Path]]) -> None:
    one, two = map(load_report, parts(2))
    shard = two.shard
    assert shard
    for changes, words in (
        ({"judge": one.judge.model_copy(update={"digest": "f" * 64})}, "the judge"),
        ({"version": "9.9"}, "the version"),
        ({"settings": two.settings.model_copy(update={"decomposition": "sentence"})}, "decomposition"),
        ({"settings": two.settings.model_copy(update={"gates": ()})}, "gates"),
        ({"shard": shard.model_copy(update={"data_sha256": "0" * 64})}, "the data"),
        ({"shard": shard.model_copy(update={"count": 3})}, "the number of shards"),
    ):
        with pytest.raises(UsageError, match=words):
            merge({"one": one, "two": two.model_copy(update=changes)})


def test_more_shards_than_samples_and_an_early_stop_are_refused(judge: FakeJudge, data: Path) -> None:
    assert run("run", data, "--shard", "1/9") == 2
    assert run("run", data, "--shard", "1/2", "--stop-early", "-g", "faithfulness>=0.5") == 2
    assert judge.asked == []


def test_the_name_of_the_file_is_no_part_of_the_data() -> None:
    here, there = ([Sample(id="1", source=f"{name}:1", response="A.")] for name in "ab")
    assert shard_of(here, 1, 1) == shard_of(there, 1, 1)
    assert shard_of(here, 1, 1) != shard_of([Sample(id="1", source="a:1", response="B.")], 1, 1)


@given(st.integers(1, 60), st.data())
def test_blocks_are_the_data_and_differ_by_one_sample_at_most(samples: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, samples))
    shards = [
        Shard(index=index, count=count, samples=samples, data_sha256="0") for index in range(1, count + 1)
    ]
    rows = [Sample(id=str(number), source=f"a:{number}") for number in range(samples)]
    assert [row for shard in shards for row in cut(rows, shard)] == rows
    sizes = [stop - start for start, stop in map(block_of, shards)]
    assert min(sizes) > 0
    assert max(sizes) - min(sizes) <= 1
