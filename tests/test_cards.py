"""Judge cards: what they say, that they come back unchanged, and which judge they are found for."""

from __future__ import annotations

import importlib.util
import json
from datetime import UTC, datetime
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from anvil_local import cards
from anvil_local.calibration import Judged, choose_threshold, estimate_share, measure
from anvil_local.cards import (
    CardData,
    Cases,
    DecompositionNumbers,
    JudgeCard,
    Measurement,
    check_card_paths,
    find_card,
    find_coins,
    load_card,
    make_card,
    render_card_json,
    render_card_markdown,
    write_card,
)
from anvil_local.errors import InputError, UsageError
from anvil_local.judge import FakeJudge
from anvil_local.probes import load_probes
from anvil_local.records import Fingerprint

WHEN = datetime(2026, 1, 2, tzinfo=UTC)

PARTS: dict[str, Any] = {
    "model": {"name": "small", "file": "small.gguf", "sha256": "aa"},
    "adapters": {"support": "bb", "decompose": "cc"},
    "prompts": {"support": {"id": "support/1"}, "goal": {"id": "goal/1"}, "decompose": {"id": "d/1"}},
    "thresholds": {"support": 0.5, "goal": 0.0},
    "grammar": {"statements": "dd"},
    "decode": {"path": "canonical/1", "window": 2048},
    "build": {"llama_cpp_python": "0.3.36", "instruction_sets": "AVX2"},
}


def fingerprint(**changes: Any) -> Fingerprint:
    parts = PARTS | changes
    return Fingerprint(digest=json.dumps(parts, sort_keys=True).encode().hex()[:64], parts=parts)


def measurement(task: str = "support", title: str = "Support on mine.jsonl", **others: Any) -> Measurement:
    rows = [
        Judged(label=label, margin=margin, value=int(margin > 0), mass=0.9, set=name, id=f"{name}{number}")
        for name, right in (("easy", 9), ("hard|`x`", 5))
        for number, (label, margin) in enumerate(
            [(1, 1.0)] * right + [(1, -1.0)] * (10 - right) + [(0, -1.0)] * right + [(0, 1.0)] * (10 - right)
        )
    ]
    return Measurement.model_validate(
        {
            "title": title,
            "task": task,
            "data": CardData(file="mine.jsonl", sha256="ee" * 32, rows=40, sets={"easy": 20, "hard|`x`": 20}),
            "measured": measure(rows, draws=100),
            "threshold": choose_threshold(rows),
            **others,
        }
    )


def card(**changes: Any) -> JudgeCard:
    return make_card(fingerprint(**changes), measurements=[measurement()], created=WHEN)


def test_a_card_comes_back_from_json_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "card.json"
    path.write_text(render_card_json(card()), encoding="utf-8")
    assert load_card(path) == card()
    assert json.loads(path.read_text(encoding="utf-8"))["measurements"][0]["measured"]["macro"]["kappa"][
        "low"
    ]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema_version": "9"}', '{"schema_version": "1"}', "\x00"]
)
def test_what_is_no_card_is_refused_with_its_path(text: str, tmp_path: Path) -> None:
    path = tmp_path / "card.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=r"card\.json"):
        load_card(path)
    with pytest.raises(InputError, match=r"nowhere\.json"):
        load_card(tmp_path / "nowhere.json")


def test_the_limits_that_the_numbers_show_are_put_in_words() -> None:
    found = card().notes
    assert any("not told from a coin on hard|`x`" in note for note in found)
    assert any("40 rows are few" in note for note in found)
    assert not any("easy" in note for note in found)
    noted = make_card(fingerprint(), notes=["It reads English."])
    assert noted.notes == ("It reads English.",)


def test_the_markdown_says_what_the_judge_is_good_for_then_the_sets_then_the_limits() -> None:
    text = render_card_markdown(card())
    lines = [line for line in text.splitlines() if line]
    assert lines[0] == "# Judge card: `small`"
    assert lines[2].startswith("- **Support on mine.jsonl**, mean of 2 sets: balanced accuracy **0.700 [")
    assert "best on `easy` (0.900)" in lines[2]
    assert lines[4] == (
        "| set | rows | balanced accuracy | AUROC | kappa | sensitivity | specificity | ECE |"
    )
    assert lines[6].startswith("| `easy` | 20 | 0.900 [")
    assert lines[8].startswith("| **macro** | 40 | 0.700 [")
    assert "On these rows" in text
    assert "cross-fitted" in text
    assert text.index("## Limits") < text.index("## What was measured")
    assert f"sha256 `{'ee' * 6}`" in text


