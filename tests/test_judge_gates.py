"""Gate rules about the judge: what is read, and that no card speaks for another judge or for ever."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil_local.calibration import Judged, choose_threshold, measure
from anvil_local.cards import CardData, JudgeCard, Measurement, make_card, render_card_json
from anvil_local.cli import app as cli
from anvil_local.cli import options
from anvil_local.errors import InputError, UsageError
from anvil_local.gates import parse_judge_gate, parse_rules
from anvil_local.judge import FakeJudge
from anvil_local.judge_gates import check_judge_gates, open_card, tasks_of
from anvil_local.records import Fingerprint, GateOutcome

NOW = datetime(2026, 3, 1, tzinfo=UTC)
PARTS: dict[str, Any] = {
    "model": {"name": "small", "sha256": "aa"},
    "adapters": {"support": "bb", "decompose": "cc"},
    "prompts": {"support": {"id": "support/1"}, "goal": {"id": "goal/1"}},
    "thresholds": {"support": 0.0, "goal": 0.0},
    "build": {"instruction_sets": "AVX2"},
}


def fingerprint(**changes: Any) -> Fingerprint:
    parts = PARTS | changes
    return Fingerprint(digest=json.dumps(parts, sort_keys=True).encode().hex()[:64], parts=parts)


def measurement(
    *sets: tuple[str, int], task: str = "support", title: str = "Support on mine.jsonl"
) -> Measurement:
    """Sets of 20 rows, in each of which so many of each label's ten are right."""
    rows = [
        Judged(label=label, margin=margin, value=int(margin > 0), set=name, id=f"{name}{number}")
        for name, right in sets
        for number, (label, margin) in enumerate(
            [(1, 1.0)] * right + [(1, -1.0)] * (10 - right) + [(0, -1.0)] * right + [(0, 1.0)] * (10 - right)
        )
    ]
    counts = {name: 20 for name, _ in sets}
    return Measurement.model_validate(
        {
            "title": title,
            "task": task,
            "data": CardData(file="mine.jsonl", sha256="ee" * 32, rows=len(rows), sets=counts),
            "measured": measure(rows, draws=50),
            "threshold": choose_threshold(rows),
        }
    )


def card(*measurements: Measurement, judge: Fingerprint | None = None, days: float = 10) -> JudgeCard:
    return make_card(
        judge or fingerprint(),
        measurements=measurements or [measurement(("easy", 10), ("hard", 8))],
        created=NOW - timedelta(days=days),
    )


def check(rule: str, of: JudgeCard, **others: Any) -> GateOutcome:
    settings: dict[str, Any] = {"tasks": ("support",), "now": NOW, **others}
    (outcome,) = check_judge_gates(
        [parse_judge_gate(rule)], of, settings.pop("judge", fingerprint()), **settings
    )
    return outcome


