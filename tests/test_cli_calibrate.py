"""`anvil-local calibrate` without a model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anvil_local.cards import load_card
from anvil_local.cli import app as cli
from anvil_local.cli import options
from anvil_local.errors import EngineError
from anvil_local.judge import FakeJudge

Fake = Callable[..., FakeJudge]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    def install(*arguments: Any, **others: Any) -> FakeJudge:
        judge = FakeJudge(*arguments, **others)
        monkeypatch.setattr(options, "build_judge", lambda config: judge)
        return judge

    return install


@pytest.fixture
def judge(fake: Fake) -> FakeJudge:
    """Right on all that is easy; on what is hard it says 1."""
    return fake(lambda task, fields: -2.0 if "dry" in fields["statement"] else 2.0)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rows = []
    for n in range(20):
        rows.append(row(f"It was {'wet' if n % 2 else 'dry'} {n}.", n % 2, "easy", context=f"c{n % 4}"))
        rows.append(row(f"It was cold {n}.", n % 2, "hard", context=f"c{n % 4}"))
    return write(tmp_path / "labelled.jsonl", rows)


def row(statement: str, label: int, name: str, *, context: str = "It rained.") -> dict[str, Any]:
    return {"context": context, "statement": statement, "label": label, "set": name}


def write(path: Path, rows: list[Any]) -> Path:
    path.write_text("\n".join(json.dumps(item) for item in rows), encoding="utf-8")
    return path


def run(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as exit_:
        cli.main([str(argument) for argument in arguments])
    return int(exit_.value.code or 0)


def test_the_table_is_what_people_see(
    judge: FakeJudge, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("calibrate", data) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0] == f"judge fake, {judge.fingerprint.short}"
    assert lines[2:6] == [
        "set                           rows  balanced accuracy      AUROC   kappa",
        "easy                            20  1.000 [0.804, 1.000]   1.000   1.000",
        "hard                            20  0.500 [0.361, 0.639]   0.500   0.000",
        "macro                           40  0.750 [0.630, 0.819]   0.750   0.500",
    ]
    assert lines[7] == "threshold in force +0.00: 0.750 [0.630, 0.819]"
    assert lines[8] == "best on these rows +0.00: 0.750, too good to be true"
    assert lines[9].startswith("the same, cross-fitted: 0.750 [")
    assert max(map(len, lines)) <= 80
    assert "note: Support on labelled.jsonl: not told from a coin on hard." in captured.err
    assert run("calibrate", data, "-q") == 0
    assert capsys.readouterr().err == ""


def test_rows_that_share_a_context_are_judged_one_after_the_other(judge: FakeJudge, data: Path) -> None:
    assert run("calibrate", data) == 0
    contexts = [fields["context"] for _, fields in judge.asked]
    assert contexts == sorted(contexts)
    assert len(contexts) == 40


def test_json_is_the_card_and_cards_are_written_where_asked(
    judge: FakeJudge, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = tmp_path / "card.json", tmp_path / "card.md"
    assert run("calibrate", data, "--json", "-o", paths[0], "-o", paths[1]) == 0
    document = json.loads(capsys.readouterr().out)
    card = load_card(paths[0])
    assert document == card.model_dump(mode="json")
    (measurement,) = card.measurements
    assert measurement.data.rows == 40
    assert measurement.data.sets == {"easy": 20, "hard": 20}
    assert measurement.seconds_per_row is not None
    assert card.judge == judge.fingerprint
    assert "| `easy` | 20 |" in paths[1].read_text(encoding="utf-8")
    # No row of the data is in a card.
    assert "It was" not in paths[0].read_text(encoding="utf-8")


def test_a_context_longer_than_the_window_is_read_in_windows(fake: Fake, tmp_path: Path) -> None:
    judge = fake(lambda task, fields: int("needle" in fields["context"]), window=90)
    hay = " ".join(f"The field {n} has grass and no trees at all." for n in range(40))
    rows = [
        row("It is there.", 1, "s", context=f"{hay} The needle is here."),
        row("It is.", 0, "s", context=hay),
    ]
    assert run("calibrate", write(tmp_path / "l.jsonl", rows), "-o", tmp_path / "card.json") == 0
    assert len(judge.asked) > 8
    (measurement,) = load_card(tmp_path / "card.json").measurements
    assert measurement.measured.macro.accuracy.value == 1


def test_traces_are_judged_by_their_reference_or_by_what_was_wanted(
    fake: Fake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge = fake(lambda task, fields: int("Stopped" in fields["trace"]))
    asks = {"role": "user", "content": "Stop."}
    done, not_done = ({"role": "assistant", "content": text} for text in ("Stopped.", "I cannot."))
    rows = [
        {"messages": [asks, done], "reference": "It stopped.", "label": 1},
        {"messages": [asks, not_done], "label": 0},
    ]
    path = write(tmp_path / "traces.jsonl", rows)
    assert run("calibrate", path, "--task", "goal") == 0
    assert "all                              2  1.000 [" in capsys.readouterr().out
    # One question a trace, and one text written where there is no reference.
    assert sorted(fields["outcome"] for _, fields in judge.asked) == [
        "It stopped.",
        "Stop.",
    ]
    assert len(judge.wrote) == 1


def test_one_label_is_no_crash_and_no_nan(
    judge: FakeJudge, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "l.jsonl", [row("It was wet.", 1, "s"), row("It was dry.", 1, "s")])
    assert run("calibrate", path) == 0
    captured = capsys.readouterr()
    assert "s                                2  only 1s, 0.500 right    none    none" in captured.out
    assert "nan" not in captured.out.lower()
    assert "best threshold: none (no set has scored rows of both labels)" in captured.out
    assert run("calibrate", path, "--json") == 0
    assert "NaN" not in capsys.readouterr().out


def test_rows_that_the_engine_cannot_decide_are_counted_and_all_of_them_end_with_3(
    fake: Fake, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "l.jsonl", [row("It was wet.", 1, "s"), row("It was dry.", 0, "s")])
    fake([1, EngineError("broken")])
    assert run("calibrate", path) == 0
    assert "1 of 2 rows could not be judged" in capsys.readouterr().out
    fake([EngineError("broken")])
    assert run("calibrate", path) == 3


def test_bad_input_exits_with_2_an_empty_file_with_5_and_nothing_is_judged(
    judge: FakeJudge, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = write(tmp_path / "bad.jsonl", [row("It was wet.", 1, "s"), {"context": "c", "statement": "s"}])
    assert run("calibrate", bad) == 2
    assert f"{bad}:2: `label` is missing" in capsys.readouterr().err
    assert run("calibrate", tmp_path / "nowhere.jsonl") == 2
    assert run("calibrate", data, "-o", tmp_path / "card.xml") == 2
    assert run("calibrate", data, "--task", "taste") == 2
    assert run("calibrate", data, "--task", "goal") == 2
    assert run("calibrate", write(tmp_path / "empty.jsonl", [])) == 5
    assert judge.asked == []


def test_names_of_sets_reach_the_terminal_without_their_escapes(
    judge: FakeJudge, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "l.jsonl", [row("It was wet.", n, "\x1b[31mred" + "x" * 90) for n in (0, 1)])
    assert run("calibrate", path) == 0
    captured = capsys.readouterr()
    assert "\x1b" not in captured.out + captured.err
    assert max(map(len, captured.out.splitlines())) <= 80
