"""The selfcheck: its arithmetic, what is remembered, what a run is told, and its command."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from itertools import pairwise
from math import comb, nextafter
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil_local.cli import app as cli
from anvil_local.cli import options
from anvil_local.cli.selfcheck import render_selfcheck
from anvil_local.errors import EngineError, PromptTooLong, UsageError
from anvil_local.judge import FakeJudge
from anvil_local.probes import KINDS, load_probes
from anvil_local.records import Fingerprint
from anvil_local.selfcheck import (
    FIT_AUROC,
    FIT_BOUND,
    SelfcheckResult,
    auroc,
    ensure_selfcheck,
    find_selfcheck,
    judge_standing,
    name_judge,
    name_standing,
    remember_selfcheck,
    run_selfcheck,
    selfcheck_folder,
    wilson_interval,
)

PROBES = load_probes()
TOTAL = len(PROBES)
LABELS = {(probe.context, probe.statement): probe.label for probe in PROBES}
IDS = {(probe.context, probe.statement): probe.id for probe in PROBES}


class Scripted(FakeJudge):
    """A judge that is wrong on the probes named, and right on the others."""

    def __init__(self, wrong: set[str] = frozenset(), *, size: float = 4.0) -> None:  # type: ignore[assignment]
        def answer(task: str, fields: Mapping[str, str]) -> float:
            assert task == "support"
            key = (fields["context"], fields["statement"])
            right = IDS[key] not in wrong
            return size if (LABELS[key] == 1) is right else -size

        super().__init__(answer)


def wrong_on(number: int) -> set[str]:
    """Half of the probes' ids that are 1 and half that are 0, `number` in all, one of a pair."""
    names = [probe.id for probe in PROBES if probe.id.endswith("a")]
    more = [probe.id for probe in PROBES if probe.id.endswith("b")]
    return set((names + more)[:number])


@pytest.fixture
def say() -> list[str]:
    return []


# The arithmetic


def bars() -> tuple[int, int]:
    """The fewest right answers that are weak, and that are fit."""
    bounds = [wilson_interval(right, TOTAL)[0] for right in range(TOTAL + 1)]
    weak = next(right for right, low in enumerate(bounds) if low > 0.5)
    return weak, next(right for right, low in enumerate(bounds) if low >= FIT_BOUND)


def at_least(right: int, truth: float) -> float:
    """P(so many right answers or more) for a judge that is right with probability `truth`."""
    return sum(comb(TOTAL, n) * truth**n * (1 - truth) ** (TOTAL - n) for n in range(right, TOTAL + 1))


def fewer(right: int, truth: float) -> float:
    return sum(comb(TOTAL, n) * truth**n * (1 - truth) ** (TOTAL - n) for n in range(right))


def test_the_bars_are_those_of_the_docstring() -> None:
    assert TOTAL == 166
    assert bars() == (100, 132)


def test_a_coin_is_practically_never_fit_and_hardly_ever_weak() -> None:
    weak, fit = bars()
    assert at_least(fit, 0.5) < 1e-10
    assert at_least(weak, 0.5) < 0.006


def test_a_judge_below_the_bound_is_hardly_ever_fit() -> None:
    assert at_least(bars()[1], FIT_BOUND) < 0.005


def test_a_good_judge_is_practically_never_unfit_and_mostly_fit() -> None:
    weak, fit = bars()
    assert fewer(weak, 0.75) < 1e-4
    assert fewer(weak, 0.85) < 1e-12
    assert at_least(fit, 0.85) > 0.97


def test_judges_that_do_not_read_are_unfit() -> None:
    for answer in (0, 1, 0.5, -0.5):
        assert run_selfcheck(FakeJudge([answer])).verdict == "unfit"
    # By the words of one side alone: pairs share the other side, so half of them is right.
    by_statement = FakeJudge(lambda _, fields: len(fields["statement"]) % 2)
    by_context = FakeJudge(lambda _, fields: len(fields["context"]) % 2)
    assert run_selfcheck(by_statement).verdict == "unfit"
    assert run_selfcheck(by_context).verdict == "unfit"


@pytest.mark.parametrize(
    ("low", "area", "verdict"),
    [
        (0.5, 1.0, "unfit"),
        (nextafter(0.5, 1), 1.0, "weak"),
        (nextafter(FIT_BOUND, 0), 1.0, "weak"),
        (FIT_BOUND, FIT_AUROC, "fit"),
        (FIT_BOUND, nextafter(FIT_AUROC, 0), "weak"),
        (0.9, None, "fit"),
        (0.2, None, "unfit"),
    ],
)
def test_the_verdict_changes_where_the_rules_say(low: float, area: float | None, verdict: str) -> None:
    assert name_standing(low, area) == verdict


