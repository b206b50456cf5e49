"""Reports: snapshots of what people see, and that no data can break a format.

`UPDATE_SNAPSHOTS=1 pytest tests/test_reports.py` writes the snapshots anew; read the difference.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from anvil_local import FakeJudge, evaluate, reports
from anvil_local.errors import AnvilError, InputError, UsageError
from anvil_local.gates import check_gates, parse_gate
from anvil_local.records import (
    Decomposition,
    DroppedStatement,
    DropReason,
    Fingerprint,
    GoalVerdicts,
    JudgedStatement,
    Reason,
    Report,
    Sample,
    SampleResult,
    Settings,
    Statement,
    Verdict,
    Workflow,
)
from anvil_local.reports import (
    excerpt,
    load_report,
    parse_report,
    printable,
    render_json,
    render_junit,
    render_markdown,
    render_terminal,
    write_reports,
)
from anvil_local.reports.markdown import code
from anvil_local.reports.text import judge_name, show_score
from anvil_local.scoring import score_goal, score_statements, summarize

SNAPSHOTS = Path(__file__).parent / "snapshots"

# Everything that a file of data can hold, and more of what hurts.
HOSTILE = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from("\x00\x1b\x07\r\n\t\x7f\x85\u2028\u202e\u2066\ufeff\ufffe\ud800`|<>&\"'*_[]\\"),
    ),
    max_size=40,
)


def verdict(value: int | None, margin: float | None = None, **more: Any) -> Verdict:
    if value is None:
        more.setdefault("reason", Reason.ENGINE_ERROR)
    return Verdict.model_validate({"value": value, "margin": margin, **more})


def answer(
    sample_id: str,
    response: str | None,
    *statements: tuple[str, Verdict],
    source: str | None = None,
    metadata: dict[str, Any] | None = None,
    **more: Any,
) -> SampleResult:
    judged = tuple(
        JudgedStatement(
            statement=Statement(text=text, start=0, end=len(response or ""), sentence=number), verdict=item
        )
        for number, (text, item) in enumerate(statements)
    )
    return score_statements(
        SampleResult(
            sample=Sample(
                id=sample_id,
                source=f"answers.jsonl:{sample_id}" if source is None else source,
                response=response,
                metadata=metadata or {},
            ),
            metric="faithfulness",
            score=None,
            statements=judged,
            **more,
        )
    )


def trace(sample_id: str, reached: Verdict, *, desired: str = "A table for two is booked.") -> SampleResult:
    return score_goal(
        SampleResult(
            sample=Sample(id=sample_id, source=f"traces.jsonl:{sample_id}"),
            metric="goal_with_reference",
            score=None,
            goal=GoalVerdicts(
                desired=desired,
                desired_from="reference",
                workflow=Workflow(user_goal="Book a table.", end_state="The restaurant was full."),
                reached=reached,
                claimed=verdict(1, 0.5),
                done=verdict(0, reason=Reason.NO_TOOL_RESULTS),
                formatter="fenced-1",
            ),
        )
    )


def report(*results: SampleResult, gates: tuple[str, ...] = (), **more: Any) -> Report:
    outcomes = check_gates([parse_gate(rule) for rule in gates], results)
    fields: dict[str, Any] = {
        "version": "0.1.0",
        "created": "2026-01-02T03:04:05Z",
        "data": ("answers.jsonl", "traces.jsonl"),
        "judge": Fingerprint(
            digest="0123456789abcdef" * 4,
            parts={"model": {"name": "smollm2-135m", "sha256": "b179"}, "adapter": "support-1"},
        ),
        "settings": Settings(
            metrics=("faithfulness", "goal_with_reference"), decomposition="llm", gates=gates
        ),
        "summaries": summarize(results),
        "gates": outcomes,
        "passed": all(outcome.passed for outcome in outcomes),
        "results": results,
    }
    return Report.model_validate(fields | more)


def example() -> Report:
    cut = Decomposition(
        statements=(),
        dropped=(
            DroppedStatement(text="Who built it?", sentence=0, reason=DropReason.COPIES_QUESTION),
            DroppedStatement(text="It is tall.", sentence=2, reason=DropReason.DUPLICATE),
        ),
        sentences=5,
        without_claim=1,
        fallbacks=1,
    )
    return report(
        answer("1", "It is tall.", ("The tower is tall.", verdict(1, 2.25, windows=3)), decomposition=cut),
        answer(
            "2",
            "It was built in 1789 in Lyon by Gustave Eiffel, and it weighs 10,100 tonnes today.",
            ("The tower was built in 1789.", verdict(0, -3.5)),
            ("The tower was built in Lyon.", verdict(0, -0.125)),
            ("The tower was built by Gustave Eiffel.", verdict(1, 4.0)),
            ("The tower weighs 10,100 tonnes.", verdict(None)),
        ),
        answer("3", "I do not know."),
        answer(
            "4",
            "塔は1889年にリヨンで建てられました。" * 3,
            ("塔は1889年にリヨンで建てられました。" * 3, verdict(0, -1.0)),
            ("The tower is tall.", verdict(1, 1.0)),
        ),
        answer("5", "בניין", ("מגדל אייפל נבנה בליון.", verdict(0, reason=Reason.EMPTY_CONTEXT))).model_copy(
            update={"flags": ("empty_context",)}
        ),
        trace("6", verdict(0, -0.75)),
        trace("7", verdict(1, 3.0)),
        gates=("faithfulness >= 0.8", "goal >= 50%", "faithfulness.unscored <= 0.2"),
        rejected=("answers.jsonl:9: response is empty",),
    )


def nasty(text: str) -> Report:
    """A report with the same text wherever data of users can stand."""
    results = (
        answer(text, text + "x", (text, verdict(0, -1.0)), ("s", verdict(1)), source=text, flags=(text,)),
        answer(text, text, source=text),
        trace(text, verdict(0, -1.0), desired=text).model_copy(
            update={"metric": text or "m", "source": text}
        ),
    )
    return report(
        *results,
        data=(text,),
        judge=Fingerprint(digest=text, parts={"model": text, "adapter": {"name": text}}),
        version=text,
        gates=("faithfulness >= 0.8",),
        rejected=(text,),
    )


def check_snapshot(name: str, text: str) -> None:
    path = SNAPSHOTS / name
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "render"),
    [
        ("report.txt", render_terminal),
        ("report_verbose.txt", lambda record: render_terminal(record, verbose=True)),
        ("report_narrow.txt", lambda record: render_terminal(record, width=40)),
        ("report.json", render_json),
        ("report.md", render_markdown),
        ("report.xml", render_junit),
        ("report_minimum.xml", lambda record: render_junit(record, min_sample_score=0.5)),
    ],
)
def test_the_example_looks_as_it_did(name: str, render: Callable[[Report], str]) -> None:
    check_snapshot(name, render(example()))


@pytest.mark.parametrize("count", [0, 1, 5])
def test_a_report_written_result_by_result_is_the_whole_document(count: int, tmp_path: Path) -> None:
    report = example()
    report = report.model_copy(update={"results": report.results[:count]})
    document = report.model_dump(mode="json", fallback=str)
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n"
    assert reports.render_json(report) == text
    assert list(document)[-1] == "results"
    (path,) = reports.write_reports(report, [tmp_path / "out.json"])
    assert path.read_text(encoding="utf-8") == text


def test_the_public_names_are_sorted_and_there() -> None:
    assert reports.__all__ == sorted(reports.__all__)
    assert all(hasattr(reports, name) for name in reports.__all__)


def test_importing_reports_loads_neither_rich_nor_xml() -> None:
    program = "import sys, anvil_local.reports; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"rich", "xml", "numpy", "llama_cpp", "outlines"} & set(done.stdout.split())


# Terminal


def test_no_line_is_wider_than_asked() -> None:
    for width in (40, 60, 80, 120):
        for verbose in (False, True):
            text = render_terminal(example(), width=width, verbose=verbose)
            assert max(map(cell_len, text.split("\n"))) <= width


def test_a_narrow_terminal_gets_every_number_too() -> None:
    text = " ".join(render_terminal(example(), width=40).split())
    assert "faithfulness score 0.46, pooled" in text
    assert "1 of 5 samples unscored" in text


def test_every_number_of_the_table_is_there_in_80_columns() -> None:
    text = render_terminal(example(), width=80)
    (row,) = [line for line in text.split("\n") if re.match(r"faithfulness +5", line)]
    assert row.split() == ["faithfulness", "5", "0.46", "0.43", "0.00", "3/7", "1"]


def test_the_worst_sample_comes_last_and_the_gates_after_it() -> None:
    text = render_terminal(example())
    order = [text.index(f"sample {number} (") for number in ("4", "2", "6", "5")]
    assert order[:2] == sorted(order[:2])
    assert max(order[:2]) < min(order[2:])
    assert text.index("gates: 1 of 3 failed") > max(order)
    assert text.rindex("\n  faithfulness.unscored 0.20 <= 0.20: PASS") > text.index("\n  goal.mean 0.50")


def test_pass_and_fail_are_words_and_colour_only_repeats_them() -> None:
    plain = render_terminal(example())
    colored = render_terminal(example(), color=True)
    assert "\x1b" not in plain
    assert "\x1b[1;31mFAIL" in colored
    without_color = re.sub(r"\x1b\[[0-9;]*m", "", colored)
    assert [line.rstrip() for line in without_color.split("\n")] == plain.split("\n")


def test_the_environment_does_not_change_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    before = render_terminal(example())
    for name, value in {"COLUMNS": "30", "FORCE_COLOR": "1", "TERM": "dumb", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    assert render_terminal(example()) == before


def test_the_number_of_examples_is_bounded_and_verbose_shows_all() -> None:
    many = report(*(answer(str(n), "r", *[("s", verdict(0, -1.0))] * 8) for n in range(9)))
    text = render_terminal(many, examples=2)
    assert "samples below 1, worst last (2 of 9)" in text
    assert text.count("refused -1.00") == 10
    assert text.count("and 3 more refused") == 2
    assert "worst" not in render_terminal(many, examples=0)
    assert render_terminal(many, verbose=True).count("refused -1.00") == 72


def test_a_report_of_nothing_still_says_what_it_is() -> None:
    text = render_terminal(report(data=()))
    assert "no metric was scored" in text
    assert text.endswith("no gate given\n")


def test_an_interrupted_run_says_so_in_every_format() -> None:
    part = report(complete=False)
    for render in (render_terminal, render_markdown, render_junit):
        assert "interrupted" in render(part)
    assert ElementTree.fromstring(render_junit(part)).get("errors") == "1"


@pytest.mark.parametrize(
    "parts", [{}, {"model": None}, {"model": 3, "adapter": []}, {"model": {"x": 1}}, {"model": [["a"], "b"]}]
)
def test_any_fingerprint_parts_give_a_name(parts: dict[str, Any]) -> None:
    assert judge_name(parts)


@settings(deadline=None)
@given(HOSTILE, st.booleans())
def test_no_data_reaches_the_terminal_raw(text: str, verbose: bool) -> None:
    shown = render_terminal(nasty(text), verbose=verbose)
    assert not re.search(
        r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]", shown
    )
    shown.encode("utf-8")
    assert max(map(cell_len, shown.split("\n"))) <= 80


def test_an_escape_sequence_in_data_is_shown() -> None:
    attack = "\x1b[2J\x1b]0;owned\x07\r\nPASS"
    shown = render_terminal(nasty(attack))
    assert r"\x1b[2J\x1b]0;owned\x07\r PASS" in shown


def test_the_command_to_look_closer_names_the_worst_sample_and_can_be_copied() -> None:
    import shlex

    odd = report(answer("it's 1", "r", ("s", verdict(0, -1.0))))
    lines = render_terminal(odd, path="my out.json").splitlines()
    command = lines[lines.index("to look closer") + 1]
    assert shlex.split(command) == ["anvil-local", "report", "my out.json", "--sample", "it's 1"]
    assert "to look closer" not in render_terminal(odd)
    # What the shell would take otherwise than it looks is not offered.
    assert "to look closer" not in render_terminal(nasty("\x1b[2J"), path="out.json")


# Text


@given(HOSTILE)
def test_printable_text_holds_nothing_that_moves_or_reorders(text: str) -> None:
    shown = printable(text)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]", shown)
    shown.encode("utf-8")


@pytest.mark.parametrize(
    "text", ["naïve", "数値は正しい。", "مرحبا می‌خواهم", "\u200fשלום", "👩‍👩‍👧 ok", "क्षि", "a\u00a0b\u3000c"]
)
def test_text_of_any_language_is_shown_as_it_is(text: str) -> None:
    assert printable(text) == text


@given(HOSTILE, st.integers(2, 50))
def test_an_excerpt_is_one_bounded_line(text: str, limit: int) -> None:
    line = excerpt(text, limit)
    assert len(line) <= 10 * limit
    assert "\n" not in line
    if len(text) > 1 and text.isascii() and text.isprintable() and "  " not in text.strip():
        assert line == text.strip() or (len(line) <= limit and line.endswith("…"))


@pytest.mark.parametrize(
    ("score", "shown"),
    [(None, "none"), (0.0, "0.00"), (0.001, "<0.01"), (0.005, "0.01"), (0.996, ">0.99"), (1.0, "1.00")],
)
def test_only_a_perfect_score_is_shown_as_perfect(score: float | None, shown: str) -> None:
    assert show_score(score) == shown


# JSON

# pydantic cannot write a key with half a character; the readers of files refuse such a key.
KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | HOSTILE,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


@given(HOSTILE, st.dictionaries(KEYS, JSON_VALUES, max_size=3), st.floats(-50, 50))
def test_json_holds_the_whole_report(text: str, metadata: dict[str, Any], margin: float) -> None:
    first = answer(text, text, (text, verdict(1, margin, p_supported=0.1, mass=1e-9)), metadata=metadata)
    whole = report(first, *nasty(text).results, gates=("goal < 0.5",))
    written = render_json(whole)
    assert parse_report(written) == whole
    assert render_json(parse_report(written)) == written
    written.encode("utf-8")


def test_json_ends_with_a_newline_and_keeps_letters_readable() -> None:
    written = render_json(example())
    assert written.endswith("}\n")
    assert "塔は1889年" in written
    assert list(json.loads(written)) == list(Report.model_fields)


def test_a_number_that_json_does_not_have_becomes_null() -> None:
    odd = answer("1", "r", metadata={"loss": float("nan"), "best": [float("inf")]})
    written = render_json(report(odd))
    assert "NaN" not in written
    assert json.loads(written)["results"][0]["sample"]["metadata"] == {"loss": None, "best": [None]}


def test_metadata_that_json_cannot_hold_is_written_as_text() -> None:
    written = render_json(report(answer("1", "r", metadata={"x": range(3), "path": Path("a")})))
    assert json.loads(written)["results"][0]["sample"]["metadata"] == {"x": "range(0, 3)", "path": "a"}


def test_a_field_of_a_later_release_is_left_out() -> None:
    document = json.loads(render_json(example()))
    document["new"] = {"a": 1}
    document["results"][1]["statements"][0]["verdict"]["new"] = 1
    document["summaries"][0]["interval"] = [0, 1]
    assert parse_report(json.dumps(document)) == example()


def test_the_counts_of_json_agree() -> None:
    document = json.loads(render_json(example()))
    for result in document["results"]:
        if result["goal"] is None:
            assert result["scored"] + result["unscored"] == len(result["statements"])
            for judged in result["statements"]:
                place = judged["statement"]
                assert 0 <= place["start"] <= place["end"] <= len(result["sample"]["response"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-20], "not JSON"),
        (lambda text: "", "not JSON"),
        (lambda text: "[]", "not a report of anvil_local"),
        (lambda text: "{}", "not a report of anvil_local"),
        (lambda text: text.replace('"0.1.0"', "NaN"), "NaN is no JSON number"),
        (lambda text: text.replace('"schema_version": "1"', '"schema_version": "2"'), "schema version 1"),
        (lambda text: text.replace('"supported": 1', '"supported": "many"'), "supported"),
        (lambda text: text.replace('"value": 1', '"value": 2'), "verdict.value"),
        (lambda text: text.replace('"created"', '"made"'), "created: Field required"),
        (lambda text: "[" * 100_000, "not JSON"),
    ],
)
def test_a_damaged_report_is_refused_with_its_place(
    tmp_path: Path, change: Callable[[str], str], message: str
) -> None:
    path = tmp_path / "old.json"
    path.write_text(change(render_json(example())), encoding="utf-8")
    with pytest.raises(InputError, match=message) as caught:
        load_report(path)
    assert str(caught.value.where).startswith(str(path))


def test_a_report_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        load_report(tmp_path / "missing.json")
    (tmp_path / "latin.json").write_bytes(b'{"a": "\xe9"}')
    with pytest.raises(InputError, match="not UTF-8"):
        load_report(str(tmp_path / "latin.json"))


# Markdown


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.code: list[str] = []
        self._inside = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not attrs
        self.tags.add(tag)
        self._inside = tag == "code"
        if self._inside:
            self.code.append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.code[-1] += data


@given(HOSTILE)
def test_code_shows_the_text_and_nothing_else_takes_effect(text: str) -> None:
    line = excerpt(text)
    written = code(line)
    assert not re.search(r"[|`*_<>\[\]\\@#\n]", re.sub(r"&#[0-9]+;", "", written[6:-7]))
    assert _Tags(written).code == [line] or not line
    assert _Tags(written).tags == {"code"}


@settings(deadline=None)
@given(HOSTILE)
def test_markdown_of_any_data_has_only_its_own_structure(text: str) -> None:
    from markdown_it import MarkdownIt

    rendered = MarkdownIt("commonmark").enable("table").render(render_markdown(nasty(text)))
    tags = _Tags(re.sub(r' style="text-align:(left|right)"', "", rendered)).tags
    assert tags <= {
        "h2",
        "h3",
        "p",
        "ul",
        "li",
        "code",
        "em",
        "strong",
        *["table", "thead", "tbody", "tr", "th", "td"],
    }
    assert rendered.count("<h2>") == 1
    assert rendered.count("<h3>") == 2
    # The heading row and one row a metric, seven cells each.
    assert rendered.count("<td") == 7 * len(nasty(text).summaries)


def test_markdown_stays_below_the_limit_and_says_what_was_left_out() -> None:
    many = report(*(answer(str(n), "塔" * 200, *[("塔は" * 90, verdict(0, -1.0))] * 12) for n in range(400)))
    whole = render_markdown(many, examples=400)
    assert len(whole.encode("utf-8")) <= 1024 * 1024
    small = render_markdown(many, examples=400, size_limit=20_000)
    assert 10_000 < len(small.encode("utf-8")) <= 20_000
    (count,) = re.findall(r"_(\d+) more samples with refused verdicts are not shown\._\n$", small)
    assert int(count) + small.count("- <code>sample ") == 400
    tiny = render_markdown(many, size_limit=500)
    assert len(tiny.encode("utf-8")) <= 500
    assert "Parts of this summary do not fit" in tiny


def test_markdown_shows_the_worst_sample_first() -> None:
    text = render_markdown(example(), examples=1)
    assert "sample 5" in text
    assert "3 more samples with refused verdicts are not shown" in text


# JUnit


@settings(deadline=None)
@given(HOSTILE, st.sampled_from([None, 0.5]))
def test_junit_of_any_data_is_well_formed(text: str, minimum: float | None) -> None:
    root = ElementTree.fromstring(render_junit(nasty(text), min_sample_score=minimum).encode("utf-8"))
    assert int(root.get("tests", "")) == len(root.findall(".//testcase")) == 5
    assert sum(int(suite.get("tests", "")) for suite in root) == 5


@pytest.fixture(scope="module")
def junit_schema() -> Any:
    from lxml import etree

    return etree.XMLSchema(etree.parse(Path(__file__).with_name("junit.xsd")))


@settings(deadline=None)
@given(text=HOSTILE, minimum=st.sampled_from([None, 0.5]))
def test_junit_is_what_jenkins_and_gitlab_read_whatever_the_data(
    junit_schema: Any, text: str, minimum: float | None
) -> None:
    from lxml import etree

    for record in (nasty(text), report(complete=False), example()):
        written = render_junit(record, min_sample_score=minimum).encode("utf-8")
        junit_schema.assertValid(etree.fromstring(written))


def test_a_failed_gate_names_the_refused_statements() -> None:
    root = ElementTree.fromstring(render_junit(example()))
    (failure,) = root.findall(".//failure")
    text = str(failure.text)
    assert "sample 2 (answers.jsonl:2), faithfulness 0.33" in text
    assert "refused (-3.50): The tower was built in 1789." in text
    assert "supported (" not in text
    assert "goal_with_reference" not in text


def test_junit_totals_count_gates_and_samples() -> None:
    root = ElementTree.fromstring(render_junit(example()))
    assert root.attrib == {
        "name": "anvil_local",
        "tests": "11",
        "failures": "1",
        "errors": "0",
        "skipped": "2",
    }
    (failure,) = root.findall(".//failure")
    assert failure.get("message", "").startswith("faithfulness.mean 0.46 >= 0.80: FAIL")


def test_samples_fail_only_below_a_minimum_that_was_given() -> None:
    root = ElementTree.fromstring(render_junit(example(), min_sample_score=0.5))
    failed = [case.get("name") for case in root.findall(".//testcase") if case.find("failure") is not None]
    assert failed[:3] == ["2 (answers.jsonl:2)", "5 (answers.jsonl:5)", "6 (traces.jsonl:6)"]
    failure = root.find(".//failure")
    assert failure is not None
    assert "refused (-3.50): The tower was built in 1789." in str(failure.text)


def test_a_score_exactly_at_the_minimum_does_not_fail() -> None:
    third = report(
        answer("1", "r", ("a", verdict(1)), ("b", verdict(1)), ("c", verdict(0)), ("d", verdict(1)))
    )
    assert "<failure" not in render_junit(third, min_sample_score=0.75)
    assert "<failure" in render_junit(third, min_sample_score=0.751)


@pytest.mark.parametrize("minimum", [-0.1, 1.5, float("nan")])
def test_a_minimum_outside_zero_to_one_is_refused(minimum: float) -> None:
    with pytest.raises(UsageError, match="between 0 and 1"):
        render_junit(example(), min_sample_score=minimum)


# Files


def test_the_suffix_chooses_the_format(tmp_path: Path) -> None:
    paths = [tmp_path / "a.json", tmp_path / "b.XML", tmp_path / "c.md"]
    assert write_reports(example(), map(str, paths)) == tuple(paths)
    texts = [path.read_text(encoding="utf-8") for path in paths]
    assert texts == [render_json(example()), render_junit(example()), render_markdown(example())]
    assert load_report(paths[0]) == example()
    assert sorted(tmp_path.iterdir()) == sorted(paths)


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("a.txt", "unknown kind of report", ".html, .json, .md, .sarif, .xml"),
        ("json", "unknown kind of report", ".html, .json, .md, .sarif, .xml"),
        ("no/a.json", "folder of this report does not exist", "mkdir -p"),
        ("folder.json", "this is a folder", ""),
        ("./good.json", "given twice", ""),
    ],
)
def test_nothing_is_written_when_one_path_is_bad(tmp_path: Path, name: str, message: str, hint: str) -> None:
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(UsageError, match=message) as caught:
        write_reports(example(), [tmp_path / "good.json", f"{tmp_path}/{name}"])
    assert hint in (caught.value.hint or "")
    assert not (tmp_path / "good.json").exists()


def test_a_report_replaces_the_file_behind_a_link(tmp_path: Path) -> None:
    target = tmp_path / "target.json"
    target.write_text("old")
    link = tmp_path / "link.json"
    link.symlink_to(target)
    write_reports(example(), [link])
    assert link.is_symlink()
    assert load_report(target) == example()


def test_a_failed_write_leaves_the_old_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.json"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(AnvilError, match="No space left on device"):
        write_reports(example(), [path])
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_report_is_readable_as_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_reports(example(), [tmp_path / "out.json"])
    finally:
        os.umask(before)
    assert (tmp_path / "out.json").stat().st_mode & 0o777 == 0o644


def test_one_sample_is_shown_whole_with_its_trace_and_reference() -> None:
    trace = {
        "id": "t",
        "user_input": [
            {"role": "user", "content": "Book it.\x1b[2J"},
            {"role": "assistant", "content": "Booked."},
        ],
        "reference": "It is booked.",
    }
    report = evaluate([trace], judge=FakeJudge([1]))
    shown = render_terminal(report, whole=True)
    assert "trace\n  [1] user: Book it.\\x1b[2J\n  [2] assistant: Booked." in shown
    assert "reference\n  It is booked." in shown
    assert "samples below 1" not in shown
