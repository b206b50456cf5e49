"""Two reports compared: what is paired, what moved, what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anvil_local import FakeJudge, Report, evaluate
from anvil_local.assess import Options
from anvil_local.cli import app
from anvil_local.comparison import check_regression, compare_reports
from anvil_local.errors import InputError, NothingToJudge, UsageError
from anvil_local.records import Fingerprint
from anvil_local.reports import write_reports

Row = dict[str, Any]


def row(name: str, response: str, **more: Any) -> Row:
    return {
        "id": name,
        "user_input": f"What of {name}?",
        "response": response,
        "retrieved_contexts": ["Rain."],
        **more,
    }


def true_unless(*false: str) -> Callable[[str, Any], float]:
    """A judge that refuses what holds one of these words, and looks at nothing else."""

    def answer(_: str, fields: Any) -> float:
        text = fields.get("statement") or fields["trace"]
        return -1.5 if any(word in text for word in false) else 2.5

    return answer


def judged(rows: list[Row], *false: str, **more: Any) -> Report:
    return evaluate(rows, judge=FakeJudge(true_unless(*false)), **more)


GOOD = [row(f"s{number}", "It rained. It was cold.") for number in range(8)]


def test_the_same_report_has_no_difference() -> None:
    report = judged(GOOD, "cold")
    found = compare_reports(report, report)
    (metric,) = found.metrics
    assert (metric.pairs, metric.scored_pairs, metric.verdict_pairs) == (8, 8, 16)
    assert (metric.change, metric.low, metric.high, metric.p_drop) == (0, 0, 0, 1)
    assert (metric.lost, metric.gained, metric.p_mcnemar) == (0, 0, 1)
    assert found.samples == ()
    assert found.contradictions == 0
    assert not check_regression(found)[0].failed


def test_flips_scores_and_their_tests_on_a_case_worked_by_hand() -> None:
    # Six of eight contexts no longer bear out "It was cold."; the answers stay.
    old = judged(GOOD)
    rows = [
        sample | {"retrieved_contexts": ["Sun."]} if number < 6 else sample
        for number, sample in enumerate(GOOD)
    ]
    judge = FakeJudge(lambda _, f: -1.5 if "cold" in f["statement"] and f["context"] == "Sun." else 2.5)
    found = compare_reports(old, evaluate(rows, judge=judge))
    (metric,) = found.metrics
    assert (metric.old_mean, metric.new_mean) == (1, 0.625)
    assert metric.change == -0.375
    assert metric.p_drop == 2**-6
    assert (metric.lost, metric.gained) == (6, 0)
    assert metric.p_mcnemar == 2 * 2**-6
    assert metric.low is not None
    assert metric.high is not None
    assert metric.low < -0.375 < metric.high < 0
    assert (metric.worse, metric.better) == (6, 0)
    first = found.samples[0]
    assert (first.response_changed, first.context_changed) == (False, True)
    (change,) = first.changes
    assert change.flipped
    assert change.distance == -4.0
    assert len(found.samples) == 6
    (outcome,) = check_regression(found)
    assert outcome.failed
    assert "change -0.375 in 8 samples, p 0.0156, level 0.05" in outcome.message


def test_a_drop_in_few_samples_is_no_regression_and_the_message_says_what_could_be_seen() -> None:
    rows = [GOOD[0] | {"response": "It snowed. It was cold."}, *GOOD[1:]]
    found = compare_reports(judged(GOOD), judged(rows, "snowed"))
    (outcome,) = check_regression(found)
    assert not outcome.failed
    assert "would have shown 80% of the time" in outcome.message
    few = compare_reports(judged(GOOD[:4]), judged(GOOD[:4], "rained", "cold"))
    (outcome,) = check_regression(few)
    assert not outcome.failed
    assert "4 samples cannot show any drop at this level, it takes 5" in outcome.message


def test_statements_that_come_and_go_are_no_flips() -> None:
    new = [row("s0", "It rained. It was warm. It snowed."), *GOOD[1:]]
    found = compare_reports(judged(GOOD), judged(new, "snowed"))
    (metric,) = found.metrics
    assert (metric.appeared, metric.appeared_supported) == (2, 1)
    assert (metric.disappeared, metric.disappeared_supported) == (1, 1)
    assert (metric.lost, metric.gained, metric.verdict_pairs) == (0, 0, 15)
    (sample,) = found.samples
    assert {(change.text, change.old is None, change.new is None) for change in sample.changes} == {
        ("It was warm.", True, False),
        ("It snowed.", True, False),
        ("It was cold.", False, True),
    }


def test_statements_are_paired_by_their_words_wherever_they_stand() -> None:
    old = judged([row("a", "It rained. It was cold.")])
    new = judged([row("a", "It was COLD. Well, it was a day. It rained")])
    (metric,) = compare_reports(old, new).metrics
    assert (metric.verdict_pairs, metric.appeared, metric.disappeared) == (2, 1, 0)


def test_samples_that_only_one_report_has_are_counted_and_are_in_no_number() -> None:
    found = compare_reports(judged(GOOD[:6]), judged(GOOD[2:], "cold"))
    (metric,) = found.metrics
    assert (metric.pairs, metric.only_base, metric.only_new) == (4, 2, 2)
    assert (metric.old_mean, metric.new_mean) == (1, 0.5)
    assert found.only_base == ("faithfulness/s0", "faithfulness/s1")
    assert found.only_new == ("faithfulness/s6", "faithfulness/s7")


def test_the_same_id_with_another_question_is_another_sample() -> None:
    shifted = [GOOD[0] | {"user_input": "Something else?"}, *GOOD[1:]]
    (metric,) = compare_reports(judged(GOOD), judged(shifted)).metrics
    assert (metric.pairs, metric.only_base, metric.only_new) == (7, 1, 1)
    with pytest.raises(NothingToJudge, match="no sample is in both"):
        compare_reports(judged(GOOD[:1]), judged(shifted[:1]))


def test_scores_that_got_lost_fail_by_themselves() -> None:
    silent = [
        sample | {"response": "I do not know."} if number < 3 else sample
        for number, sample in enumerate(GOOD)
    ]
    found = compare_reports(judged(GOOD), judged(silent))
    (metric,) = found.metrics
    assert (metric.became_unscored, metric.scored_pairs, metric.change) == (3, 5, 0)
    (outcome,) = check_regression(found, max_unscored=0.05)
    assert outcome.failed
    assert "3 of 8 samples lost their score" in outcome.message
    assert not check_regression(found, max_unscored=0.5)[0].failed


def test_when_no_pair_has_two_scores_there_is_no_number_and_the_gate_fails() -> None:
    silent = [sample | {"response": "I do not know."} for sample in GOOD]
    found = compare_reports(judged(GOOD), judged(silent))
    (metric,) = found.metrics
    assert (metric.change, metric.p_drop, metric.low) == (None, None, None)
    assert check_regression(found)[0].failed


def trace(name: str, end: str) -> Row:
    return {
        "id": name,
        "user_input": [
            {"role": "user", "content": f"Cancel order {name}."},
            {"role": "assistant", "content": end},
        ],
        "reference": "It is cancelled.",
    }


def test_goals_are_paired_as_one_question_each() -> None:
    old = judged([trace(f"t{number}", "Done.") for number in range(7)], "No.")
    new = judged([trace(f"t{number}", "No.") for number in range(7)], "No.")
    found = compare_reports(old, new)
    (metric,) = found.metrics
    assert (metric.metric, metric.verdict_pairs, metric.lost) == ("goal_with_reference", 7, 7)
    assert metric.p_drop == 2**-7
    assert (metric.appeared, metric.disappeared) == (0, 0)
    assert all(sample.response_changed and len(sample.changes) == 1 for sample in found.samples)


class Other(FakeJudge):
    @property
    def fingerprint(self) -> Fingerprint:
        return Fingerprint(digest="b" * 64, parts={"model": {"name": "other"}})


def test_another_judge_is_refused_unless_it_is_allowed_and_then_named() -> None:
    old, new = judged(GOOD), evaluate(GOOD, judge=Other(true_unless("cold")))
    with pytest.raises(UsageError, match=r"judge\.model\.name: fake -> other") as error:
        compare_reports(old, new)
    assert "--allow-other-judge" in str(error.value)
    found = compare_reports(old, new, allow_other_judge=True)
    assert found.measuring["judge.model.name"] == ("fake", "other")
    assert found.contradictions == 0  # another judge may say what it likes


def test_other_settings_are_refused_too() -> None:
    sentence = judged(GOOD, options=Options(decomposition="sentence"))
    with pytest.raises(UsageError, match=r"settings\.decomposition: llm -> sentence"):
        compare_reports(judged(GOOD), sentence)


def test_one_judge_that_answers_the_same_question_in_two_ways_is_found_out() -> None:
    found = compare_reports(judged(GOOD), judged(GOOD, "cold"))
    assert found.contradictions == 8


def test_a_report_with_one_id_twice_cannot_be_paired() -> None:
    report = judged(GOOD)
    doubled = report.model_copy(update={"results": report.results * 2})
    with pytest.raises(InputError, match="BASE holds two samples with this id"):
        compare_reports(doubled, report)


# The command


@pytest.fixture
def files(tmp_path: Path) -> Callable[..., tuple[str, str]]:
    def write(old: Report, new: Report) -> tuple[str, str]:
        paths = tmp_path / "base.json", tmp_path / "new.json"
        write_reports(old, [paths[0]])
        write_reports(new, [paths[1]])
        return str(paths[0]), str(paths[1])

    return write


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as exit_:
        app.main(["diff", *arguments])
    return int(exit_.value.code or 0)


WORSE = [row(f"s{number}", "It snowed. It was cold.") for number in range(6)] + GOOD[6:]


def test_the_command_shows_what_moved(
    files: Callable[..., tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    paths = files(judged(GOOD), judged(WORSE, "snowed"))
    assert run(*paths) == 0
    out = capsys.readouterr().out
    assert "score       1.000 -> 0.625, -0.375 (" in out
    assert "verdicts    10 in both: 0 lost, 0 gained" in out
    assert "statements  6 new (0 supported), 6 gone (6 were supported)" in out
    assert "sample s0, faithfulness 1.00 -> 0.50, another answer" in out
    assert "absent -> 0 (-1.50)  It snowed." in out
    assert "1 (+2.50) -> absent  It rained." in out
    assert run(*paths, "--fail-on", "regression") == 1
    assert "faithfulness: FAIL, change -0.375 in 8 samples" in capsys.readouterr().out
    assert run(paths[1], paths[0], "--fail-on", "regression") == 0


def test_the_command_prints_json(
    files: Callable[..., tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    paths = files(judged(GOOD), judged(WORSE, "snowed"))
    assert run(*paths, "--json", "--fail-on", "regression", "--level", "0.01") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["passed"] is True
    assert document["metrics"][0]["p_drop"] == 2**-6
    assert document["regression"][0]["metric"] == "faithfulness"


def test_an_interrupted_report_fails_the_rule(
    files: Callable[..., tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    report = judged(GOOD)
    paths = files(report, report.model_copy(update={"complete": False}))
    assert run(*paths) == 0
    assert "NEW was interrupted" in capsys.readouterr().out
    assert run(*paths, "--fail-on", "regression") == 1


def test_another_judge_exits_with_2(
    files: Callable[..., tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    paths = files(judged(GOOD), evaluate(GOOD, judge=Other([1])))
    assert run(*paths) == 2
    assert "not measured alike" in capsys.readouterr().err
    assert run(*paths, "--allow-other-judge") == 0
    assert "NOT MEASURED ALIKE" in capsys.readouterr().out
