"""What a verdict hangs on, with judges whose reasons are known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil_local import FakeJudge, Options, Report, evaluate
from anvil_local.cli import app, options
from anvil_local.cli.explain import find_statement
from anvil_local.errors import NothingToJudge, UsageError
from anvil_local.explanation import Explanation, explain_statement
from anvil_local.records import Fingerprint
from anvil_local.reports import write_reports

MILL = "The mill stands by the river. It was built in 1640. Its owner was Jon Berg. The wheel is of oak."


def needs(*words: str, against: str = "never") -> FakeJudge:
    """Supports when every word is in the context; a word against it forbids."""

    def answer(_: str, fields: Mapping[str, str]) -> float:
        text = fields["context"]
        share = sum(word in text for word in words) / len(words)
        return share * 4 - 3 - 3 * (against in text)

    return FakeJudge(answer)


def test_the_sentence_that_carries_a_statement_is_found() -> None:
    found = explain_statement("The mill dates from 1640.", MILL, needs("1640"))
    assert found.verdict.value == 1
    assert found.flips_without == (2,)
    assert found.strongest == 2
    assert found.sentence(2).text == "It was built in 1640."
    assert [item.number for item in found.sentences if item.alone and item.alone.value == 1] == [2]
    assert all(MILL[item.start : item.end] == item.text for item in found.sentences)


def test_of_evidence_in_two_sentences_either_one_flips_it_and_neither_is_enough_alone() -> None:
    found = explain_statement("Jon Berg owned it from 1640.", MILL, needs("1640", "Berg"))
    assert found.flips_without in ((2,), (3,))
    flipping = [item.number for item in found.sentences if item.without and item.without.value == 0]
    assert flipping == [2, 3]
    assert [item.number for item in found.sentences if item.alone and item.alone.value == 1] == []


def test_evidence_that_stands_twice_is_found_by_leaving_out_both() -> None:
    context = "It dates from 1640. The river is wide. They finished it in 1640."
    found = explain_statement("It is from 1640.", context, needs("1640"))
    assert set(found.flips_without) >= {1, 3}
    assert [item.number for item in found.sentences if item.alone and item.alone.value == 1] == [1, 3]


def test_what_speaks_against_a_refused_statement_is_found() -> None:
    found = explain_statement("The mill is of oak.", MILL, needs("oak", against="1640"))
    assert found.verdict.value == 0
    assert found.flips_without == (2,)
    assert found.nearest == 1  # "mill" and "oak" are one content word each: the first of equals
    assert found.foreign == ()


def test_for_a_statement_that_nothing_speaks_of_the_foreign_words_are_named() -> None:
    found = explain_statement("The mill was sold in 1902.", MILL, FakeJudge([0]))
    assert found.flips_without == ()
    assert found.strongest is None
    assert found.nearest == 1
    assert found.foreign == ("sold", "1902")


def test_a_context_of_one_sentence_can_only_be_left_empty() -> None:
    found = explain_statement("It rained.", "It rained all day.", FakeJudge([1]))
    assert found.flips_without == (1,)
    assert found.sentences[0].without is not None
    assert found.sentences[0].without.margin is None


@pytest.mark.parametrize("context", ["", " \n "])
def test_an_empty_context_has_nothing_to_explain(context: str) -> None:
    with pytest.raises(NothingToJudge, match="the context is empty"):
        explain_statement("It rained.", context, FakeJudge([1]))


def pumps(count: int) -> str:
    return " ".join(f"Pump {number} runs in hall {number}." for number in range(1, count + 1))


@pytest.mark.parametrize("wanted", [1, 37, 80])
def test_in_a_long_context_few_questions_find_the_sentence(wanted: int) -> None:
    found = explain_statement(f"Pump {wanted} runs.", pumps(80), needs(f"Pump {wanted} "))
    assert found.flips_without == (wanted,)
    assert found.sentence(wanted).text == f"Pump {wanted} runs in hall {wanted}."
    assert found.questions <= 1 + 12 + 2 * 21 + 1


def test_of_several_windows_the_one_that_decided_is_looked_at() -> None:
    judge = FakeJudge(lambda _, f: 2.0 if "Pump 70 " in f["context"] else -2.0, window=120)
    context = pumps(100)
    found = explain_statement("Pump 70 runs.", context, judge)
    assert found.verdict.windows > 1
    assert found.verdict.window != 0
    assert found.flips_without == (70,)
    assert found.sentences[0].number > 1
    assert all(context[item.start : item.end] == item.text for item in found.sentences)


@given(
    st.lists(
        st.sampled_from(["It rained.", "Snow fell!", "Why?", "x", "\n", "- a\n- b", "1640", "雨が降った。"])
    )
)
def test_any_context_is_explained_and_its_verdict_is_that_of_a_run(parts: list[str]) -> None:
    context = " ".join(parts)
    judge = needs("rain")
    if not context.strip():
        return
    found = explain_statement("It rained.", context, judge)
    row = {"response": "It rained.", "retrieved_contexts": [context]}
    (item,) = evaluate([row], judge=judge, options=Options(decomposition="sentence")).results[0].statements
    assert found.verdict == item.verdict
    assert [sentence.number for sentence in found.sentences] == sorted(
        {sentence.number for sentence in found.sentences}
    )
    assert set(found.flips_without) <= {sentence.number for sentence in found.sentences}
    assert Explanation.model_validate_json(found.model_dump_json()) == found


# Finding the statement


def report() -> Report:
    rows = [
        {"id": "a", "response": "The mill is old. It is by the river.", "retrieved_contexts": [MILL]},
        {"id": "b", "response": "The mill is old.", "retrieved_contexts": [MILL]},
    ]
    return evaluate(rows, judge=Real(lambda _, fields: 1.5 if "river" in fields["context"] else -1.0))


class Real(FakeJudge):
    """A fake whose fingerprint looks like a GGUF judge's."""

    @property
    def fingerprint(self) -> Fingerprint:
        parts = {
            "model": {"name": "tiny"},
            "options": {"profile": "chat", "adapter": False, "threshold": None},
            "decode": {"window": 512, "gpu_layers": 0},
        }
        return Fingerprint(digest="c" * 64, parts=parts)


