"""The pytest plugin with a real judge."""

from __future__ import annotations

from pathlib import Path

import pytest

SUITE = """
def test_supported(anvil):
    anvil.assert_faithful("The museum opens at nine.", ["The museum opens at nine and closes at five."])

def test_elsewhere(anvil):
    result = anvil.assert_faithful(
        "The harbour has three cranes.", ["The museum opens at nine and closes at five."], at_least=0.0
    )
    assert result.statements[0].verdict.margin < 0
"""


def test_a_suite_judges_with_the_real_model(
    pytester: pytest.Pytester, models_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANVIL_MODELS_DIR", str(models_dir))
    pytester.makefile(".toml", anvil="cache = false\nwindow = 1024\n")
    pytester.makepyfile(SUITE)
    result = pytester.runpytest_subprocess("--anvil-model", "smollm2-135m", "--anvil-report", "out.json")
    result.assert_outcomes(passed=2)
    assert '"sha256"' in (pytester.path / "out.json").read_text(encoding="utf-8")