@pytest.mark.parametrize(
    ("text", "name", "task", "set_", "threshold"),
    [
        ("judge.kappa.low >= 0.6", "judge.kappa.low", None, None, Fraction(3, 5)),
        ("judge.balanced_accuracy>=80%", "judge.balanced_accuracy", None, None, Fraction(4, 5)),
        ("judge.auroc > .7 where task=goal", "judge.auroc", "goal", None, Fraction(7, 10)),
        (
            'judge.kappa >= 0.1 where set="a b" and task=support',
            "judge.kappa",
            "support",
            "a b",
            Fraction(1, 10),
        ),
        ("judge.calibration_error.high <= 0.1", "judge.calibration_error.high", None, None, Fraction(1, 10)),
        ("judge.kappa > 0", "judge.kappa", None, None, Fraction(0)),
        ("judge.kappa >= 0", "judge.kappa", None, None, Fraction(0)),
    ],
)
def test_a_rule_about_the_judge_is_read(
    text: str, name: str, task: str | None, set_: str | None, threshold: Fraction
) -> None:
    gate = parse_judge_gate(text)
    assert (gate.name, gate.task, gate.set, gate.threshold) == (name, task, set_, threshold)
    assert gate.rule == text


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("judge >= 0.6", "unknown number of a judge card ''", "known: accuracy"),
        ("judge.kapa >= 0.6", "unknown number of a judge card 'kapa'", "did you mean kappa?"),
        ("judge.kappa.lo >= 0.6", "unknown number of a judge card 'kappa.lo'", "did you mean kappa?"),
        ("judge.kappa => 0.6", "unknown comparison '=>'", "did you mean >=?"),
        ("judge.kappa >= 0.6 where lang=de", "cannot be sliced by 'lang'", "task=support"),
        ("judge.kappa >= 0.6 where set=a and set=b", "set stands there twice", "set=NAME"),
        ("judge.kappa >= 0.6 where task=goals", "unknown task 'goals'", "did you mean goal?"),
        ("judge.auroc >= 0", "can never fail", ""),
        ("judge.auroc > 1", "can never pass", ""),
        ("judge.kappa", "cannot read this gate rule", ""),
        ("judge.kappa >= 60", "above 1", "did you mean 60%?"),
    ],
)
def test_a_bad_rule_about_the_judge_is_refused_with_a_hint(text: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_judge_gate(text)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert caught.value.value == text


@given(st.text(max_size=30))
def test_any_text_about_the_judge_is_a_rule_or_a_usage_error(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert parse_judge_gate(f"judge.{text}").rule


def test_rules_are_told_apart() -> None:
    judge, scores = parse_rules(["faithfulness >= 0.8", " judge.kappa >= 0.6", "goal >= 0.5"])
    assert [gate.rule for gate in judge] == ["judge.kappa >= 0.6"]
    assert [gate.rule for gate in scores] == ["faithfulness >= 0.8", "goal >= 0.5"]


def test_a_good_judge_passes_and_the_message_says_what_it_was_measured_on() -> None:
    outcome = check("judge.balanced_accuracy >= 0.9", card())
    assert outcome.passed
    assert outcome.value == 0.9
    assert outcome.interval is not None
    assert outcome.message.startswith(
        "judge.balanced_accuracy 0.90 >= 0.90: PASS (Support on mine.jsonl, 40 rows, mean of 2 sets, "
        "card of 2026-02-19); 0.900 [0."
    )


def test_a_bound_and_a_set_are_their_own_numbers() -> None:
    mean, low = (check(f"judge.kappa{bound} >= 0.5", card()) for bound in ("", ".low"))
    assert mean.value == pytest.approx(0.8)
    assert low.value is not None
    assert low.interval is not None
    assert low.value == low.interval.low
    hard = check("judge.kappa > 0.7 where set=hard", card())
    assert not hard.passed
    assert hard.value == pytest.approx(0.6)
    assert "20 rows of hard" in hard.message


def test_a_judge_worse_than_a_coin_has_a_negative_kappa_and_fails() -> None:
    outcome = check("judge.kappa >= 0", card(measurement(("bad", 3))))
    assert not outcome.passed
    assert outcome.value == pytest.approx(-0.4)
    assert outcome.message.startswith("judge.kappa -0.40 >= 0.00: FAIL")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model": {"name": "small", "sha256": "ab"}}, "other model"),
        ({"thresholds": {"support": 0.5, "goal": 0.0}}, "other thresholds"),
        ({"adapters": {"support": "zz", "decompose": "cc"}}, "other adapters"),
        ({"build": {"instruction_sets": "AVX512"}}, "other build"),
    ],
)
def test_a_card_of_another_judge_fails_whatever_its_numbers(changes: dict[str, Any], words: str) -> None:
    other = fingerprint(**changes)
    outcome = check("judge.kappa >= 0.1", card(), judge=other)
    assert not outcome.passed
    assert outcome.value == pytest.approx(0.8)
    assert f"the card is of another judge ({fingerprint().short}; this one is {other.short}; {words})" in (
        outcome.message
    )


