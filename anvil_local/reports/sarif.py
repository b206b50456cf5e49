"""The report as SARIF 2.1.0, for code-scanning views.

A result a refused statement, a goal that was not reached, and a failed gate. Its place is the line of
the data file, or the file where no line is known; what was not read from a file has no place. Refused
rows, unscored samples, an interrupted run and results left out are notifications of the run.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

from anvil_local.metrics import METRICS
from anvil_local.records import Report, SampleResult
from anvil_local.reports.findings import find, headline
from anvil_local.reports.github import place
from anvil_local.reports.text import excerpt, judge_name, plural, printable
from anvil_local.scoring import rank_worst

SHOWN = 5000
"""GitHub reads the first 5,000 results of a run and drops the rest."""

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

_GATE = "gate"

_Place = tuple[str, int | None]
"""A file, and the line in it if one is known."""

_LINK = re.compile(r"\[(?=[^\[\]]*\]\()")


def render_sarif(report: Report) -> str:
    """The report as a SARIF document: failed gates first, then refused statements, the worst sample first.

    At most 5,000 results; a notification of the run counts those left out.
    """
    results = [_gate(report, gate.rule, gate.message) for gate in report.gates if not gate.passed]
    for result in rank_worst(report.results):
        results += _refused(result, report.data)
    run = {
        "tool": {"driver": _driver(report)},
        "invocations": [
            {
                "executionSuccessful": report.complete,
                "toolExecutionNotifications": list(_notifications(report, len(results) - SHOWN)),
            }
        ],
        "results": results[:SHOWN],
    }
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def _driver(report: Report) -> dict[str, Any]:
    metrics = dict.fromkeys(result.metric for result in report.results)
    rules = [_rule(name) for name in metrics]
    if report.gates:
        rules.append(
            {
                "id": _GATE,
                "name": "Gate",
                "shortDescription": {"text": "A rule over the scores failed"},
                "defaultConfiguration": {"level": "error"},
            }
        )
    judge = {"name": judge_name(report.judge.parts), "fingerprint": printable(report.judge.digest)}
    return {
        "name": "anvil-local",
        "version": printable(report.version),
        "rules": rules,
        "properties": {"judge": judge},
    }


def _rule(metric: str) -> dict[str, Any]:
    known = METRICS.get(metric)
    goal = known is not None and known.kind == "goal"
    title = known.title if known else excerpt(metric, 60)
    said = "the trace does not reach the desired outcome" if goal else "the context does not bear it out"
    return {
        "id": printable(metric),
        "name": re.sub(r"\W", "", title.title()) or "Metric",
        "shortDescription": {"text": _message(f"{title}: {said}")},
        "defaultConfiguration": {"level": "warning"},
    }


def _refused(result: SampleResult, data: Sequence[str]) -> Iterator[dict[str, Any]]:
    for finding in find(result, limit=None):
        lines = [f"{finding.word} ({finding.margin}): {finding.text}", *finding.details, headline(result)]
        yield {
            "ruleId": printable(result.metric),
            "level": "warning",
            "message": {"text": _message("\n".join(lines))},
            **_places(_place(result.source, data)),
            "partialFingerprints": _fingerprints(result.metric, result.sample_id, finding.text),
            "properties": {"sample": printable(result.sample_id)},
        }


def _gate(report: Report, rule: str, message: str) -> dict[str, Any]:
    return {
        "ruleId": _GATE,
        "level": "error",
        "message": {"text": _message(excerpt(message, None))},
        # A gate looks at whole files.
        **_places(*((path, None) for path in report.data)),
        "partialFingerprints": _fingerprints(_GATE, rule),
    }


def _notifications(report: Report, left_out: int) -> Iterator[dict[str, Any]]:
    if not report.complete:
        yield _notification("error", "the run was interrupted: the results are a part of what was asked")
    if left_out > 0:
        missing = plural(left_out, "more result")
        yield _notification("warning", f"{missing}, of better samples, not in this file")
    unscored = sum(result.score is None for result in report.results)
    if unscored:
        yield _notification("warning", f"{plural(unscored, 'sample')} unscored")
    for rejected in report.rejected:
        yield _notification("warning", f"row refused: {excerpt(rejected, None)}")


def _notification(level: str, text: str) -> dict[str, Any]:
    return {"level": level, "message": {"text": _message(text)}}


def _place(source: str, data: Sequence[str]) -> _Place | None:
    """File and line of `FILE:LINE`; the file alone of `FILE[ROW]`, as rows of formats without lines have."""
    file = next((path for path in data if source.startswith(f"{path}[")), None)
    return place(source) if file is None else (file, None)


def _places(*places: _Place | None) -> dict[str, Any]:
    """The property `locations`, unless nothing was read from a file."""
    locations = []
    for path, line in filter(None, places):
        if path in {"", "-", "<stdin>"} or "\n" in path:
            continue
        physical: dict[str, Any] = {"artifactLocation": _artifact(path)}
        if line is not None:
            physical["region"] = {"startLine": line}
        locations.append({"physicalLocation": physical})
    return {"locations": locations} if locations else {}


def _artifact(path: str) -> dict[str, str]:
    # Half a character cannot be encoded otherwise; a colon would end a scheme.
    uri = quote(path.encode("utf-8", "surrogatepass"), safe="/")
    if path.startswith("/"):
        return {"uri": f"file://{uri}"}
    return {"uri": uri, "uriBaseId": "%SRCROOT%"}


def _fingerprints(*parts: str) -> dict[str, str]:
    """What tells whether an alert of another run is the same one.

    GitHub compares `primaryLocationLineHash` alone. Left out, its upload action fills in a hash of the
    line, which is the same for all statements of a row: they would become one alert.
    """
    joined = "\0".join(parts).encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(joined).hexdigest()[:32]
    return {"anvilStatement/v1": digest, "primaryLocationLineHash": digest}


def _message(text: str) -> str:
    # SARIF 2.1.0, sections 3.11.5 and 3.11.6: braces hold placeholders, `[text](place)` is a link.
    text = printable(text, keep="\n").replace("{", "{{").replace("}", "}}")
    return _LINK.sub(r"\\[", text)
