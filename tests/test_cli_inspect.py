"""`anvil-local inspect`, and the options for data of `run`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anvil_local.cli import app as cli
from anvil_local.cli import options
from anvil_local.judge import FakeJudge

ROWS = [
    {"id": "a", "question": "Wet?", "answer": "It rained.", "contexts": ["Rain."], "topic": "weather"},
    {
        "messages": [
            {"role": "user", "content": "Shut it."},
            {"role": "assistant", "tool_calls": [{"name": "shut", "args": {}}]},
            {"role": "tool", "name": "shut", "content": "\x1b[31mdone"},
        ]
    },
    {"question": "Q?", "answer": 3},
]


def run(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as exit_:
        cli.main([str(argument) for argument in arguments])
    return int(exit_.value.code or 0)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("data.jsonl").write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    return "data.jsonl"


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> FakeJudge:
    fake = FakeJudge(lambda task, fields: 1)
    monkeypatch.setattr(options, "build_judge", lambda config, **_: fake)
    return fake


def test_inspect_shows_every_row_and_every_refusal_in_its_place(
    data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("inspect", data) == 2
    out, err = capsys.readouterr()
    assert out == (
        "data.jsonl:1  answer 'a'\n"
        "  question   'Wet?'\n"
        "  response   'It rained.'\n"
        "  contexts   1 of 5 characters: 'Rain.'\n"
        "  metadata   topic\n\n"
        "data.jsonl:2  trace '2'\n"
        "  [1] human: 'Shut it.'\n"
        "  [2] ai: calls shut\n"
        "  [3] tool shut: '\\x1b[31mdone'\n\n"
        "data.jsonl:3  REFUSED: `answer` must be text, not a number\n\n"
    )
    assert err == "data.jsonl: JSON lines, 3 rows: 1 answer, 1 trace, 1 refused\n"


def test_inspect_stops_after_the_limit_and_forgives_what_is_skipped(
    data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("inspect", data, "-n", "1", "--skip-bad-rows") == 0
    out, err = capsys.readouterr()
    assert out.count("data.jsonl:") == 1
    assert "3 rows, the first 1 shown" in err


def test_inspect_prints_one_object_a_row(data: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("inspect", data, "--json") == 2
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row.get("id") for row in rows] == ["a", "2", None]
    assert (rows[2]["field"], rows[2]["source"]) == ("answer", "data.jsonl:3")


def test_inspect_reads_formats_and_mappings_from_options_and_from_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    row = {"input": "Wet?", "actual_output": "no", "real": {"output": "It rained."}}
    Path("cases.json").write_text(json.dumps([row]), encoding="utf-8")
    assert run("inspect", "cases.json") == 5
    assert "--format deepeval" in capsys.readouterr().out
    assert run("inspect", "cases.json", "--format", "deepeval", "--map", "response=real.output") == 0
    assert "'It rained.'" in capsys.readouterr().out
    Path("anvil.toml").write_text('format = "deepeval"\nmap = {response = "real.output"}\n', encoding="utf-8")
    assert run("inspect", "cases.json") == 0
    assert "'It rained.'" in capsys.readouterr().out


@pytest.mark.parametrize("line", ['map = {respons = "a"}', 'map = {response = "a..b"}', 'format = "yaml"'])
def test_a_bad_configuration_of_the_data_is_refused(
    data: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("anvil.toml").write_text(line, encoding="utf-8")
    assert run("inspect", data) == 2
    assert "error:" in capsys.readouterr().err


def test_run_reads_mapped_rows(data: str, judge: FakeJudge, capsys: pytest.CaptureFixture[str]) -> None:
    Path("rows.csv").write_text("frage,antwort,quelle\nWet?,It rained.,Rain.\n", encoding="utf-8")
    fields = {"user_input": "frage", "response": "antwort", "retrieved_contexts": "quelle"}
    rules = [part for field, column in fields.items() for part in ("--map", f"{field}={column}")]
    assert run("run", "rows.csv", *rules, "--decomposition", "sentence", "--json", "-q") == 0
    report = json.loads(capsys.readouterr().out)
    assert report["results"][0]["sample"]["response"] == "It rained."


@pytest.mark.parametrize(("limit", "code"), [("0.4", 0), ("0.3", 1)])
def test_skipped_rows_count_as_unscored_in_gates(
    data: str, judge: FakeJudge, limit: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [{"answer": "It rained.", "contexts": ["Rain."], "id": name} for name in "ab"]
    Path(data).write_text("\n".join(map(json.dumps, [*rows, {"answer": ""}])), encoding="utf-8")
    common = ("run", data, "--skip-bad-rows", "--decomposition", "sentence", "-q")
    assert run(*common, "-g", "faithfulness>=0.5", "--max-unscored", limit) == code
    if code:
        out = " ".join(capsys.readouterr().out.split())
        assert "1 of 3 samples (1 bad row skipped) unscored is 0.33, above the limit 0.30" in out
    assert run(*common, "-g", f"faithfulness.unscored<={limit}") == code
