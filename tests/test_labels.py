"""Labels for `calibrate`: what is picked, what it weighs, and the sitting at the terminal."""

from __future__ import annotations

import io
import json
import os
import pty
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil_local import FakeJudge, Report, evaluate
from anvil_local.calibration import read_labelled
from anvil_local.cli import app
from anvil_local.cli import label as sitting
from anvil_local.errors import InputError, NothingToJudge, UsageError
from anvil_local.labels import Label, Selection, count_strata, read_labels, render_labels, select_verdicts
from anvil_local.reports import write_reports


def report(margins: list[float], **more: Any) -> Report:
    """Two statements a sample, with these margins in order."""
    names = [f"Word{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(len(margins))]
    rows = [
        {
            "id": f"s{first // 2}",
            "user_input": "What is it?",
            "response": " ".join(f"It is {name}." for name in names[first : first + 2]),
            "retrieved_contexts": ["A context.", "Another."],
        }
        for first in range(0, len(margins), 2)
    ]
    told = dict(zip(names, map(float, margins), strict=True))
    judge = FakeJudge(lambda _, fields: told[fields["statement"].removeprefix("It is ").rstrip(".")])
    return evaluate(rows, judge=judge, **more)


MARGINS = [(-1) ** n * (0.1 + n / 10) for n in range(60)]


@cache
def full_report() -> Report:
    return report(MARGINS)


def test_half_is_nearest_to_the_threshold_and_half_is_drawn_from_the_rest() -> None:
    found = select_verdicts(full_report(), count=20)
    near = {pick.id for pick in found.picks if pick.stratum == "near"}
    assert near == {f"s{n // 2}#{n % 2 + 1}" for n in range(10)}
    assert count_strata(found.picks) == {"near": 10, "random": 10}
    assert found.population == {"near": 10, "random": 50}
    assert len({pick.id for pick in found.picks}) == 20


def test_the_threshold_of_the_judge_is_what_near_means() -> None:
    old = full_report()
    judge = old.judge.model_copy(update={"parts": {"thresholds": {"support": 3.0}}})
    found = select_verdicts(old.model_copy(update={"judge": judge}), count=4)
    near = {pick.statement for pick in found.picks if pick.stratum == "near"}
    values = {item.statement.text: item.verdict.margin for r in old.results for item in r.statements}
    assert sorted(values[text] or 0 for text in near) == pytest.approx([2.9, 3.1])


def test_the_order_tells_nothing_and_the_seed_decides_it() -> None:
    first, again = (select_verdicts(full_report(), count=40, seed=1) for _ in range(2))
    assert first == again
    assert first != select_verdicts(full_report(), count=40, seed=2)
    strata = [pick.stratum for pick in first.picks]
    assert "near" in strata[:10]
    assert "random" in strata[:10]


@given(st.integers(1, 60), st.integers(1, 60), st.sampled_from([0.2, 0.5, 1.0]))
def test_more_of_the_same_holds_all_that_was_picked_before(small: int, large: int, share: float) -> None:
    small, large = sorted((small, large))
    old = full_report()
    few, many = (select_verdicts(old, count=count, random_share=share) for count in (small, large))
    assert {pick.id for pick in few.picks} <= {pick.id for pick in many.picks}
    assert len(few.picks) == small
    assert sum(few.population.values()) == 60


def test_a_small_report_is_picked_whole() -> None:
    found = select_verdicts(report(MARGINS[:6]), count=50)
    assert len(found.picks) == 6
    assert found.population == {"near": 3, "random": 3}


def test_statements_without_a_model_s_verdict_are_counted_and_not_picked() -> None:
    rows = [
        {"id": "a", "response": "It rained.", "retrieved_contexts": [""]},
        {"id": "b", "response": "It rained.", "retrieved_contexts": ["Rain."]},
    ]
    found = select_verdicts(evaluate(rows, judge=FakeJudge([1])))
    assert [pick.id for pick in found.picks] == ["b#1"]
    assert found.aside == 1
    with pytest.raises(NothingToJudge, match="nothing to label"):
        select_verdicts(evaluate(rows[:1], judge=FakeJudge([1])))


@pytest.mark.parametrize("share", [0.0, -1, 1.5])
def test_without_a_random_part_nothing_is_picked(share: float) -> None:
    with pytest.raises(UsageError, match="random share"):
        select_verdicts(full_report(), random_share=share)


# Weights


def label_all(selection: Selection, truth: Callable[[str], int]) -> list[Label]:
    return [Label.model_validate({"pick": pick, "label": truth(pick.id)}) for pick in selection.picks]


def rows_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_the_weights_add_up_to_the_verdicts_of_the_report_however_many_are_labelled() -> None:
    found = select_verdicts(full_report(), count=20)
    labels = label_all(found, lambda _: 1)
    for part in (labels, labels[:13]):
        rows = rows_of(render_labels(part, found))
        assert sum(row["weight"] for row in rows) == pytest.approx(60)
    weights = {row["kind"]: row["weight"] for row in rows_of(render_labels(labels, found))}
    assert weights == {"near": 1, "random": 5}


def test_weighted_labels_are_right_on_average_where_unweighted_ones_are_not() -> None:
    # The judge is wrong on most of what is near its threshold and on little of the rest.
    old = full_report()
    random = np.random.default_rng(5)
    values = {
        f"{result.sample_id}#{n}": item.verdict
        for result in old.results
        for n, item in enumerate(result.statements, 1)
    }
    wrong = {own: abs(v.margin or 0) < 1 or random.random() < 0.1 for own, v in values.items()}
    true_share = sum(wrong.values()) / 60
    weighted, plain = [], []
    for seed in range(200):
        found = select_verdicts(old, count=20, seed=seed)
        # Stopped early, after fourteen.
        labels = label_all(found, lambda own: int(wrong[own]))[:14]
        rows = rows_of(render_labels(labels, found))
        weights = [row["weight"] for row in rows]
        weighted.append(np.average([row["label"] for row in rows], weights=weights))
        plain.append(sum(row["label"] for row in rows) / len(rows))
    assert np.mean(weighted) == pytest.approx(true_share, abs=0.02)
    assert np.mean(plain) > true_share + 0.07


def test_calibrate_reads_the_rows_with_their_contexts(tmp_path: Path) -> None:
    found = select_verdicts(full_report(), count=20)
    path = tmp_path / "labels.jsonl"
    path.write_text(render_labels(label_all(found, lambda own: int(own.endswith("1"))), found), "utf-8")
    rows = read_labelled(path).rows
    assert len(rows) == 20
    assert {row.context for row in rows if hasattr(row, "context")} == {"A context.\n\nAnother."}
    assert {row.id: row.label for row in rows}["s0#1"] == 1


# Resuming


def test_labels_are_read_back_and_foreign_ones_refused(tmp_path: Path) -> None:
    found = select_verdicts(full_report(), count=20)
    path = tmp_path / "labels.jsonl"
    assert read_labels(path, found) == []
    labels = label_all(found, lambda _: 0)[:7]
    path.write_text(render_labels(labels, found), "utf-8")
    assert read_labels(path, found) == labels
    assert read_labels(path, select_verdicts(full_report(), count=40)) != []
    with pytest.raises(InputError, match="not of this selection"):
        read_labels(path, select_verdicts(full_report(), count=20, seed=9))


@pytest.mark.parametrize(
    "line", ["{", "[]", "{}", '{"id": "s0#1", "statement": "x", "context": "y", "label": 2}', '{"id": 1}']
)
def test_a_file_of_something_else_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(line + "\n", "utf-8")
    with pytest.raises(InputError) as error:
        read_labels(path, select_verdicts(full_report(), count=20))
    assert error.value.where == f"{path}:1"
    assert path.read_text("utf-8") == line + "\n"


# The sitting


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    write_reports(full_report(), [tmp_path / "out.json"])

    def call(keys: str, *arguments: str) -> int:
        monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(keys)))
        with pytest.raises(SystemExit) as exit_:
            app.main(["label", str(tmp_path / "out.json"), "-o", str(tmp_path / "l.jsonl"), *arguments])
        return int(exit_.value.code or 0)

    return call


