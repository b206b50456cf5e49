"""SARIF: valid against the schema whatever the data, places that are true, alerts that stay themselves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings

from anvil_local.reports import write_reports
from anvil_local.reports.sarif import SHOWN, render_sarif
from tests.test_reports import HOSTILE, answer, example, nasty, report, trace, verdict

SCHEMA = json.loads(Path(__file__).with_name("sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft4Validator(SCHEMA, format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER)


def run_of(record: Any) -> dict[str, Any]:
    document = json.loads(render_sarif(record))
    VALIDATOR.validate(document)
    (run,) = document["runs"]
    assert {result["ruleId"] for result in run["results"]} <= {
        rule["id"] for rule in run["tool"]["driver"]["rules"]
    }
    return run


def texts(run: dict[str, Any]) -> list[str]:
    return [result["message"]["text"].splitlines()[0] for result in run["results"]]


def test_a_failed_gate_then_the_refused_statements_of_the_worst_sample() -> None:
    run = run_of(example())
    found = texts(run)
    assert found[0].startswith("faithfulness.mean 0.46 >= 0.80: FAIL")
    assert found[1:3] == [
        "refused (empty_context): מגדל אייפל נבנה בליון.",
        "not reached (-0.75): reference: A table for two is booked.",
    ]
    assert found[3:5] == [
        "refused (-3.50): The tower was built in 1789.",
        "refused (-0.12): The tower was built in Lyon.",
    ]
    assert [result["level"] for result in run["results"]] == ["error"] + ["warning"] * 5
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == {
        "faithfulness",
        "goal_with_reference",
        "gate",
    }


def test_the_judge_stands_beside_the_tool() -> None:
    driver = run_of(example())["tool"]["driver"]
    assert driver["properties"]["judge"] == {
        "name": "smollm2-135m, adapter support-1",
        "fingerprint": "0123456789abcdef" * 4,
    }


def test_the_place_of_a_statement_is_its_line_and_that_of_a_gate_the_files() -> None:
    results = run_of(example())["results"]
    gate, statement = results[0], results[3]
    assert [place["physicalLocation"] for place in gate["locations"]] == [
        {"artifactLocation": {"uri": name, "uriBaseId": "%SRCROOT%"}}
        for name in ("answers.jsonl", "traces.jsonl")
    ]
    assert [place["physicalLocation"] for place in statement["locations"]] == [
        {
            "artifactLocation": {"uri": "answers.jsonl", "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": 2},
        }
    ]


@pytest.mark.parametrize(
    ("source", "location"),
    [
        ("my data/100%#1.jsonl:3", {"uri": "my%20data/100%25%231.jsonl", "uriBaseId": "%SRCROOT%"}),
        ("a:b.jsonl:3", {"uri": "a%3Ab.jsonl", "uriBaseId": "%SRCROOT%"}),
        ("/srv/データ.jsonl:3", {"uri": "file:///srv/%E3%83%87%E3%83%BC%E3%82%BF.jsonl"}),
        ("answers.jsonl[3]", {"uri": "answers.jsonl", "uriBaseId": "%SRCROOT%"}),
    ],
)
def test_a_path_is_written_as_an_address(source: str, location: dict[str, str]) -> None:
    (result,) = run_of(report(answer("1", "r", ("s", verdict(0, -1.0)), source=source)))["results"]
    physical = result["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"] == location
    # A row number is no line.
    assert physical.get("region") == ({"startLine": 3} if source.endswith(":3") else None)


@pytest.mark.parametrize("source", ["", "row 7", "<stdin>:3", "-:3", "other.json[3]"])
def test_what_was_read_from_no_file_has_no_place(source: str) -> None:
    record = report(
        answer("1", "r", ("s", verdict(0, -1.0)), source=source),
        gates=("faithfulness >= 0.8",),
        data=("<stdin>",),
    )
    for result in run_of(record)["results"]:
        assert "locations" not in result


def test_braces_and_links_of_the_data_are_text() -> None:
    text = "{0} of {n} [click](https://example.org) a[1] b[2] (c)"
    (result,) = run_of(report(answer("1", "r", (text, verdict(0, -1.0)))))["results"]
    assert result["message"]["text"].splitlines()[0] == (
        "refused (-1.00): {{0}} of {{n}} \\[click](https://example.org) a[1] b[2] (c)"
    )


@settings(deadline=None, max_examples=50)
@given(HOSTILE)
def test_sarif_of_any_data_is_valid(text: str) -> None:
    written = render_sarif(nasty(text))
    written.encode("utf-8")
    run = run_of(nasty(text))
    assert len(run["results"]) == 3


def test_the_schema_would_refuse_a_damaged_document() -> None:
    document = json.loads(render_sarif(example()))
    document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"] = {"startLine": 0}
    assert not VALIDATOR.is_valid(document)


def test_an_alert_keeps_its_fingerprint_when_rows_and_margins_move_and_each_has_its_own() -> None:
    def prints(*results: Any) -> list[str]:
        found = [result["partialFingerprints"] for result in run_of(report(*results))["results"]]
        assert all(each["primaryLocationLineHash"] == each["anvilStatement/v1"] for each in found)
        return [each["primaryLocationLineHash"] for each in found]

    first = answer("x", "r", ("s", verdict(0, -1.0)), ("t", verdict(0, -1.0)))
    other = answer("y", "r", ("s", verdict(0, -1.0)))
    moved = answer("x", "r", ("t", verdict(0, -2.5)), ("s", verdict(0, -0.5)), source="answers.jsonl:99")
    before = prints(first, other)
    assert len(set(before)) == 3
    assert set(prints(moved)) < set(before)


def test_beyond_what_github_reads_a_notification_counts() -> None:
    many = report(
        *(answer(str(n), "r", *[(f"s{k}", verdict(0, -1.0)) for k in range(10)]) for n in range(510)),
        gates=("faithfulness >= 0.8",),
    )
    run = run_of(many)
    assert len(run["results"]) == SHOWN == 5000
    assert run["results"][0]["ruleId"] == "gate"
    (note,) = run["invocations"][0]["toolExecutionNotifications"]
    assert note["message"]["text"] == "101 more results, of better samples, not in this file"


def test_what_is_no_result_is_a_notification() -> None:
    record = report(answer("1", "r"), complete=False, rejected=("answers.jsonl:9: response is empty",))
    run = run_of(record)
    assert run["results"] == []
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    assert [note["message"]["text"] for note in invocation["toolExecutionNotifications"]] == [
        "the run was interrupted: the results are a part of what was asked",
        "1 sample unscored",
        "row refused: answers.jsonl:9: response is empty",
    ]


def test_the_suffix_writes_it(tmp_path: Path) -> None:
    write_reports(report(trace("1", verdict(0, -1.0))), [tmp_path / "out.sarif"])
    VALIDATOR.validate(json.loads((tmp_path / "out.sarif").read_text(encoding="utf-8")))