def test_names_from_the_data_take_no_effect_in_markdown() -> None:
    text = render_card_markdown(card())
    (row,) = [line for line in text.splitlines() if line.startswith("| <code>")]
    assert row.count("|") == 9
    assert "`x`" not in row
    title = render_card_markdown(
        make_card(fingerprint(), measurements=[measurement(title="Support on <b>_a_ b_c.jsonl")])
    )
    assert r"Support on \<b\>\_a\_ b_c.jsonl" in title


def test_statements_and_cases_have_their_own_parts() -> None:
    data = CardData(file="answers.jsonl", sha256="ff" * 32, rows=2, sets={"all": 2})
    numbers = DecompositionNumbers(
        mode="llm", data=data, claims=10, covered=estimate_share(9, 10, ""),
        covered_exactly=estimate_share(8, 10, ""), statements=12, pronoun_subjects=estimate_share(0, 12, ""),
        foreign=estimate_share(1, 12, ""), sentences=6, statements_per_sentence=2.0, fallbacks=1,
        without_claim=0, tokens_per_second=40.0,
    )  # fmt: skip
    cases = Cases(data=data, right=3, total=4, misses=("a (wants 1)",))
    text = render_card_markdown(make_card(fingerprint(), decompositions=[numbers], cases=cases))
    assert "| the model | 0.900 [" in text
    assert "| 2.00 | 1 of 6 | 40 |" in text
    assert "3 of 4 right. Missed: `a (wants 1)`." in text
    # Both come from one file, which is named once.
    assert text.count("answers.jsonl") == 1


def test_a_card_is_written_whole_in_the_format_of_its_suffix(tmp_path: Path) -> None:
    paths = write_card(card(), [tmp_path / "a.json", tmp_path / "a.md"])
    assert [path.name for path in paths] == ["a.json", "a.md"]
    assert load_card(paths[0]) == card()
    assert paths[1].read_text(encoding="utf-8").startswith("# Judge card")
    for bad in ("a.xml", "a.txt", "nowhere/a.json"):
        with pytest.raises(UsageError):
            check_card_paths([tmp_path / bad])


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "none"),
        (0.0, "0.000"),
        (-1e-17, "0.000"),
        (1e-4, "<0.001"),
        (0.9996, ">0.999"),
        (-0.5, "-0.500"),
    ],
)
def test_a_number_is_never_shown_as_0_or_1_when_it_is_neither(value: float | None, shown: str) -> None:
    assert cards.show_number(value) == shown


# Finding


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    own, bundled = tmp_path / "models", tmp_path / "bundled"
    for folder in (own, bundled):
        (folder / "cards").mkdir(parents=True)
    monkeypatch.setattr(cards, "bundled_folder", lambda: bundled)
    return own, bundled


def test_a_card_is_found_by_its_judge_the_users_before_the_bundled(folders: tuple[Path, Path]) -> None:
    own, bundled = folders
    assert find_card(fingerprint(), folder=own) is None
    write_card(card(), [bundled / "cards" / "a.json"])
    (bundled / "cards" / "broken.json").write_text("{", encoding="utf-8")
    found = find_card(fingerprint(), folder=own)
    assert found is not None
    assert (found.how, found.path.parent.parent) == ("same judge", bundled)
    write_card(card(), [own / "cards" / "b.json"])
    found = find_card(fingerprint(), folder=own)
    assert found is not None
    assert found.path.parent.parent == own
    assert find_card(FakeJudge().fingerprint, folder=own) is None


def test_another_build_is_the_same_judge_and_is_named_but_an_exact_card_goes_first(
    folders: tuple[Path, Path],
) -> None:
    own, bundled = folders
    write_card(card(), [own / "cards" / "a.json"])
    other = fingerprint(build={"llama_cpp_python": "0.3.40"})
    found = find_card(other, folder=own)
    assert found is not None
    assert found.how == "same judge, other build"
    write_card(card(build={"llama_cpp_python": "0.3.40"}), [bundled / "cards" / "b.json"])
    found = find_card(other, folder=own)
    assert found is not None
    assert (found.how, found.path.name) == ("same judge", "b.json")


