"""The command line without a model: what is refused, what it exits with, what goes where."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from anvil_local.cli import app as cli
from anvil_local.cli import options
from anvil_local.errors import EngineError
from anvil_local.judge import FakeJudge
from anvil_local.reports import load_report

ROW = {"user_input": "Q?", "response": "It rained. It snowed.", "retrieved_contexts": ["It rained."]}


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> FakeJudge:
    fake = FakeJudge(lambda task, fields: int("snow" not in str(fields.get("statement"))))
    monkeypatch.setattr(options, "build_judge", lambda config, **_: fake)
    return fake


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    path.write_text(json.dumps(ROW) + "\n", encoding="utf-8")
    return path


def run(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as exit_:
        cli.main([str(argument) for argument in arguments])
    return int(exit_.value.code or 0)


def test_version_prints_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out.startswith("anvil-local ")


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["run"],
        ["judge"],
        ["decompose"],
        ["goal"],
        ["models"],
        ["models", "install"],
        ["info"],
        ["calibrate"],
        ["plan"],
        ["selfcheck"],
        ["cache"],
        ["report"],
    ],
)
def test_every_command_has_help(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*command, "--help") == 0
    assert "Usage" in capsys.readouterr().out


def test_a_run_prints_the_report_on_stdout_and_exits_with_0(
    judge: FakeJudge, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("run", data) == 0
    captured = capsys.readouterr()
    assert "faithfulness" in captured.out
    assert "It snowed." in captured.out
    # Nobody has measured a fake: the only thing to say on stderr.
    assert captured.err.startswith("warning: ")
    assert captured.err.count("\n") == 1


def test_a_required_selfcheck_refuses_an_unfit_judge_before_anything_is_judged(
    judge: FakeJudge, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("run", data, "--selfcheck") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "unfit" in captured.err
    assert all(fields["statement"] not in ROW["response"] for _, fields in judge.asked)


def test_a_failed_gate_exits_with_1_and_a_passed_one_with_0(judge: FakeJudge, data: Path) -> None:
    assert run("run", data, "--gate", "faithfulness>=0.5") == 0
    assert run("run", data, "--gate", "faithfulness>=0.8") == 1


def test_a_run_stops_early_only_if_asked_and_only_when_nothing_can_change(
    judge: FakeJudge, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "many.jsonl"
    row = json.dumps({"response": "It snowed.", "retrieved_contexts": ["It rained."]}) + "\n"
    path.write_text(row * 200, encoding="utf-8")
    assert run("run", path, "-g", "faithfulness >= 0.9", "--json", "--stop-early") == 1
    report = json.loads(capsys.readouterr().out)
    # The 21st refusal of 200 puts 0.9 out of reach.
    assert (len(report["results"]), report["not_judged"], report["complete"]) == (21, 179, True)
    assert run("run", path, "-g", "faithfulness >= 0.9", "--stop-early") == 1
    assert "STOPPED EARLY: 179 more" in capsys.readouterr().out
    assert run("run", path, "-g", "faithfulness >= 0.9", "--json") == 1
    assert len(json.loads(capsys.readouterr().out)["results"]) == 200


def test_a_threshold_finer_than_the_counts_is_warned_of(
    judge: FakeJudge, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("run", data, "-g", "faithfulness.pooled >= 0.8") == 1
    assert "2 verdicts cannot express 0.80; the rule acts as >= 1.00" in capsys.readouterr().err


def test_json_is_one_document_with_every_statement_and_its_verdict(
    judge: FakeJudge, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("run", data, "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema_version"] == "1"
    assert document["summaries"][0]["mean"] == 0.5
    statements = document["results"][0]["statements"]
    assert [item["verdict"]["value"] for item in statements] == [1, 0]
    spans = [(item["statement"]["start"], item["statement"]["end"]) for item in statements]
    assert [ROW["response"][start:end] for start, end in spans] == ["It rained.", "It snowed."]


def test_reports_are_written_where_asked(judge: FakeJudge, data: Path, tmp_path: Path) -> None:
    assert (
        run("run", data, "-o", tmp_path / "out.json", "-o", tmp_path / "out.md", "-o", tmp_path / "j.xml")
        == 0
    )
    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["passed"] is True
    assert (tmp_path / "out.md").is_file()
    assert (tmp_path / "j.xml").is_file()


def test_a_saved_report_is_written_in_every_format_without_a_judge(
    judge: FakeJudge, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "out.json"
    assert run("run", data, "-o", saved, "-o", tmp_path / "first.html") == 0
    asked = len(judge.asked)
    capsys.readouterr()
    others = [tmp_path / name for name in ("again.html", "again.json", "again.xml", "again.md")]
    assert run("report", saved, *(word for path in others for word in ("-o", path))) == 0
    assert capsys.readouterr().out == ""
    assert others[0].read_bytes() == (tmp_path / "first.html").read_bytes()
    assert others[1].read_bytes() == saved.read_bytes()
    assert len(judge.asked) == asked


def test_a_saved_report_is_printed_and_one_sample_is_shown_in_full(
    judge: FakeJudge, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "out.json"
    run("run", data, "-o", saved)
    printed = capsys.readouterr().out
    # Long names of folders are folded at the edge.
    assert f"anvil-local report {saved} --sample 1".replace(" ", "") in "".join(printed.split())
    assert run("report", saved) == 0
    assert capsys.readouterr().out == printed
    for result in load_report(saved).results:
        assert run("report", saved, "--sample", result.sample_id) == 0
        shown = " ".join(capsys.readouterr().out.split())
        # Whatever its score: each verdict, and what it was judged by.
        texts = [item.statement.text for item in result.statements]
        sample = result.sample
        texts += [sample.question or "", sample.response or "", *(sample.retrieved_contexts or ())]
        assert all(" ".join(text.split()) in shown for text in texts)
    assert run("report", saved, "--sample", "2") == 2
    assert "no such sample" in capsys.readouterr().err


def test_a_minimum_makes_samples_fail_in_junit_alone(judge: FakeJudge, data: Path, tmp_path: Path) -> None:
    path = tmp_path / "j.xml"
    assert run("run", data, "-o", path, "--min-sample-score", "0.9") == 0
    assert "It snowed." in path.read_text(encoding="utf-8").split("ScoreTooLow")[1]


def test_github_gets_annotations_on_stderr_and_its_summary(
    judge: FakeJudge,
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    assert run("run", data, "--github", "--json", "-g", "faithfulness>=0.9") == 1
    output = capsys.readouterr()
    json.loads(output.out)
    assert "\n::error title=Gate failed::faithfulness.mean 0.50" in f"\n{output.err}"
    assert (tmp_path / "summary.md").read_text(encoding="utf-8").startswith("## anvil-local: FAIL")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--gate", "faithfullness>=0.8"], "faithfulness"),
        (["--metric", "faith"], "faith"),
        (["-o", "report.docx"], "report.docx"),
        (["--max-unscored", "2"], "max-unscored"),
        (["--formatter", "ragas/9"], "ragas/1"),
        (["--metric", "goal"], "goal"),
    ],
)
def test_bad_options_exit_with_2_name_the_value_and_judge_nothing(
    judge: FakeJudge,
    data: Path,
    arguments: list[str],
    named: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("run", data, *arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert named in captured.err
    assert "Traceback" not in captured.err


def test_a_bad_row_exits_with_2_names_its_line_and_judges_nothing(
    judge: FakeJudge, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps(ROW) + "\n" + json.dumps({"user_input": "Q?"}) + "\n", encoding="utf-8")
    assert run("run", path) == 2
    assert f"{path}:2" in capsys.readouterr().err
    assert judge.asked == []
    assert run("run", path, "--skip-bad-rows") == 0
    assert len(judge.asked) == 2


def test_a_missing_file_exits_with_2_and_an_empty_one_with_5(judge: FakeJudge, tmp_path: Path) -> None:
    assert run("run", tmp_path / "nowhere.jsonl") == 2
    (tmp_path / "empty.jsonl").write_text("", encoding="utf-8")
    assert run("run", tmp_path / "empty.jsonl") == 5


def test_a_statement_that_the_engine_cannot_decide_is_unscored_and_fails_the_gate(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = FakeJudge([1, EngineError("broken")])
    monkeypatch.setattr(options, "build_judge", lambda config, **_: fake)
    assert run("run", data, "--json", "--gate", "faithfulness>=0.5") == 1
    result = json.loads(capsys.readouterr().out)["results"][0]
    assert (result["supported"], result["scored"], result["unscored"]) == (1, 1, 1)
    assert result["statements"][1]["verdict"] | {"windows": 1} == {
        "value": None, "p_supported": None, "margin": None, "mass": None,
        "reason": "engine_error", "windows": 1, "window": None, "votes": [],
    }  # fmt: skip


def test_an_interrupted_run_writes_what_is_finished_and_exits_with_130(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = 0

    def answer(task: str, fields: object) -> int:
        nonlocal asked
        asked += 1
        if asked > 80:
            raise KeyboardInterrupt
        return 1

    path = tmp_path / "long.jsonl"
    path.write_text("\n".join(json.dumps(ROW) for _ in range(100)), encoding="utf-8")
    monkeypatch.setattr(options, "build_judge", lambda config, **_: FakeJudge(answer))
    assert run("run", path, "-o", tmp_path / "out.json", "--gate", "faithfulness>=0.5") == 130
    report = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert report["complete"] is False
    assert report["passed"] is False
    assert len(report["results"]) == 32
    assert "interrupted" in capsys.readouterr().err


def test_judge_prints_a_line_a_statement_and_exits_with_1_if_one_is_refused(
    judge: FakeJudge, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("judge", "-c", "It rained.", "It was wet.") == 0
    assert run("judge", "-c", "It rained.", "It was wet.", "It snowed.") == 1
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "1  margin +4.00  It was wet.",
        "0  margin -4.00  It snowed.",
    ]


def test_judge_wants_the_context_once_and_a_statement(judge: FakeJudge) -> None:
    assert run("judge", "It rained.") == 2
    assert run("judge", "-c", "a", "-f", "b", "It rained.") == 2
    assert run("judge", "-c", "a") == 2


def test_decompose_prints_spans_and_exits_with_5_without_a_claim(
    judge: FakeJudge, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("decompose", "It rained. It snowed.") == 0
    assert capsys.readouterr().out.splitlines() == ["    0-10    It rained.", "   11-21    It snowed."]
    assert run("decompose", "I don't know.") == 5


def test_goal_shows_reached_claimed_and_done_apart(
    judge: FakeJudge, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.json"
    messages = [{"role": "user", "content": "Stop."}, {"role": "assistant", "content": "Stopped."}]
    path.write_text(json.dumps(messages), encoding="utf-8")
    assert run("goal", path, "--reference", "It stopped.", "--json") == 0
    goal = json.loads(capsys.readouterr().out)["goal"]
    assert goal["reached"]["value"] == 1
    assert goal["claimed"]["value"] == 1
    assert goal["done"]["value"] is None
    assert goal["done"]["reason"] == "no_tool_results"


def test_escape_sequences_in_the_data_never_reach_the_terminal(
    judge: FakeJudge, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "ansi.jsonl"
    row = ROW | {"id": "\x1b]0;x\x07", "response": "\x1b[2JIt snowed."}
    path.write_text(json.dumps(row), encoding="utf-8")
    run("run", path)
    run("judge", "-c", "c", "\x1b[31mred snow")
    captured = capsys.readouterr()
    assert "\x1b" not in captured.out + captured.err


def test_a_reader_that_goes_away_does_not_change_the_exit_code(data: Path) -> None:
    program = (
        "import sys\n"
        "from anvil_local.cli import app, options\n"
        "from anvil_local.judge import FakeJudge\n"
        "options.build_judge = lambda config, **_: FakeJudge([1])\n"
        "app.main(sys.argv[1:])\n"
    )
    command = [sys.executable, "-c", program, "run", str(data), "-q", "--gate", "faithfulness>=0.9"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=Path(__file__).parents[1]
    )
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert errors == b""


def test_a_bug_is_told_from_a_failed_gate(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def explode(config: object, **_: object) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(options, "build_judge", explode)
    assert run("run", data) == 3
    assert "boom" in capsys.readouterr().err