def test_a_sitting_labels_skips_undoes_quits_and_is_taken_up_again(
    run: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("10su1xq", "-n", "6") == 0  # the skip is taken back, then the third gets a 1
    rows = rows_of((tmp_path / "l.jsonl").read_text("utf-8"))
    assert [row["label"] for row in rows] == [1, 0, 1]
    captured = capsys.readouterr()
    assert "--- 1 of 6" in captured.out
    assert "3 of 6 labelled" in captured.err
    assert "next: anvil-local calibrate" in captured.err
    assert run("u0", "-n", "6") == 0  # nothing to take back in a new sitting; the input ends
    captured = capsys.readouterr()
    assert "3 of 6 are labelled already" in captured.err
    assert "--- 4 of 6" in captured.out
    again = rows_of((tmp_path / "l.jsonl").read_text("utf-8"))
    assert [row["label"] for row in again] == [1, 0, 1, 0]
    assert [row["id"] for row in again[:3]] == [row["id"] for row in rows]


def test_a_label_can_be_taken_back(run: Callable[..., int], tmp_path: Path) -> None:
    assert run("1u0q", "-n", "2") == 0
    assert [row["label"] for row in rows_of((tmp_path / "l.jsonl").read_text("utf-8"))] == [0]


def test_what_the_judge_said_is_not_shown(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("q") == 0
    out = capsys.readouterr().out
    assert "A context." in out
    assert "Another." in out
    assert "What is it?" in out
    for telling in ("refused", "margin", "near", "random", "0.1"):
        assert telling not in out


def test_a_sitting_that_says_nothing_writes_nothing(run: Callable[..., int], tmp_path: Path) -> None:
    assert run("sq") == 0
    assert not (tmp_path / "l.jsonl").exists()


def test_every_label_is_on_disk_before_the_next_question(
    run: Callable[..., int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = iter("110")

    def press() -> str:
        try:
            return next(keys)
        except StopIteration:
            raise KeyboardInterrupt from None

    monkeypatch.setattr(sitting, "_read_key", press)
    assert run("") == 130
    assert len(rows_of((tmp_path / "l.jsonl").read_text("utf-8"))) == 3


def test_on_a_terminal_one_key_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    controller, terminal = pty.openpty()
    with os.fdopen(terminal, "r", encoding="utf-8", newline="", closefd=True) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        timer = threading.Timer(0.2, lambda: os.write(controller, b"1"))
        timer.start()
        assert sitting._read_key() == "1"
        timer.join()
    os.close(controller)


def test_a_folder_that_is_not_there_is_refused_before_the_first_question(
    tmp_path: Path, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("1", "-o", str(tmp_path / "no" / "l.jsonl")) == 2
    assert "no such folder" in capsys.readouterr().err
