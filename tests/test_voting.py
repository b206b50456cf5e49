from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil_local.errors import EngineError, UsageError
from anvil_local.judge import FakeJudge
from anvil_local.records import Fingerprint
from anvil_local.voting import VotingJudge

FIELDS = {"context": "c", "statement": "s"}


class Named(FakeJudge):
    """A fake with a fingerprint and a threshold of its own."""

    def __init__(self, name: str, margin: float, threshold: float = 0.0, window: int = 100) -> None:
        super().__init__([margin], window=window)
        self.name, self.threshold = name, threshold

    @property
    def fingerprint(self) -> Fingerprint:
        return Fingerprint(digest=self.name * 12, parts={"name": self.name})

    def threshold_of(self, task: str) -> float:
        return self.threshold


margins = st.floats(-20, 20).filter(lambda value: abs(value) > 1e-6)


@given(st.lists(margins, min_size=1, max_size=7).filter(lambda items: len(items) % 2 == 1))
def test_an_odd_number_of_judges_decides_by_majority(values: list[float]) -> None:
    judge = VotingJudge([Named(chr(97 + i), value) for i, value in enumerate(values)])
    verdict = judge.ask("support", FIELDS)
    yes = sum(value > 0 for value in values)
    assert verdict.value == int(yes > len(values) / 2)
    assert [vote.value for vote in verdict.votes] == [int(value > 0) for value in values]


def test_a_tie_goes_to_the_surer_side() -> None:
    assert VotingJudge([Named("a", 3.0), Named("b", -1.0)]).ask("support", FIELDS).value == 1
    assert VotingJudge([Named("a", 1.0), Named("b", -3.0)]).ask("support", FIELDS).value == 0


def test_each_vote_is_counted_from_its_judges_own_threshold() -> None:
    judge = VotingJudge([Named("a", 1.0, threshold=2.0)])
    assert judge.ask("support", FIELDS).margin == -1.0
    assert judge.threshold_of("support") == 0.0


def test_every_vote_is_kept_with_its_judge() -> None:
    verdict = VotingJudge([Named("a", 1.0), Named("b", 2.0), Named("c", -1.0)]).ask("support", FIELDS)
    assert [(vote.judge, vote.value) for vote in verdict.votes] == [
        ("a" * 12, 1),
        ("b" * 12, 1),
        ("c" * 12, 0),
    ]


def test_what_fits_one_judge_fits_all_and_the_first_one_writes() -> None:
    first, second = Named("a", 1.0, window=50), Named("b", 1.0, window=30)
    judge = VotingJudge([first, second])
    assert judge.room("support", {"statement": "one two"}) == 28
    judge.write("decompose", {"sentence": "It rained."}, limit=10)
    assert len(first.wrote) == 1
    assert second.wrote == []


def test_the_fingerprint_names_all_judges_in_order() -> None:
    one, two = Named("a", 1.0), Named("b", 1.0)
    assert VotingJudge([one, two]).fingerprint != VotingJudge([two, one]).fingerprint


def test_the_same_judge_twice_and_no_judge_are_refused() -> None:
    with pytest.raises(UsageError, match="twice"):
        VotingJudge([Named("a", 1.0), Named("a", 2.0)])
    with pytest.raises(UsageError):
        VotingJudge([])


def test_an_error_of_one_judge_is_an_error_of_the_vote() -> None:
    broken = Named("b", 1.0)
    broken._answers = [EngineError("broken")]
    with pytest.raises(EngineError):
        VotingJudge([Named("a", 1.0), broken]).ask("support", FIELDS)
