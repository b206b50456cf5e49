"""Plans: against exact binomial sums, and against simulation where verdicts are correlated."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anvil_local.cli import app as cli
from anvil_local.errors import UsageError
from anvil_local.planning import count_distribution, make_plan, observed_rate, quorum
from anvil_local.records import Fingerprint
from anvil_local.stability import Stability


def binomial_sum(rate: Fraction, n: int, first: int, last: int) -> float:
    return float(sum(math.comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in range(first, last + 1)))


@pytest.mark.parametrize(("statements", "least"), [(1, 1), (3, 3), (5, 4), (20, 16), (21, 17)])
def test_the_quorum_is_exact(statements: int, least: int) -> None:
    assert quorum(Fraction(4, 5), statements) == least


@settings(max_examples=15)
@given(
    st.integers(1, 60),
    st.fractions(Fraction(1, 10), 1, max_denominator=20),
    st.fractions(0, Fraction(2, 5), max_denominator=20),
)
def test_independent_verdicts_give_exact_binomial_sums(n: int, threshold: Fraction, flips: Fraction) -> None:
    true, bad = (threshold + 1) / 2, threshold / 2
    plan = make_plan(
        threshold, statements=n, true_rate=float(true), bad_rate=float(bad), flip_rate=float(flips)
    )
    good_seen, bad_seen = (rate * (1 - flips) + (1 - rate) * flips for rate in (true, bad))
    least = math.ceil(threshold * n)
    assert plan.here.quorum == least
    assert plan.here.false_fail == pytest.approx(binomial_sum(good_seen, n, 0, least - 1), abs=1e-12)
    assert plan.here.false_pass == pytest.approx(binomial_sum(bad_seen, n, least, n), abs=1e-12)


def test_correlated_verdicts_are_as_simulated() -> None:
    random = np.random.default_rng(5)
    weight = (1 - 0.3) / 0.3
    rates = random.beta(0.85 * weight, 0.15 * weight, size=(100_000, 7))
    counts = random.binomial([3, 3, 3, 3, 3, 3, 2], rates).sum(axis=1)
    found = count_distribution(0.85, 20, 0.3, 3)
    seen = np.bincount(counts, minlength=21) / 100_000
    # Three standard errors of the likeliest count's share are below 0.004.
    assert np.abs(found - seen).max() < 0.005
    assert found.sum() == pytest.approx(1)


@given(st.floats(0, 1), st.integers(1, 30), st.floats(0.01, 1), st.integers(1, 8))
def test_correlation_widens_by_the_design_effect_and_moves_no_mean(
    rate: float, samples: int, correlation: float, size: int
) -> None:
    n = samples * size
    found = count_distribution(rate, n, correlation, size)
    counts = np.arange(n + 1)
    mean = float(found @ counts)
    assert mean == pytest.approx(n * rate, abs=1e-6)
    variance = float(found @ (counts - mean) ** 2)
    assert variance == pytest.approx(
        n * rate * (1 - rate) * (1 + (size - 1) * correlation), rel=1e-5, abs=1e-5
    )


@pytest.mark.parametrize("correlation", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("rate", [0.0, 5e-324, 1e-308, 1e-13, 1e-11, 1 - 1e-11, 1 - 1e-16, 1.0])
def test_rates_at_the_ends_have_a_distribution(rate: float, correlation: float) -> None:
    found = count_distribution(rate, 6, correlation, 3)
    assert found.sum() == pytest.approx(1)
    assert found[6 if rate > 0.5 else 0] == pytest.approx(1)


def test_correlation_needs_more_statements() -> None:
    fixed: dict[str, Any] = {"statements": 20, "true_rate": 0.95, "bad_rate": 0.6, "per_sample": 4}
    alone, together = (make_plan(Fraction(4, 5), correlation=c, **fixed).needed for c in (0.0, 0.5))
    assert alone is not None
    assert together is not None
    assert alone < together


def test_the_needed_number_is_the_first_from_which_on_both_chances_stay_small() -> None:
    plan = make_plan(Fraction(4, 5), statements=20, true_rate=0.9, bad_rate=0.7, flip_rate=0.02, wanted=0.05)
    assert plan.needed is not None
    good, bad = (Fraction(observed_rate(rate, 0.02)) for rate in (0.9, 0.7))

    def worst(n: int) -> float:
        least = quorum(Fraction(4, 5), n)
        return max(binomial_sum(good, n, 0, least - 1), binomial_sum(bad, n, least, n))

    assert worst(plan.needed - 1) > 0.05
    assert all(worst(n) <= 0.05 for n in range(plan.needed, plan.needed + 30))


def test_flips_can_put_a_threshold_out_of_reach() -> None:
    plan = make_plan(Fraction(9, 10), statements=50, true_rate=0.95, flip_rate=0.1)
    assert (plan.needed, plan.needed_samples) == (None, None)
    assert "flips pull the good build to 0.860" in str(plan.reason)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"flip_rate": 0.5}, "below 0.5"),
        ({"true_rate": 0.7}, "must meet the threshold"),
        ({"bad_rate": 0.8}, "must miss it"),
        ({"correlation": 1.1}, "--correlation"),
        ({"statements": 0}, "--statements"),
        ({"per_sample": 0}, "--per-sample"),
        ({"wanted": 0.0}, "--flake-rate"),
        ({"true_rate": float("nan")}, "--true-rate"),
    ],
)
def test_numbers_out_of_range_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_plan(Fraction(4, 5), **({"statements": 20, "true_rate": 0.9} | change))


def test_the_command_says_what_a_threshold_means(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        cli.main(["plan", "0.8", "-n", "3"])
    assert exit_.value.code == 0
    out = capsys.readouterr().out
    assert ">= 0.8 of 3 statements is 3 of 3" in out
    assert all(len(line) <= 80 for line in out.splitlines())
    with pytest.raises(SystemExit):
        cli.main(["plan", "80%", "--correlation", "0", "--flip-rate", "0", "--true-rate", "0.9", "--json"])
    plan = json.loads(capsys.readouterr().out)
    assert plan["here"]["false_fail"] == pytest.approx(binomial_sum(Fraction(9, 10), 20, 0, 15))


def test_a_bad_threshold_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        cli.main(["plan", "80"])
    assert exit_.value.code == 2
    assert "did you mean 80%?" in capsys.readouterr().err


def write_stability(path: Path, flip_rate: float | None) -> Path:
    found = Stability(
        judge=Fingerprint(digest="ab" * 32, parts={}),
        samples=10,
        verdicts=30,
        axes=(),
        skipped={},
        flip_rate=flip_rate,
        band=None,
        in_band=None,
        gates=(),
        flips=(),
    )
    path.write_text(found.model_dump_json(indent=2), encoding="utf-8")
    return path


def test_the_flip_rate_of_a_stability_report_is_the_flip_rate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_stability(tmp_path / "stability.json", 0.125)
    with pytest.raises(SystemExit, match="0"):
        cli.main(["plan", "0.8", "--stability", str(path)])
    read = capsys.readouterr().out
    assert "flips 0.125 of its verdicts" in read
    with pytest.raises(SystemExit, match="0"):
        cli.main(["plan", "0.8", "--flip-rate", "0.125"])
    assert capsys.readouterr().out == read


@pytest.mark.parametrize(
    ("text", "message"), [(None, "cannot be read"), ("[]", "not a stability report"), ("null", "not a")]
)
def test_what_is_no_stability_report_is_refused_with_its_path(
    text: str | None, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "stability.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit, match="2"):
        cli.main(["plan", "0.8", "--stability", str(path)])
    error = capsys.readouterr().err
    assert message in error
    assert str(path) in error


def test_a_stability_report_without_a_rate_and_two_rates_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_stability(tmp_path / "stability.json", None)
    with pytest.raises(SystemExit, match="2"):
        cli.main(["plan", "0.8", "--stability", str(path)])
    assert "no flip rate" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        cli.main(["plan", "0.8", "--stability", str(path), "--flip-rate", "0.1"])
    assert "two flip rates" in capsys.readouterr().err
