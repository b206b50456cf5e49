"""The commands of the docs run, and say what the pages show; the examples run."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from anvil_local.cli import options
from anvil_local.judge import FakeJudge, GgufJudge, digest
from anvil_local.records import Fingerprint, Report
from tests.pages import ROOT, run, shown

PAGES = sorted([*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "examples").glob("*.md")])
# They want a network, a compiled llama.cpp or a model file, and have their own tests.
ELSEWHERE = ("anvil-local bundle", "anvil-local models")


class PageJudge(FakeJudge):
    """Answers by the numbers and long words of the statement, under a fingerprint like a real judge's."""

    def __init__(self) -> None:
        super().__init__(lambda task, fields: _borne_out(fields))

    @property
    def fingerprint(self) -> Fingerprint:
        parts: dict[str, Any] = {
            "model": {"name": "smollm2-135m"},
            "options": {"profile": "smollm2", "adapter": True, "threshold": None},
            "decode": {"window": 2048, "gpu_layers": 0},
        }
        return Fingerprint(digest=digest(parts), parts=parts)

    def __enter__(self) -> PageJudge:
        return self

    def __exit__(self, *_: object) -> None:
        pass


def _borne_out(fields: Mapping[str, str]) -> int:
    context = fields.get("context", "").lower()
    words = re.findall(r"\w{6,}|\d+", fields.get("statement", "").lower())
    return int(all(word in context for word in words))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the pages speak of, and a judge without a model."""
    monkeypatch.setattr(options, "build_judge", lambda config, **_: PageJudge())
    monkeypatch.chdir(tmp_path)
    for name in ("docs", "anvil_local"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "anvil_local" / "examples" / "answers.jsonl", "answers.jsonl")
    row = {"context": "It rained.", "statement": "It rained.", "label": 1}
    rows = [row | {"id": str(number), "label": number % 2} for number in range(40)]
    rows = [each | ({} if each["label"] else {"statement": "It hailed heavily."}) for each in rows]
    Path("labelled.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    assert run("anvil-local run answers.jsonl -q -o report.json -o base.json -o new.json")[0] == 0
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_runs_and_says_what_is_shown(
    page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = 0
    # What `label` is answered.
    monkeypatch.setattr("sys.stdin", io.StringIO("1\n0\n" * 40))
    for command in shown(page):
        if command.line == "echo $?":
            assert command.real or command.output == str(code)
            continue
        if command.line.startswith(ELSEWHERE):
            continue
        code, output = run(command.line)
        assert code in (0, 1) or (command.output and not command.real), f"{command.line}\n{output}"
        if command.output and not command.real:
            assert output == command.output, command.line


def test_the_example_in_python_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import runpy

    monkeypatch.setattr(GgufJudge, "load", lambda *_, **__: PageJudge())
    runpy.run_path(str(ROOT / "docs" / "examples" / "python_api.py"), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [
        "1 There is a car park behind the museum.",
        "0 Parking costs four euros an hour.",
        "passed 0.5",
    ]


def test_the_example_for_pytest_passes_and_skips_the_refusal(pytester: pytest.Pytester) -> None:
    for name in ("test_museum.py", "opening_hours.jsonl"):
        shutil.copy(ROOT / "docs" / "examples" / name, pytester.path)
    pytester.makeconftest(
        "import pytest\n"
        "from anvil_local import FakeJudge\n"
        "@pytest.fixture(scope='session')\n"
        "def anvil_judge():\n"
        "    return FakeJudge(lambda task, fields: int('euros' not in fields['statement']))\n"
    )
    result = pytester.runpytest("-p", "no:cacheprovider")
    result.assert_outcomes(passed=3, skipped=1)


def test_the_published_schema_takes_reports_and_refuses_damaged_ones() -> None:
    schema = json.loads((ROOT / "docs" / "reference" / "report.schema.json").read_text(encoding="utf-8"))
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    report = json.loads((ROOT / "tests" / "snapshots" / "report.json").read_text(encoding="utf-8"))
    Report.model_validate(report)
    validator.validate(report)
    # A release may add a field within a schema version: the readers of today must not refuse it.
    validator.validate(report | {"added_later": 1})
    report["results"][0]["statements"][0]["verdict"]["value"] = 2
    assert not validator.is_valid(report)