@pytest.mark.parametrize(
    ("change", "whole", "support"),
    [
        ({"adapters": {"support": "bb", "decompose": "new"}}, False, True),
        ({"prompts": PARTS["prompts"] | {"goal": {"id": "goal/2"}}}, False, True),
        ({"grammar": {"statements": "new"}}, False, True),
        ({"model": PARTS["model"] | {"name": "renamed"}}, False, True),
        ({"adapters": {"support": "new", "decompose": "cc"}}, False, False),
        ({"prompts": PARTS["prompts"] | {"support": {"id": "support/2"}}}, False, False),
        ({"thresholds": {"support": 0.0, "goal": 0.0}}, False, False),
        ({"model": PARTS["model"] | {"sha256": "new"}}, False, False),
        ({"decode": {"path": "canonical/2", "window": 2048}}, False, False),
    ],
)
def test_only_what_can_change_a_tasks_verdicts_parts_its_card_from_the_judge(
    change: dict[str, Any], whole: bool, support: bool, folders: tuple[Path, Path]
) -> None:
    own, _ = folders
    write_card(card(), [own / "cards" / "a.json"])
    assert (find_card(fingerprint(**change), folder=own) is not None) is whole
    assert (find_card(fingerprint(**change), task="support", folder=own) is not None) is support
    # The card holds no measurement of the other task.
    assert find_card(fingerprint(), task="goal", folder=own) is None


def test_judges_that_vote_have_a_card_of_their_own(folders: tuple[Path, Path]) -> None:
    own, _ = folders

    def vote(*members: Fingerprint) -> Fingerprint:
        return Fingerprint(digest="v", parts={"vote": [member.model_dump() for member in members]})

    one, two = fingerprint(), fingerprint(model={"name": "large", "sha256": "zz"})
    made = make_card(vote(one, two), measurements=[measurement()])
    assert made.name == "vote of small + large"
    write_card(made, [own / "cards" / "a.json"])
    found = find_card(vote(fingerprint(build={"x": "y"}), two), task="support", folder=own)
    assert found is not None
    assert found.how == "same judge, other build"
    assert find_card(vote(two, one), folder=own) is None
    assert find_card(one, folder=own) is None


def test_a_metric_whose_card_includes_a_coin_is_named(folders: tuple[Path, Path]) -> None:
    own, _ = folders
    coin = [
        Judged(label=label, margin=margin, value=int(margin > 0), mass=0.9, set="all", id=f"{n}")
        for n, (label, margin) in enumerate([(1, 1.0), (1, -1.0), (0, 1.0), (0, -1.0)] * 10)
    ]
    made = make_card(
        fingerprint(),
        measurements=[
            measurement(metric="faithfulness"),
            measurement("goal", metric="goal_with_reference"),
            measurement("goal", metric="goal_without_reference", measured=measure(coin, draws=100)),
            measurement("goal", measured=measure(coin, draws=100)),
        ],
    )
    write_card(made, [own / "cards" / "a.json"])
    metrics = ["faithfulness", "goal_with_reference", "goal_without_reference"]
    found = find_coins(fingerprint(), metrics, folder=own)
    assert list(found) == ["goal_without_reference"]
    assert found["goal_without_reference"].value == 0.5
    assert find_coins(fingerprint(), metrics[:2], folder=own) == {}
    assert find_coins(fingerprint(model={"name": "other", "sha256": "zz"}), metrics, folder=own) == {}


# scripts/measure_judge


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = Path(__file__).parents[1] / "scripts" / "measure_judge"
    loader = SourceFileLoader("measure_judge", str(path))
    spec = importlib.util.spec_from_loader("measure_judge", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He retired in 1975.", True),
        ("It was built in 1900.", True),
        ("In 1980, he retired.", True),
        ("Later, they moved to Rome.", True),
        ("Douglas retired when he was old.", False),
        ("When Douglas was old, he retired.", False),
        ("It is true that Rome is old.", False),
        ("It is possible to fly.", False),
        ("Rome, it turned out, is old.", True),
        ("The bridge is open.", False),
        ("In 1980, Douglas retired.", False),
        ("", False),
    ],
)
def test_a_pronoun_subject_is_one_that_its_statement_does_not_resolve(
    script: ModuleType, text: str, expected: bool
) -> None:
    assert script.has_pronoun_subject(text) is expected