def test_the_wilson_interval_agrees_with_a_published_example() -> None:
    # Newcombe 1998, table I: 81 of 263, 95 %, method 3.
    low, high = wilson_interval(81, 263, 0.95)
    assert (round(low, 4), round(high, 4)) == (0.2553, 0.3662)
    assert wilson_interval(0, 20, 0.95)[1] == pytest.approx(0.1611, abs=5e-5)


@given(st.integers(1, 500).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_an_interval_holds_its_share_and_mirrors(pair: tuple[int, int]) -> None:
    right, total = pair
    low, high = wilson_interval(right, total)
    assert 0 <= low <= right / total <= high <= 1
    assert wilson_interval(total - right, total) == pytest.approx((1 - high, 1 - low))
    if right < total:
        assert wilson_interval(right + 1, total)[0] > low


@pytest.mark.parametrize(("right", "total"), [(0, 0), (2, 1), (-1, 3)])
def test_what_is_no_share_has_no_interval(right: int, total: int) -> None:
    with pytest.raises(ValueError, match="no share"):
        wilson_interval(right, total)


MARGINS = st.lists(st.tuples(st.integers(0, 1), st.integers(-20, 20).map(float)), max_size=40)


@given(MARGINS)
def test_auroc_is_the_share_of_ordered_pairs(margins: list[tuple[int, float]]) -> None:
    pairs = [(one, zero) for label, one in margins if label for other, zero in margins if not other]
    found = auroc(margins)
    if not pairs:
        assert found is None
        return
    expected = sum(1.0 if one > zero else 0.5 if one == zero else 0.0 for one, zero in pairs) / len(pairs)
    assert found == pytest.approx(expected)
    # Neither the scale nor the order matters; the other labels turn it round.
    assert auroc([(label, 3 * margin + 7) for label, margin in reversed(margins)]) == found
    assert auroc([(1 - label, margin) for label, margin in margins]) == pytest.approx(1 - found)


# A check


def test_a_judge_that_is_always_right_is_fit_on_every_kind() -> None:
    result = run_selfcheck(Scripted())
    assert (result.verdict, result.right, result.total) == ("fit", TOTAL, TOTAL)
    assert (result.pairs, result.pairs_right) == (TOTAL // 2, TOTAL // 2)
    assert (result.auroc, result.balanced_accuracy, result.high, result.unscored) == (1.0, 1.0, 1.0, 0)
    assert [row.kind for row in result.kinds] == list(KINDS)
    assert all(row.right == row.total for row in result.kinds)
    assert sum(row.total for row in result.kinds) == TOTAL
    assert not result.partial
    assert result.misses == ()


@given(st.sets(st.sampled_from([probe.id for probe in PROBES])))
def test_counts_add_up_whatever_the_judge_gets_wrong(wrong: set[str]) -> None:
    result = run_selfcheck(Scripted(wrong))
    assert {miss.id for miss in result.misses} == wrong
    assert result.right == TOTAL - len(wrong) == sum(row.right for row in result.kinds)
    assert result.balanced_accuracy == pytest.approx(result.right / TOTAL)
    assert result.auroc == pytest.approx(result.balanced_accuracy)  # margins of one size
    assert result.pairs_right == TOTAL // 2 - len({name[:-1] for name in wrong})
    weak, fit = bars()
    assert result.verdict == ("fit" if result.right >= fit else "weak" if result.right >= weak else "unfit")
    assert SelfcheckResult.model_validate_json(result.model_dump_json()) == result


def test_a_threshold_that_is_off_is_unfit_though_its_margins_separate() -> None:
    judge = FakeJudge(lambda _, fields: 1.0 + LABELS[fields["context"], fields["statement"]])
    result = run_selfcheck(judge)
    assert (result.verdict, result.auroc, result.balanced_accuracy) == ("unfit", 1.0, 0.5)
    assert "threshold" in render_selfcheck(result)


def test_probes_that_share_a_context_are_asked_one_after_the_other() -> None:
    judge = Scripted()
    run_selfcheck(judge)
    contexts = [fields["context"] for _, fields in judge.asked]
    changes = sum(one != other for one, other in pairwise(contexts))
    assert changes + 1 == len(set(contexts))


def test_progress_ends_at_the_number_of_probes() -> None:
    seen: list[tuple[int, int]] = []
    run_selfcheck(Scripted(), kinds=["position"], on_progress=lambda *state: seen.append(state))
    assert seen == [(6, 12), (12, 12)]


def test_a_judge_with_a_small_window_sees_the_long_contexts_in_windows() -> None:
    judge = FakeJudge(lambda _, fields: int("a lost badge costs 15 euros" in fields["context"]), window=200)
    result = run_selfcheck(judge, kinds=["position"])
    assert result.unscored == 0
    assert len(judge.asked) > 12


def test_what_cannot_be_decided_is_wrong_counted_and_not_remembered() -> None:
    def answer(task: str, fields: Mapping[str, str]) -> int:
        if IDS[fields["context"], fields["statement"]] in ("number-1a", "name-2b"):
            raise PromptTooLong("too long")
        return LABELS[fields["context"], fields["statement"]]

    result = run_selfcheck(FakeJudge(answer))
    assert (result.unscored, result.right) == (2, TOTAL - 2)
    assert [miss.value for miss in result.misses] == [None, None]
    assert remember_selfcheck(result) is None
    assert "not decided        2" in render_selfcheck(result)


def test_a_judge_that_decides_nothing_is_an_error_not_a_verdict() -> None:
    with pytest.raises(EngineError, match="single probe"):
        run_selfcheck(FakeJudge([EngineError("broken")]))


def test_an_unknown_kind_is_refused_before_anything_is_asked() -> None:
    judge = Scripted()
    with pytest.raises(UsageError, match="no such kind"):
        run_selfcheck(judge, kinds=["numbers"])
    assert judge.asked == []


# What is remembered


def test_a_result_is_remembered_for_its_judge_alone() -> None:
    judge = Scripted()
    assert find_selfcheck(judge.fingerprint) is None
    result = run_selfcheck(judge)
    path = remember_selfcheck(result)
    assert path is not None
    assert path.parent == selfcheck_folder()
    assert [item.name for item in path.parent.iterdir()] == [path.name]
    assert find_selfcheck(judge.fingerprint) == result
    assert find_selfcheck(Fingerprint(digest="0" * 64, parts={})) is None


@pytest.mark.parametrize("change", ["probes", "rules", "digest", "partial", "cut", "bytes", "gone"])
def test_a_result_of_other_probes_or_rules_or_a_broken_file_is_none(change: str) -> None:
    result = run_selfcheck(Scripted())
    path = remember_selfcheck(result)
    assert path is not None
    if change == "gone":
        path.unlink()
        path.mkdir()
    elif change == "cut":
        path.write_text(path.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    elif change == "bytes":
        path.write_bytes(b"\xff\xfe\x00")
    else:
        other = Fingerprint(digest="1" * 64, parts={})
        changes = {"probes": "0" * 64, "rules": "selfcheck/0", "partial": True}
        update = {"fingerprint": other} if change == "digest" else {change: changes[change]}
        path.write_text(result.model_copy(update=update).model_dump_json(), encoding="utf-8")
    assert find_selfcheck(result.fingerprint) is None


def test_a_part_of_the_kinds_is_not_remembered() -> None:
    assert remember_selfcheck(run_selfcheck(Scripted(), kinds=["number"])) is None


def test_a_cache_folder_that_cannot_be_written_is_no_failure(say: list[str]) -> None:
    selfcheck_folder().parent.mkdir(parents=True)
    selfcheck_folder().write_text("a file", encoding="utf-8")
    assert ensure_selfcheck(Scripted(), say.append).verdict == "fit"


@given(st.text(max_size=200))
def test_any_digest_has_a_file_name_inside_the_folder(digest: str) -> None:
    result = run_selfcheck(Scripted(), kinds=["name"]).model_copy(
        update={"fingerprint": Fingerprint(digest=digest, parts={}), "partial": False}
    )
    path = remember_selfcheck(result)
    assert path is not None
    assert path.parent == selfcheck_folder()


# For a run


def test_ensure_asks_once_and_says_so(say: list[str]) -> None:
    judge = Scripted()
    first = ensure_selfcheck(judge, say.append)
    assert len(judge.asked) == TOTAL
    assert ensure_selfcheck(judge, say.append) == first
    assert len(judge.asked) == TOTAL
    assert len(say) == 1


def test_a_judge_nobody_measured_is_warned_of_and_a_measured_one_is_not(say: list[str]) -> None:
    judge = Scripted()
    warning = judge_standing(judge.fingerprint)
    assert warning is not None
    assert "anvil-local selfcheck" in warning
    ensure_selfcheck(judge, say.append)
    assert judge_standing(judge.fingerprint) is None


def test_an_unfit_judge_is_warned_of_even_with_a_card(
    say: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_cards(monkeypatch, card=True)
    judge = FakeJudge([1])
    assert judge_standing(judge.fingerprint) is None
    assert ensure_selfcheck(judge, say.append).verdict == "unfit"
    assert "unfit" in str(judge_standing(judge.fingerprint))


def test_a_judge_without_a_card_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_cards(monkeypatch, card=False)
    assert judge_standing(FakeJudge().fingerprint) is not None


def fake_cards(monkeypatch: pytest.MonkeyPatch, *, card: bool) -> None:
    module = ModuleType("anvil_local.cards")
    module.find_card = lambda fingerprint, *, task, folder: "a card" if card else None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "anvil_local.cards", module)


def test_a_judge_is_named_by_its_model_or_its_number_of_votes() -> None:
    assert name_judge(FakeJudge().fingerprint).startswith("fake, ")
    assert name_judge(Fingerprint(digest="a" * 64, parts={"vote": [1, 2, 3]})).startswith("a vote of 3, ")
    assert name_judge(Fingerprint(digest="a" * 64, parts={})) == f"unnamed judge, {'a' * 12}"


# The command


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as exit_:
        cli.main(["selfcheck", *arguments])
    return int(exit_.value.code or 0)


def use(monkeypatch: pytest.MonkeyPatch, judge: FakeJudge) -> FakeJudge:
    monkeypatch.setattr(options, "build_judge", lambda config, **_: judge)
    return judge


FIT, WEAK, UNFIT = set(), wrong_on(50), wrong_on(83)


@pytest.mark.parametrize(
    ("wrong", "verdict", "arguments", "code"),
    [
        (FIT, "fit", [], 0),
        (WEAK, "weak", [], 0),
        (UNFIT, "unfit", [], 1),
        (FIT, "fit", ["--require", "fit"], 0),
        (WEAK, "weak", ["--require", "fit"], 1),
        (WEAK, "weak", ["--require", "weak"], 0),
        (UNFIT, "unfit", ["--require", "weak"], 1),
    ],
)
def test_the_exit_code_and_the_last_paragraph_say_the_verdict(
    wrong: set[str],
    verdict: str,
    arguments: list[str],
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    use(monkeypatch, Scripted(wrong))
    assert run(*arguments) == code
    captured = capsys.readouterr()
    assert captured.out.rstrip("\n").split("\n\n")[-1].startswith(f"{verdict}: ")
    assert captured.err == ""


def test_the_table_has_a_row_a_kind_and_fits_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, FakeJudge([1]))
    run("-v")
    lines = capsys.readouterr().out.split("\n")
    assert max(map(len, lines)) <= 80
    for kind in KINDS:
        assert any(line.split()[:1] == [kind] for line in lines)


def test_wrong_answers_are_listed_with_v_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, Scripted({"order-1a"}))
    run()
    assert "order-1a" not in capsys.readouterr().out
    run("--verbose")
    statement = next(probe.statement for probe in PROBES if probe.id == "order-1a")
    out = capsys.readouterr().out
    assert "order-1a  is " in out
    assert "margin " in out
    assert statement in " ".join(out.split())


def test_json_is_the_result(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    use(monkeypatch, Scripted(WEAK))
    assert run("--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["verdict"] == "weak"
    assert SelfcheckResult.model_validate(document | {"kinds": tuple(document["kinds"])})
    assert len(document["answers"]) == TOTAL


def test_the_command_remembers_and_fresh_asks_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    judge = use(monkeypatch, Scripted())
    run()
    run()
    assert len(judge.asked) == TOTAL
    assert "remembered" in capsys.readouterr().err
    run("-q")
    assert capsys.readouterr().err == ""
    run("--fresh")
    assert len(judge.asked) == 2 * TOTAL


def test_chosen_kinds_are_asked_alone_and_leave_the_remembered_result(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    judge = use(monkeypatch, Scripted())
    assert run("--kind", "number", "--kind", "language") == 0
    assert len(judge.asked) == 26
    assert "ask all probes" in " ".join(capsys.readouterr().out.split())
    assert find_selfcheck(judge.fingerprint) is None


def test_an_unknown_kind_exits_with_2_and_names_the_nearest(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    judge = use(monkeypatch, Scripted())
    assert run("--kind", "negations") == 2
    assert "negation" in capsys.readouterr().err
    assert judge.asked == []


def test_the_help_states_the_exit_codes_and_the_number_of_probes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("--help") == 0
    out = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert f"{TOTAL} probes" in out
    assert "with 1 if it is unfit" in out


def test_the_probes_are_a_file_of_the_package() -> None:
    import anvil_local.probes

    assert (Path(anvil_local.probes.__file__).parent / "probes.jsonl").is_file()


def test_an_unfit_judge_is_told_of_its_adapter_only_if_it_was_left_out() -> None:
    from anvil_local.cli.selfcheck import _words

    found = run_selfcheck(FakeJudge([1]))
    for adapter, told in ((False, True), (True, False)):
        parts = {"options": {"adapter": adapter}}
        result = found.model_copy(update={"fingerprint": Fingerprint(digest="d", parts=parts)})
        assert ("--no-adapter" in _words(result)) is told
