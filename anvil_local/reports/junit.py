"""The report as JUnit XML, for the test views of Jenkins, GitLab and GitHub.

A suite a metric with a case a sample, a suite for the gates, and a suite for the run itself when
rows were refused or the run was interrupted. A gate that fails is a failure; an unscored sample is
skipped; a sample fails only below a minimum that the caller gives, since the gates decide otherwise.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING

from anvil_local.errors import UsageError
from anvil_local.gates import TARGETS
from anvil_local.records import Report, SampleResult
from anvil_local.reports.findings import find, headline
from anvil_local.reports.text import excerpt, printable, show_score
from anvil_local.scoring import exact_score, rank_worst

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_SAMPLES_SHOWN = 10


def render_junit(report: Report, *, min_sample_score: float | None = None) -> str:
    """The report as a JUnit document. Samples scored below `min_sample_score` are failures.

    Characters that XML cannot hold, and those that could mislead a reader, are written as escapes.
    """
    from xml.etree import ElementTree

    if min_sample_score is not None and not 0 <= min_sample_score <= 1:
        raise UsageError("the minimum of a sample's score must be between 0 and 1", value=min_sample_score)
    minimum = None if min_sample_score is None else Fraction(repr(min_sample_score))
    root = ElementTree.Element("testsuites", name="anvil_local")
    groups: dict[str, list[SampleResult]] = {}
    for result in report.results:
        groups.setdefault(result.metric, []).append(result)
    for metric, results in groups.items():
        suite = _add_suite(root, metric)
        for result in results:
            _add_sample(suite, result, minimum)
    if report.gates:
        suite = _add_suite(root, "gates")
        for gate in report.gates:
            case = _add_case(suite, gate.rule)
            if gate.passed:
                _add_text(case, "system-out", gate.message)
            else:
                text = "\n\n".join([gate.message, *_refused(report, gate.rule)])
                _add_outcome(case, "failure", "GateFailed", gate.message, text)
    _add_run(root, report)
    _add_totals(root)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _add_sample(suite: Element, result: SampleResult, minimum: Fraction | None) -> None:
    name = f"{result.sample_id} ({result.source})" if result.source else result.sample_id
    case = _add_case(suite, name)
    score = exact_score(result)
    if score is None:
        _add_outcome(case, "skipped", None, f"unscored: {result.reason or 'no reason given'}", None)
    elif minimum is not None and score < minimum:
        message = f"{result.metric} {show_score(result.score)} is below {float(minimum)}"
        _add_outcome(case, "failure", "ScoreTooLow", message, _describe(result, everything=False))
    _add_text(case, "system-out", _describe(result, everything=True))


def _refused(report: Report, rule: str) -> list[str]:
    """The worst samples that a failed gate looks at, each with its refused statements."""
    name = re.match(r"\s*(\w*)", rule)
    metrics = TARGETS.get(name[1] if name else "", ())
    worst = rank_worst(result for result in report.results if result.metric in metrics)
    texts = [_describe(result, everything=False) for result in worst[:_SAMPLES_SHOWN]]
    if len(worst) > _SAMPLES_SHOWN:
        texts.append(f"and {len(worst) - _SAMPLES_SHOWN} more samples below 1")
    return texts


def _describe(result: SampleResult, *, everything: bool) -> str:
    lines = [headline(result)]
    for finding in find(result, everything=everything, limit=None):
        lines.append(f"{finding.word} ({finding.margin}): {finding.text}")
        lines.extend(f"    {detail}" for detail in finding.details)
    return "\n".join(lines)


def _add_run(root: Element, report: Report) -> None:
    """What a reader must not overlook though no sample and no gate shows it."""
    if report.complete and not report.rejected:
        return
    suite = _add_suite(root, "run")
    if not report.complete:
        message = "the run was interrupted: the results are a part of what was asked"
        _add_outcome(_add_case(suite, "complete"), "error", "Incomplete", message, message)
    for rejected in report.rejected:
        case = _add_case(suite, excerpt(rejected, 200))
        _add_outcome(case, "skipped", None, f"row refused: {rejected}", None)


def _add_suite(root: Element, name: str) -> Element:
    from xml.etree.ElementTree import SubElement

    return SubElement(root, "testsuite", name=_legal(name))


def _add_case(suite: Element, name: str) -> Element:
    from xml.etree.ElementTree import SubElement

    classname = f"anvil_local.{suite.get('name')}"
    # Readers refuse a case without a name.
    return SubElement(suite, "testcase", classname=classname, name=_legal(name) or "unnamed")


def _add_outcome(case: Element, tag: str, kind: str | None, message: str, text: str | None) -> None:
    from xml.etree.ElementTree import SubElement

    element = SubElement(case, tag, message=_legal(message))
    if kind:
        element.set("type", kind)
    if text is not None:
        element.text = _legal(text)


def _add_text(case: Element, tag: str, text: str) -> None:
    from xml.etree.ElementTree import SubElement

    SubElement(case, tag).text = _legal(text)


def _add_totals(root: Element) -> None:
    tags = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    for element in (root, *root):
        element.set("tests", str(len(element.findall(".//testcase"))))
        for name, tag in tags.items():
            element.set(name, str(len(element.findall(f".//{tag}"))))


def _legal(text: str) -> str:
    return printable(text, keep="\n\t")
