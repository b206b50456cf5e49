"""Corrected rates: simulations of coverage, and what has no corrected rate."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil_local.calibration import Estimate, Judged, choose_threshold, estimate_share, measure
from anvil_local.cards import CardData, Measurement, load_card, make_card, write_card
from anvil_local.cli import app as cli
from anvil_local.cli import options
from anvil_local.correction import correct_report, effective_size, prediction_powered, rogan_gladen
from anvil_local.judge import FakeJudge
from anvil_local.labels import Label, render_labels, select_verdicts
from anvil_local.records import Fingerprint, Interval, Report
from anvil_local.reports import load_report, render_json
from anvil_local.runner import evaluate
from anvil_local.stats import clustered_interval, normal, wilson

RUNS = 400


def simulate(truth: float, sensitivity: float, specificity: float, seed: int) -> dict[str, float]:
    """How often each interval holds the truth: 80 samples of 5 statements that go together, 150 labels."""
    random = np.random.default_rng(seed)
    held = {"raw": 0, "rogan_gladen": 0, "prediction_powered": 0}
    for _ in range(RUNS):
        of_sample = random.beta(truth * 4, (1 - truth) * 4, 80)
        labels = (random.random((80, 5)) < of_sample[:, None]).astype(int)
        one = np.where(labels == 1, sensitivity, 1 - specificity)
        verdicts = (random.random((80, 5)) < one).astype(int)
        raw = float(verdicts.mean())
        interval = clustered_interval((int(row.sum()), 5) for row in verdicts)
        # The card: 100 rows of each label, judged by the same judge.
        right = [int(random.binomial(100, share)) for share in (sensitivity, specificity)]
        card = [estimate_share(part, 100, "none") for part in right]
        _, by_card = rogan_gladen(raw, interval, card[0], card[1])
        chosen = random.choice(400, 150, replace=False)
        errors = [int(error) for error in (labels - verdicts).reshape(-1)[chosen]]
        _, by_labels = prediction_powered(raw, interval, errors, [400 / 150] * 150)
        for name, found in (("raw", interval), ("rogan_gladen", by_card), ("prediction_powered", by_labels)):
            assert found.low is not None
            assert found.high is not None
            held[name] += found.low <= truth <= found.high
    return {name: count / RUNS for name, count in held.items()}


@pytest.mark.parametrize(
    ("truth", "sensitivity", "specificity"), [(0.8, 0.7, 0.9), (0.5, 0.9, 0.75), (0.9, 0.8, 0.6)]
)
def test_corrected_intervals_hold_the_truth_where_the_raw_one_does_not(
    truth: float, sensitivity: float, specificity: float
) -> None:
    found = simulate(truth, sensitivity, specificity, seed=7)
    # 93 % of 400 runs; the standard error of a coverage of 95 % is 1.1 %.
    assert found["rogan_gladen"] >= 0.93
    assert found["prediction_powered"] >= 0.93
    assert found["raw"] < 0.8


def test_without_errors_of_the_judge_nothing_is_corrected() -> None:
    sure = Estimate(value=1.0, low=0.999, high=1.0)
    raw = Interval(low=0.55, high=0.65)
    value, interval = rogan_gladen(0.6, raw, sure, sure)
    assert value == pytest.approx(0.6)
    assert interval.low == pytest.approx(0.55, abs=0.01)
    assert interval.high == pytest.approx(0.65, abs=0.01)


def test_a_judge_like_a_coin_has_no_corrected_rate() -> None:
    coin = estimate_share(52, 100, "none")
    value, interval = rogan_gladen(0.5, Interval(low=0.4, high=0.6), coin, coin)
    assert (value, interval.low, interval.high) == (None, None, None)
    assert "coin" in str(interval.reason)


def test_what_has_no_interval_has_no_corrected_rate_but_a_reason() -> None:
    known = estimate_share(90, 100, "none")
    nothing = Interval(low=None, high=None, reason="one sample")
    assert "one sample" in str(rogan_gladen(0.5, nothing, known, known)[1].reason)
    assert (
        rogan_gladen(0.5, Interval(low=0.4, high=0.6), Estimate(value=None, reason="no 1"), known)[0] is None
    )
    assert prediction_powered(0.5, nothing, [0] * 20, [1.0] * 20)[0] is None
    assert "fewer than 10" in str(prediction_powered(0.5, Interval(low=0.4, high=0.6), [0], [1.0])[1].reason)


@pytest.mark.parametrize("weight", [2.0, 0.1, 7 / 3])
@pytest.mark.parametrize(("error", "value"), [(0, 0.5), (1, 1.0), (-1, 0.0)])
def test_labels_that_all_say_the_same_do_not_make_the_rate_sure(
    error: int, value: float, weight: float
) -> None:
    raw = Interval(low=0.4, high=0.6)
    found, interval = prediction_powered(0.5, raw, [error] * 30, [weight] * 30)
    assert found == pytest.approx(min(1.0, max(0.0, 0.5 + error)))
    # One error each way among 30 is a standard error of about 0.05, beside that of the raw rate.
    other, mixed = prediction_powered(0.5, raw, [error] * 28 + [error - 1, error + 1], [weight] * 30)
    assert other is not None
    assert interval.low == pytest.approx(mixed.low, abs=0.01)
    assert interval.high == pytest.approx(mixed.high, abs=0.01)


@given(st.floats(0, 1), st.floats(2, 1e5))
def test_the_effective_size_is_the_inverse_of_wilson(rate: float, size: float) -> None:
    low, high = wilson(rate, size, normal())
    assert effective_size(rate, high - low) == pytest.approx(size, rel=1e-3)


def test_more_rows_on_the_card_make_the_interval_narrower() -> None:
    widths = []
    for rows in (40, 160, 640):
        known = estimate_share(rows * 9 // 10, rows, "none")
        _, interval = rogan_gladen(0.7, Interval(low=0.68, high=0.72), known, known)
        assert interval.low is not None
        assert interval.high is not None
        widths.append(interval.high - interval.low)
    assert all(wide > narrow for wide, narrow in pairwise(widths))


# Beside the raw rate, in a report


def test_a_run_with_a_card_holds_the_corrected_rates(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text("".join(f"{result.sample.model_dump_json()}\n" for result in report.results))
    monkeypatch.setattr(
        options,
        "build_judge",
        lambda config, refresh=False: FakeJudge(
            lambda task, fields: 1.0 if "snow" not in fields["statement"] else -1.0
        ),
    )
    out = [tmp_path / f"out.{suffix}" for suffix in ("json", "md", "html")]
    path = card(tmp_path / "card.json", report.judge, 36)
    assert run("run", data, "--judge-card", path, *(word for o in out for word in ("-o", o))) == 0
    assert "pooled 0.25; without the judge's errors 0.19 [" in " ".join(capsys.readouterr().out.split())
    found = load_report(out[0])
    assert found.corrected["faithfulness"].corrected == pytest.approx(0.1875)
    assert found.corrected["faithfulness"].labels == 80
    assert found.corrected == correct_report(found, load_card(path))
    for o in out[1:]:
        assert "errors 0.19" in o.read_text(encoding="utf-8")
    # A coin's card says why there is none; another judge's card is noted and corrects nothing.
    assert run("run", data, "--judge-card", card(tmp_path / "coin.json", report.judge, 20)) == 0
    assert "no corrected rate, the card does not tell the judge" in " ".join(capsys.readouterr().out.split())
    other = Fingerprint(digest="f" * 64, parts={"model": {"name": "other"}})
    assert run("run", data, "--judge-card", card(tmp_path / "other.json", other, 36)) == 0
    assert "note: no corrected rates: the card is of another judge" in capsys.readouterr().err


# The command


@pytest.fixture
def report() -> Report:
    """20 answers of 2 statements; the judge refuses what speaks of snow, 3 of 4."""
    rows = [
        {
            "id": f"{n}",
            "response": f"It snowed on day {n}. It {('rained', 'snowed')[n % 2]}.",
            "contexts": ["W."],
        }
        for n in range(20)
    ]
    return evaluate(
        rows, judge=FakeJudge(lambda task, fields: 1.0 if "snow" not in fields["statement"] else -1.0)
    )


@pytest.fixture
def saved(report: Report, tmp_path: Path) -> Path:
    path = tmp_path / "report.json"
    path.write_text(render_json(report), encoding="utf-8")
    return path


def card(path: Path, judge: Fingerprint, right: int, *, task: str = "support", count: int = 1) -> Path:
    """So many measurements of 40 rows of each label, so many of them right."""
    rows = [
        Judged(
            label=label, margin=1.0 if value else -1.0, value=value, mass=0.9, set="all", id=f"{label}-{n}"
        )
        for label in (0, 1)
        for n, value in enumerate([label] * right + [1 - label] * (40 - right))
    ]
    measured = Measurement.model_validate({"title": "Mine", "task": task, **of_rows(rows)})
    write_card(make_card(judge, measurements=[measured] * count), [path])
    return path


def of_rows(rows: list[Judged]) -> dict[str, Any]:
    return {
        "data": CardData(file="mine.jsonl", sha256="ee" * 32, rows=80, sets={"all": 80}),
        "measured": measure(rows, draws=50),
        "threshold": choose_threshold(rows),
    }


def run(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as exit_:
        cli.main([str(argument) for argument in arguments])
    return int(exit_.value.code or 0)


def test_a_card_corrects_the_rate_of_its_judge(
    report: Report, saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = card(tmp_path / "card.json", report.judge, 36)
    assert run("correct", saved, "--judge-card", path, "--json") == 0
    found = json.loads(capsys.readouterr().out)["faithfulness"]
    assert found["raw"] == 0.25
    # (0.25 + 0.9 - 1) / (0.9 + 0.9 - 1)
    assert found["corrected"] == pytest.approx(0.1875)
    assert found["interval"]["low"] < 0.1875 < found["interval"]["high"]
    assert run("correct", saved, "--judge-card", path) == 0
    assert "corrected  0.19" in capsys.readouterr().out


def test_a_card_of_another_judge_and_a_coin_s_card_correct_nothing(
    report: Report, saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = Fingerprint(digest="f" * 64, parts={"model": {"name": "other"}})
    assert run("correct", saved, "--judge-card", card(tmp_path / "other.json", other, 36)) == 2
    assert "another judge" in capsys.readouterr().err
    assert run("correct", saved, "--judge-card", card(tmp_path / "coin.json", report.judge, 20)) == 0
    assert "corrected  none: " in capsys.readouterr().out


def test_labels_of_the_report_correct_its_rate_and_others_are_refused(
    report: Report, saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    selection = select_verdicts(report, count=24)
    # People find that it did snow on each day: every 0 of those statements is wrong.
    labels = [Label(pick=pick, label=1 if "day" in pick.statement else 0) for pick in selection.picks]
    path = tmp_path / "labels.jsonl"
    path.write_text(render_labels(labels, selection), encoding="utf-8")
    assert run("correct", saved, "--labels", path, "--json") == 0
    found = json.loads(capsys.readouterr().out)["faithfulness"]
    assert (found["raw"], found["labels"]) == (0.25, 24)
    assert found["interval"]["low"] < found["corrected"] < found["interval"]["high"]
    path.write_text(path.read_text(encoding="utf-8").replace("day", "night"), encoding="utf-8")
    assert run("correct", saved, "--labels", path) == 2
    assert "this very report" in capsys.readouterr().err


def test_one_way_to_correct_must_be_chosen(saved: Path) -> None:
    assert run("correct", saved) == 2
    assert run("correct", saved, "--judge-card", "a.json", "--labels", "b.jsonl") == 2


def test_zeros_by_rule_are_no_errors_of_the_judge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judged = [{"id": f"{n}", "response": f"It rained on day {n}.", "contexts": ["W."]} for n in range(20)]
    empty = [{"id": f"e{n}", "response": f"It rained on day {n}.", "contexts": []} for n in range(20)]
    report = evaluate([*judged, *empty], judge=FakeJudge([1.0]))
    path = tmp_path / "report.json"
    path.write_text(render_json(report), encoding="utf-8")
    assert run("correct", path, "--judge-card", card(tmp_path / "card.json", report.judge, 36), "--json") == 0
    found = json.loads(capsys.readouterr().out)["faithfulness"]
    # Every verdict of the model is 1, so the corrected share of them is 1; the other half stays 0.
    assert (found["raw"], found["corrected"]) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("arguments", "task", "count", "words"),
    [
        ([], "support", 2, "2 measurements for faithfulness"),
        (["--set", "all"], "support", 2, "2 measurements for faithfulness"),
        (["--set", "other"], "support", 1, "its sets: all"),
        ([], "goal", 1, "measured nothing that this report holds"),
    ],
)
def test_a_card_that_does_not_say_one_thing_of_the_report_is_refused(
    arguments: list[str],
    task: str,
    count: int,
    words: str,
    report: Report,
    saved: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = card(tmp_path / "card.json", report.judge, 36, task=task, count=count)
    assert run("correct", saved, "--judge-card", path, *arguments) == 2
    assert words in capsys.readouterr().err