@pytest.fixture
def development(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    support = [
        {
            "id": f"{name}{n}",
            "set": name,
            "context": f"It rained {n}.",
            "statement": f"It was wet {n}.",
            "label": n % 2,
        }
        for name in "ab"
        for n in range(6)
    ]
    messages = [{"role": "user", "content": "Stop."}, {"role": "assistant", "content": "Stopped."}]
    traces = [
        {
            "id": f"t{n}",
            "set": "t",
            "messages": messages[: 1 + n % 2] * (1 + n),
            "reference": "It stopped.",
            "label": n % 2,
        }
        for n in range(6)
    ]
    answers = [
        {
            "id": "x",
            "question": "Who built the bridge?",
            "answer": "The bridge was built by Anna. She was born in Lund, and the bridge opened in 1901.",
            "statements": ["Anna built the bridge.", "Anna was born in Lund.", "The bridge opened in 1901."],
        }
    ]
    for name, rows in (("support_dev", support), ("traces_dev", traces), ("decompose_answers", answers)):
        text = "\n".join(json.dumps(row) for row in rows)
        (folder / f"{name}.jsonl.gz").write_bytes(text.encode())
    cases = [
        {
            "id": "wet",
            "sample": {"response": "It rained. It snowed.", "retrieved_contexts": ["It rained."]},
            "expect": {"verdicts": [["rained", 1], ["snowed", 0], ["hailed", 0]]},
        },
        {"id": "stop", "sample": {"user_input": messages}, "expect": {"verdict": 1}},
        {"id": "shape", "sample": {}, "expect": {"structure": {}}},
    ]
    (folder / "cases.jsonl").write_text("\n".join(json.dumps(row) for row in cases), encoding="utf-8")
    return folder


def test_the_script_measures_all_four_parts_and_goes_on_where_it_stopped(
    script: ModuleType,
    development: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def answer(task: str, fields: Any) -> float:
        return 1.5 if "1" in str(fields.get("statement")) + str(fields.get("trace")) else 0.5

    fake = FakeJudge(answer)
    monkeypatch.setattr(script.options, "build_judge", lambda config: fake)
    out = tmp_path / "cards" / "fake"
    arguments = ["--data", str(development), "--cases", str(development / "cases.jsonl"), "--out", str(out)]
    arguments += ["--work", str(tmp_path / "work"), "--prior", "--note", "A fake."]
    assert script.main(arguments) == 0
    first = load_card(out.with_name("fake.json"))
    assert [item.title for item in first.measurements] == [
        "Support on support_dev.jsonl.gz",
        "Goal with reference on traces_dev.jsonl.gz",
        "Goal without reference on traces_dev.jsonl.gz",
    ]
    support, goal, _ = first.measurements
    assert support.measured.macro.rows == 12
    assert support.prior is not None
    assert support.prior.helps is False
    assert goal.baselines[0].auroc["t"].value is not None
    model, sentences = first.decompositions
    assert (model.claims, sentences.claims, sentences.sentences) == (3, 3, 2)
    # The pronoun of the second sentence means no subject: two of three claims are covered by sentences.
    assert sentences.covered.value == pytest.approx(2 / 3)
    assert sentences.pronoun_subjects.value == 0.5
    assert first.cases is not None
    assert (first.cases.right, first.cases.total) == (2, 4)
    assert first.cases.misses == ("wet ('snowed' wants 0)", "wet (no statement with 'hailed')")
    assert first.notes[-1] == "A fake."

    asked = len(fake.asked)
    (store,) = (tmp_path / "work").iterdir()
    lines = store.read_text(encoding="utf-8").splitlines()
    store.write_text("\n".join(lines[:5]) + "\n" + lines[5][:10], encoding="utf-8")
    assert script.main([*arguments, "--resume"]) == 0
    assert len(fake.asked) == asked + asked - 5
    again = load_card(out.with_name("fake.json"))

    def steady(found: JudgeCard) -> Any:
        speeds = {"seconds_per_row": None}
        return (
            [item.model_copy(update=speeds) for item in found.measurements],
            [item.model_copy(update={"tokens_per_second": None}) for item in found.decompositions],
            found.cases,
        )

    assert steady(again) == steady(first)
    assert "Support on support_dev.jsonl.gz" in capsys.readouterr().out


def test_instructions_are_counted_beside_neutral_sentences_and_added_to_a_card(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judge that is right, and obeys an IGNORE at the end of a context and nothing else."""
    labels = {(probe.context, probe.statement): probe.label for probe in load_probes()}

    def answer(task: str, fields: Any) -> float:
        shown, statement = fields["context"], fields["statement"]
        if "IGNORE" in shown[-100:]:
            return 2.0 if "reply with 1" in shown else -2.0
        right = max(
            (shown.count(context[:20]) + shown.count(context[-20:]), label)
            for (context, said), label in labels.items()
            if said == statement
        )[1]
        return 2.0 if right else -2.0

    monkeypatch.setattr(script.options, "build_judge", lambda config: FakeJudge(answer))
    out = tmp_path / "card"
    kept = make_card(FakeJudge().fingerprint, measurements=[measurement()], notes=["A note."], created=WHEN)
    write_card(kept, [out.with_suffix(".json")])
    arguments = ["--out", str(out), "--work", str(tmp_path / "work"), "--only", "injections", "--add"]
    assert script.main(arguments) == 0
    found = load_card(out.with_suffix(".json"))
    assert found.model_copy(update={"injections": None}) == kept
    injections = found.injections
    assert injections is not None
    groups = {group.name: group for group in injections.groups}
    clear = sum(injections.clear.values())
    assert clear >= 40
    assert min(injections.clear.values()) >= 20
    assert groups["all"].asked == 5 * clear
    assert groups["all"].control.value == 0
    assert groups["in favour of 1"].asked == 5 * injections.clear["0"]
    # A context of one sentence has no middle but its end.
    assert 1 / 3 <= (groups["ignore"].flipped.value or 0) <= 0.4
    assert all(groups[name].flipped.value == 0 for name in ("note", "claim", "turn", "system"))
    assert groups["at the end"].flipped.value == pytest.approx(1 / 5, abs=0.02)
    assert groups["at the start"].flipped.value == 0
    assert injections.any_flipped.value == groups["ignore"].flipped.value
    page = out.with_suffix(".md").read_text(encoding="utf-8")
    assert "## Instructions inside the context" in page
    assert "`ignore`" in page

    write_card(card(), [out.with_suffix(".json")])
    assert script.main(arguments) == 2


def test_neutral_sentences_are_as_long_as_the_instructions_and_sentences_stay_whole(
    script: ModuleType,
) -> None:
    for for_one, for_zero, neutral in script.INJECTIONS.values():
        assert abs(len(neutral) - (len(for_one) + len(for_zero)) / 2) <= 0.1 * len(neutral)
    context = "The dam holds. The gate leaks. The pump runs."
    assert script.put_into(context, "X.", "at the start") == f"X. {context}"
    assert script.put_into(context, "X.", "at the end") == f"{context} X."
    assert (
        script.put_into(context, "X.", "in the middle") == "The dam holds. X. The gate leaks. The pump runs."
    )
    assert script.put_into("The dam holds.", "X.", "in the middle") == "The dam holds. X."


def test_the_script_takes_parts_and_limits(
    script: ModuleType, development: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script.options, "build_judge", lambda config: FakeJudge([1.0, -1.0]))
    out = tmp_path / "card"
    arguments = ["--data", str(development), "--out", str(out), "--work", str(tmp_path / "work")]
    assert script.main([*arguments, "--only", "support", "--limit", "4"]) == 0
    found = load_card(tmp_path / "card.json")
    assert found.measurements[0].data.sets == {"a": 4, "b": 4}
    assert found.decompositions == ()
    assert found.cases is None
    assert "at most 4 rows of each set" in found.notes[-1]
    assert script.main([*arguments, "--data", str(tmp_path), "--only", "decompose"]) == 2
    with pytest.raises(SystemExit):
        script.main([*arguments, "--only", "everything"])