def test_what_cannot_change_the_task_does_not_put_its_card_in_question() -> None:
    changed = fingerprint(adapters={"support": "bb", "decompose": "zz"})
    assert check("judge.kappa >= 0.1", card(), judge=changed).passed


@pytest.mark.parametrize(("days", "limit", "passed"), [(10, 10, True), (10.001, 10, False), (10, None, True)])
def test_a_card_older_than_allowed_fails(days: float, limit: float | None, passed: bool) -> None:
    outcome = check("judge.kappa >= 0.1", card(days=days), max_age=limit)
    assert outcome.passed is passed
    assert ("above the limit of 10 days" in outcome.message) is not passed


def test_a_card_from_the_future_fails() -> None:
    assert "look at the clock" in check("judge.kappa >= 0.1", card(days=-30)).message
    # Another machine's clock may be a little ahead.
    assert check("judge.kappa >= 0.1", card(days=-0.2)).passed


def test_every_task_of_the_run_must_be_on_the_card() -> None:
    outcome = check("judge.kappa >= 0.1", card(), tasks=("support", "goal"))
    assert not outcome.passed
    assert "the card has no measurement of goal" in outcome.message
    assert check("judge.kappa >= 0.1 where task=support", card(), tasks=("support", "goal")).passed
    assert "has no set soft" in check("judge.kappa >= 0.1 where set=soft", card()).message
    assert tasks_of(["goal_with_reference", "faithfulness"]) == ("support", "goal")


@pytest.mark.parametrize(
    ("rule", "value"),
    [("judge.accuracy >= 0.5", 0.7), ("judge.brier <= 0.9", None), ("judge.accuracy == 1", 0.7)],
)
def test_of_several_measurements_the_worst_decides(rule: str, value: float | None) -> None:
    both = [measurement(("a", 10), title="good"), measurement(("a", 7), title="bad")]
    for order in (both, both[::-1]):
        outcome = check(rule, card(*order))
        assert "(bad, " in outcome.message
        assert value is None or outcome.value == pytest.approx(value)


def test_a_number_that_the_card_does_not_have_fails_with_its_reason() -> None:
    rows = [Judged(label=1, margin=1.0, value=1, id=str(n)) for n in range(5)]
    one = measurement(("all", 10)).model_copy(update={"measured": measure(rows, draws=10)})
    outcome = check("judge.kappa >= 0.1", card(one))
    assert (outcome.passed, outcome.value, outcome.interval) == (False, None, None)
    assert "judge.kappa none >= 0.10: FAIL" in outcome.message
    assert "no set has this number" in outcome.message


def test_a_rule_without_a_card_and_a_limit_without_a_rule_are_usage_errors() -> None:
    gates = [parse_judge_gate("judge.kappa >= 0.6")]
    with pytest.raises(UsageError, match="needs its judge card"):
        open_card(None, gates)
    with pytest.raises(UsageError, match="no gate that it could fail"):
        open_card("card.json", [], max_age=30)
    assert open_card(None, []) is None


@pytest.mark.parametrize("created", ["yesterday", "2026-01-01T00:00:00", ""])
def test_a_card_without_a_date_is_refused(created: str, tmp_path: Path) -> None:
    path = tmp_path / "card.json"
    path.write_text(render_card_json(card().model_copy(update={"created": created})), encoding="utf-8")
    with pytest.raises(InputError, match="no date") as caught:
        open_card(path, [])
    assert caught.value.where == str(path)


# The command


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> FakeJudge:
    fake = FakeJudge(lambda task, fields: 2.0)
    monkeypatch.setattr(options, "build_judge", lambda config, refresh=False: fake)
    return fake


@pytest.fixture
def run(judge: FakeJudge, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    rows = [
        {"id": str(n), "user_input": "When?", "response": f"At {n}.", "retrieved_contexts": [f"At {n}."]}
        for n in range(6)
    ]
    data = tmp_path / "data.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")

    def command(*arguments: str | Path) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as exit_:
            cli.main(["run", str(data), "--decomposition", "sentence", *map(str, arguments)])
        captured = capsys.readouterr()
        return int(exit_.value.code or 0), captured.out, captured.err

    return command