def test_a_statement_is_found_by_a_part_of_it_by_its_sample_and_by_its_number() -> None:
    found = report()
    assert find_statement(found, "BY the", sample=None)[1].statement.text == "The mill is by the river."
    result, item = find_statement(found, "mill", sample="b")
    assert (result.sample_id, item.statement.text) == ("b", "The mill is old.")
    assert find_statement(found, "2", sample="a")[1].statement.text == "The mill is by the river."


def test_a_statement_that_is_not_clear_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="3 statements have this text") as error:
        find_statement(report(), "mill", sample=None)
    assert "--sample a: The mill is old." in str(error.value)
    with pytest.raises(UsageError, match="no judged statement has this text"):
        find_statement(report(), "moon", sample=None)
    with pytest.raises(UsageError, match="no sample with this id"):
        find_statement(report(), "mill", sample="c")


# The command


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_reports(report(), [tmp_path / "out.json"])
    judge = Real(lambda _, fields: 1.5 if "river" in fields["context"] else -1.0)
    monkeypatch.setattr(options, "build_judge", lambda config, **_: judge)
    return tmp_path / "out.json"


def run(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as exit_:
        app.main(["explain", *map(str, arguments)])
    return int(exit_.value.code or 0)


def test_the_command_names_the_evidence(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(path, "by the river") == 0
    out = capsys.readouterr().out
    assert "verdict    1, margin +1.50, as in the report to the last bit" in out
    assert "without sentence 1 it is refused" in out
    assert "enough alone: sentence 1" in out
    assert "       1  0 -1.00  1 +1.50  100%  The mill stands by the river." in out


def test_the_command_prints_json(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(path, "1", "--sample", "b", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["flips_without"] == [1]
    assert document["sample_id"] == "b"
    assert document["same_judge"] is True
    assert document["reported"] == document["verdict"]


def test_the_command_refuses_what_it_cannot_find(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(path, "moon") == 2
    assert "no judged statement" in capsys.readouterr().err
