"""What GitHub Actions is told: annotations that no data can forge, and a summary within its limit."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings

from anvil_local.errors import AnvilError
from anvil_local.reports.github import SHOWN, append_summary, place, render_annotations
from anvil_local.reports.markdown import SIZE_LIMIT
from tests.test_reports import HOSTILE, answer, example, nasty, report, trace, verdict


def read(line: str) -> tuple[str, dict[str, str], str]:
    """A line as the runner reads it (actions/runner, ActionCommand.cs)."""
    parts = re.fullmatch(r"::(\w+) ([^:]*)::(.*)", line, re.DOTALL)
    assert parts, line
    properties = {}
    for pair in parts[2].split(","):
        name, value = pair.split("=", 1)
        properties[name] = unescape(value)
    return parts[1], properties, unescape(parts[3])


def unescape(text: str) -> str:
    for code, char in (("%3A", ":"), ("%2C", ","), ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        text = text.replace(code, char)
    return text


def test_a_failed_gate_is_an_error_and_a_bad_sample_a_warning_at_its_line() -> None:
    commands = [read(line) for line in render_annotations(example()).splitlines()]
    assert [level for level, _, _ in commands] == ["error", "warning", "warning", "warning", "warning"]
    assert commands[0][2].startswith("faithfulness.mean 0.46 >= 0.80: FAIL")
    _, properties, message = commands[3]
    assert properties == {"file": "answers.jsonl", "line": "2", "title": "Sample 2"}
    assert message.splitlines()[1] == "refused (-3.50): The tower was built in 1789."


@pytest.mark.parametrize(
    "text", ["100%, a: b", "a\nb", "%0A::error::x", "a\r\n::error::owned", "x,title=y:z"]
)
def test_what_means_something_in_a_command_is_escaped_and_read_back(text: str) -> None:
    sample = answer(text, "r", (text, verdict(0, -1.0)), source=f"{text.splitlines()[0]}.jsonl:3")
    output = render_annotations(report(sample))
    (line,) = output.splitlines()
    level, properties, message = read(line)
    assert level == "warning"
    assert set(properties) == {"file", "line", "title"}
    assert properties["title"] == f"Sample {' '.join(text.replace(chr(13), chr(92) + 'r').split(chr(10)))}"
    assert "refused (-1.00): " in message


@settings(deadline=None)
@given(HOSTILE)
def test_no_data_begins_a_command_of_its_own(text: str) -> None:
    output = render_annotations(nasty(text))
    output.encode("utf-8")
    lines = output.split("\n")[:-1]
    assert len(lines) == 3
    assert [read(line)[0] for line in lines] == ["error", "warning", "warning"]


def test_beyond_what_github_shows_a_notice_counts() -> None:
    many = report(*(trace(str(k), verdict(0, -1.0)) for k in range(SHOWN + 5)))
    commands = [read(line) for line in render_annotations(many).splitlines()]
    assert [level for level, _, _ in commands] == ["warning"] * SHOWN + ["notice"]
    assert commands[-1][2] == "not shown: 5 samples below 1"


def test_a_clean_report_says_nothing_and_an_interrupted_one_does() -> None:
    assert render_annotations(report(answer("1", "r", ("s", verdict(1))))) == ""
    assert render_annotations(report(complete=False)).startswith("::error title=Run interrupted::")


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("a.jsonl:7", ("a.jsonl", 7)),
        ("./data/a.jsonl:7", ("data/a.jsonl", 7)),
        ("C:\\a.jsonl:7", ("C:\\a.jsonl", 7)),
        ("a.jsonl", None),
        ("a.jsonl:0", None),
        ("stdin:3", None),
        ("", None),
    ],
)
def test_the_place_of_a_sample(source: str, found: tuple[str, int] | None) -> None:
    assert place(source) == found


def test_the_summary_is_appended_and_the_whole_file_keeps_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    append_summary(example(), path)
    assert path.read_text(encoding="utf-8").startswith("## anvil-local: FAIL")
    path.write_bytes(b"x" * (SIZE_LIMIT - 1200))
    append_summary(example(), path)
    written = path.read_bytes()
    assert written.startswith(b"x" * (SIZE_LIMIT - 1200) + b"\n## anvil-local: FAIL")
    assert len(written) <= SIZE_LIMIT
    assert b"4 more samples with refused verdicts are not shown._" in written[-300:]
    path.write_bytes(b"x" * (SIZE_LIMIT + 5))
    append_summary(example(), path)
    assert path.stat().st_size <= SIZE_LIMIT + 6


def test_a_summary_that_cannot_be_written_is_an_error_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(AnvilError, match="cannot write the summary"):
        append_summary(example(), tmp_path / "missing" / "summary.md")