def write_card(path: Path, of: Fingerprint, *, right: int = 10, days: float = 0) -> Path:
    made = make_card(
        of,
        measurements=[measurement(("all", right))],
        created=datetime.now(UTC) - timedelta(days=days),
    )
    path.write_text(render_card_json(made), encoding="utf-8")
    return path


def test_a_good_judge_does_not_fail_the_build(run: Run, judge: FakeJudge, tmp_path: Path) -> None:
    path = write_card(tmp_path / "card.json", judge.fingerprint)
    code, out, err = run(
        "--judge-card", path, "--gate", "judge.kappa.low >= 0.3", "--gate", "faithfulness>=0.8"
    )
    assert code == 0
    assert "gates: 2 passed" in out
    assert "warning: judge.kappa" not in err


@pytest.mark.parametrize(
    ("right", "days", "digest", "words"),
    [
        (6, 0, None, "20 rows, card of"),
        (10, 40, None, "above the limit of 30 days"),
        (10, 0, "ab" * 32, "the card is of another judge"),
    ],
)
def test_a_judge_that_is_not_good_enough_fails_the_build_in_every_format(
    run: Run, judge: FakeJudge, tmp_path: Path, right: int, days: float, digest: str | None, words: str
) -> None:
    of = judge.fingerprint
    if digest:
        of = Fingerprint(digest=digest, parts={"model": "another"})
    path = write_card(tmp_path / "card.json", of, right=right, days=days)
    outputs = [tmp_path / f"out.{suffix}" for suffix in ("json", "xml", "html", "md")]
    code, out, err = run(
        "--judge-card", path, "--judge-card-max-age", "30", "--gate", "judge.kappa.low >= 0.3",
        "--gate", "faithfulness>=0.8", *(part for output in outputs for part in ("-o", output)),
    )  # fmt: skip
    assert code == 1
    assert "gates: 1 of 2 failed" in out
    assert words in " ".join(out.split())
    # It is known before the first verdict.
    assert "warning: judge.kappa.low" in err
    report = json.loads(outputs[0].read_text(encoding="utf-8"))
    assert [gate["passed"] for gate in report["gates"]] == [False, True]
    assert report["settings"]["gates"] == ["judge.kappa.low >= 0.3", "faithfulness>=0.8"]
    case = ElementTree.fromstring(outputs[1].read_text(encoding="utf-8")).find(".//failure")
    assert case is not None
    assert words in case.get("message", "")
    for output in outputs[2:]:
        page = output.read_text(encoding="utf-8")
        assert "FAIL" in page
        assert words in page


def test_an_unfit_judge_settles_the_outcome_at_once(run: Run, judge: FakeJudge, tmp_path: Path) -> None:
    path = write_card(tmp_path / "card.json", judge.fingerprint, right=5)
    code, out, _ = run("--judge-card", path, "--gate", "judge.kappa >= 0.3", "--stop-early")
    assert code == 1
    assert "STOPPED EARLY: 5 more" in out


def test_a_rule_about_the_judge_without_a_card_is_refused_before_the_first_verdict(
    run: Run, judge: FakeJudge
) -> None:
    code, _, err = run("--gate", "judge.kappa.low >= 0.6")
    assert code == 2
    assert "needs its judge card" in err
    assert not judge.asked


def test_the_settings_have_the_names_of_the_options(
    run: Run, judge: FakeJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_card(tmp_path / "card.json", judge.fingerprint, days=2)
    monkeypatch.chdir(tmp_path)
    settings = 'judge_card = "card.json"\njudge_card_max_age = 1.5\ngates = ["judge.kappa >= 0.3"]\n'
    (tmp_path / "anvil.toml").write_text(settings, encoding="utf-8")
    code, out, _ = run()
    assert code == 1
    assert "above the limit of 1.50 days" in " ".join(out.split())
    code, _, _ = run("--judge-card-max-age", "3")
    assert code == 0
