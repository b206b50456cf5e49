"""The report as one HTML file: no request leaves it, and nothing in the data can act in it.

The page's frame is a Jinja2 template with autoescape; the samples travel as JSON inside the page, and
a small script shows them a hundred at a time, with `textContent` only. Style and script are allowed
by their checksums (Content-Security-Policy), so nothing else can run. Where scripts may not run at
all, the numbers, the gates and the worst samples still stand there.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from anvil_local.records import JudgedStatement, Message, MetricSummary, Report, SampleResult, Verdict
from anvil_local.reports.findings import Finding, find, headline, note_rows
from anvil_local.reports.text import (
    excerpt,
    judge_name,
    plural,
    printable,
    show_counts,
    show_interval,
    show_margin,
    show_score,
)
from anvil_local.scoring import rank_worst, tally

_WORST_SHOWN = 20
"""Samples that stand in the page without its script."""

_CONTEXT = "\n\t"

# In JSON inside a script element nothing may look like a tag; the line ends are for old readers.
_IN_SCRIPT = str.maketrans(
    {char: f"\\u{ord(char):04x}" for char in ("<", ">", "&", "\u2028", "\u2029")},
)

_STATES = {0: "no", 1: "yes", None: "open"}


def render_html(report: Report) -> str:
    """The report as a page that needs nothing but itself. Equal reports give equal bytes."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, auto_reload=False
    )
    style, script = _asset("report.css"), _asset("report.js")
    page = environment.from_string(_asset("report.html.j2")).render(
        policy=(
            f"default-src 'none'; style-src '{_checksum(style)}'; script-src '{_checksum(script)}'; "
            "img-src data:; base-uri 'none'; form-action 'none'"
        ),
        style=style,
        script=script,
        payload=_payload(report),
        outcome=_outcome(report),
        title=_title(report),
        facts=_facts(report),
        metrics=[_metric(summary, report) for summary in report.summaries],
        complete=report.complete,
        gates=[
            {
                "passed": gate.passed,
                "rule": excerpt(gate.rule, 200),
                "message": excerpt(gate.message, None),
            }
            for gate in report.gates
        ],
        notes=note_rows(tally(report.results), report),
        chips=_chips(report.results),
        worst=[
            {"headline": headline(result), "findings": find(result, limit=400)}
            for result in rank_worst(report.results)[:_WORST_SHOWN]
        ],
        settings=_settings(report),
        fingerprint=printable(_json(report.judge.parts, indent=2), keep="\n"),
    )
    return page + "\n"


@cache
def _asset(name: str) -> str:
    return resources.files("anvil_local.reports").joinpath("page", name).read_text(encoding="utf-8")


def _checksum(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"


# The head


def _outcome(report: Report) -> dict[str, str]:
    if not report.complete:
        return {"word": "INCOMPLETE", "state": "no", "sign": "✕"}
    if not report.gates:
        return {"word": "no gate", "state": "open", "sign": "–"}
    if report.passed:
        return {"word": "PASS", "state": "yes", "sign": "✓"}
    return {"word": "FAIL", "state": "no", "sign": "✕"}


def _title(report: Report) -> str:
    names = [excerpt(re.split(r"[/\\]", path)[-1], 80) for path in report.data[:5]]
    line = ", ".join(name for name in names if name) or "report"
    return line if len(report.data) <= 5 else f"{line} and {len(report.data) - 5} more"


def _facts(report: Report) -> list[str]:
    failed = sum(not gate.passed for gate in report.gates)
    facts = [
        plural(len(report.results), "result"),
        *(excerpt(path, 120) for path in report.data[:5] if re.search(r"[/\\]", path)),
        f"judge {judge_name(report.judge.parts)}",
        f"fingerprint {excerpt(report.judge.short, 12)}",
        f"begun {excerpt(report.created, 40)}",
        f"anvil-local {excerpt(report.version, 20)}",
    ]
    return [f"{failed} of {plural(len(report.gates), 'gate')} failed", *facts] if failed else facts


def _settings(report: Report) -> list[tuple[str, str]]:
    rows = report.settings.model_dump(mode="json")
    return [
        (name.replace("_", " "), excerpt(value if isinstance(value, str) else _json(value), 400))
        for name, value in rows.items()
        if value is not None
    ]


# Numbers and charts


def _metric(summary: MetricSummary, report: Report) -> dict[str, Any]:
    results = [result for result in report.results if result.metric == summary.metric]
    goal = any(result.goal for result in results)
    unscored = str(summary.unscored_samples)
    if summary.reasons:
        unscored += f" ({show_counts(summary.reasons)})"
    numbers = [
        ("samples", str(summary.samples)),
        ("goals reached" if goal else "supported", f"{summary.supported} of {summary.scored}"),
        *(
            ()
            if summary.mean_interval is None
            else (("95 % interval", show_interval(summary.mean_interval)),)
        ),
        *(() if goal else (("pooled", _with_interval(summary)), ("lowest", show_score(summary.lowest)))),
        *((("without padding", show_score(summary.adjusted)),) if summary.padded else ()),
        ("unscored", unscored),
    ]
    return {
        "name": printable(summary.metric),
        "title": excerpt(summary.metric, 60).replace("_", " "),
        "mean": show_score(summary.mean),
        "numbers": numbers,
        **_chart(results, goal=goal),
    }


def _with_interval(summary: MetricSummary) -> str:
    return f"{show_score(summary.pooled)} {show_interval(summary.pooled_interval)}".rstrip()


def _chart(results: Sequence[SampleResult], *, goal: bool) -> dict[str, Any]:
    """Bars of how many samples have which score, as places in an SVG of 96 units height."""
    scores = [result.score for result in results if result.score is not None]
    if goal:
        columns = [
            ("no", "not reached", sum(score < 1 for score in scores), "not reached"),
            ("yes", "reached", sum(score == 1 for score in scores), "reached"),
        ]
    else:
        counts = [0] * 11
        for score in scores:
            counts[10 if score == 1 else min(9, int(score * 10))] += 1
        columns = [
            ("mid", f"{k / 10:.1f}", count, f"{k / 10:.1f} to below {(k + 1) / 10:.1f}")
            for k, count in enumerate(counts[:10])
        ]
        columns.append(("yes", "1", counts[10], "exactly 1"))
    missing = len(results) - len(scores)
    if missing:
        columns.append(("open", "none", missing, "unscored"))
    highest = max((count for _, _, count, _ in columns), default=0)
    if not highest:
        return {"bars": []}
    step, width = (90, 54) if goal else (30, 25)
    bars = []
    for number, (state, label, count, title) in enumerate(columns):
        # A column that is not empty can be seen.
        height = max(2, round(count / highest * 58)) if count else 0
        bars.append(
            {
                "state": state,
                "x": number * step + (step - width) // 2,
                "y": 76 - height,
                "width": width,
                "height": height,
                "middle": number * step + step // 2,
                "count": count,
                "label": label,
                "title": f"{title}: {plural(count, 'sample')}",
            }
        )
    return {
        "bars": bars,
        "width": 360,
        "caption": "samples by outcome" if goal else "samples by score",
        "chart": "Samples: " + ", ".join(f"{count} {title}" for _, _, count, title in columns if count),
    }


def _chips(results: Sequence[SampleResult]) -> list[dict[str, Any]]:
    states = [_state(result) for result in results]
    chips = [("", "All", len(states))]
    chips += [
        (state, label, states.count(state))
        for state, label in (("no", "✕ Below 1"), ("open", "? Unscored"), ("yes", "✓ Full score"))
    ]
    return [{"value": value, "label": label, "count": count} for value, label, count in chips]


def _state(result: SampleResult) -> str:
    if result.score is None:
        return "open"
    return "yes" if result.score == 1 else "no"


# The samples


def _payload(report: Report) -> str:
    texts: dict[str, int] = {}
    risk = _risk(report.results)
    anchors = _anchors(report.results)
    samples = [
        {"anchor": anchor, "risk": risk[number], **_sample(result, texts)}
        for number, (result, anchor) in enumerate(zip(report.results, anchors, strict=True))
    ]
    return _json({"samples": samples, "texts": list(texts)}).translate(_IN_SCRIPT)


def _risk(results: Sequence[SampleResult]) -> list[int]:
    """The place of each result when the worst come first: below 1, then unscored, then the rest."""
    places = {id(result): place for place, result in enumerate(rank_worst(results))}
    rank = {"no": 0, "open": 1, "yes": 2}
    order = sorted(
        range(len(results)), key=lambda k: (rank[_state(results[k])], places.get(id(results[k]), 0), k)
    )
    return [place for _, place in sorted(zip(order, range(len(order)), strict=True))]


def _anchors(results: Sequence[SampleResult]) -> list[str]:
    """`METRIC.SAMPLE`: the same in every report of the same samples, and unique in this one."""
    taken: set[str] = set()
    anchors = []
    for result in results:
        name = f"{_slug(result.metric)}.{_slug(result.sample_id)}"
        anchor, count = name, 1
        while anchor in taken:
            count += 1
            anchor = f"{name}-{count}"
        taken.add(anchor)
        anchors.append(anchor)
    return anchors


def _slug(text: str) -> str:
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", text)[:80]
    if slug == text and slug:
        return slug
    # What was taken away must not make two names one.
    return f"{slug}-{hashlib.sha256(text.encode('utf-8', 'backslashreplace')).hexdigest()[:6]}"


def _sample(result: SampleResult, texts: dict[str, int]) -> dict[str, Any]:
    sample = result.sample
    findings = find(result, everything=True, limit=None)
    statements = [
        _statement(judged, finding)
        for judged, finding in zip(result.statements, findings[: len(result.statements)], strict=True)
    ]
    goal = _goal(result, findings[-1]) if result.goal else None
    bad = next((item["text"] for item in statements if item["state"] == "no"), None)
    margins = [item["number"] for item in (goal["verdicts"] if goal else statements)]
    tally_line = f"{result.supported} of {result.scored}" if result.statements else ""
    if result.unscored and result.statements:
        tally_line += f", {result.unscored} ?"
    if result.goal:
        signs = {0: "✕", 1: "✓", None: "?"}
        tally_line = f"claimed {signs[result.goal.claimed.value]}, done {signs[result.goal.done.value]}"
    return {
        "id": printable(sample.id),
        "metric": printable(result.metric),
        "state": _state(result),
        "score": show_score(result.score) if result.score is not None else "unscored",
        "tally": tally_line,
        "peek": excerpt(bad or (result.goal.desired if result.goal else sample.response) or "", 200),
        # How near the judge was to the other verdict; without a margin last.
        "call": min((abs(margin) for margin in margins if margin is not None), default=1e9),
        "facts": _sample_facts(result),
        "question": _words(sample.question),
        # A reference that is the desired outcome stands there.
        "reference": None
        if result.goal and result.goal.desired == sample.reference
        else _words(sample.reference),
        "response": _segments(result) if sample.response is not None else None,
        "statements": statements,
        "dropped": [
            f"{excerpt(item.text, None)} ({item.reason})"
            for item in (result.decomposition.dropped if result.decomposition else ())
        ],
        "contexts": None
        if sample.retrieved_contexts is None
        else [texts.setdefault(_words(text) or "", len(texts)) for text in sample.retrieved_contexts],
        "goal": goal,
        "trace": [_turn(number, message) for number, message in enumerate(sample.user_input, 1)]
        if isinstance(sample.user_input, tuple)
        else None,
        "metadata": printable(_json(sample.metadata, indent=1), keep=_CONTEXT) if sample.metadata else None,
    }


def _words(text: str | None) -> str | None:
    return None if text is None else printable(text.replace("\r\n", "\n"), keep=_CONTEXT)


def _sample_facts(result: SampleResult) -> list[str]:
    facts = [excerpt(result.metric, 60).replace("_", " ")]
    if result.source:
        facts.append(excerpt(result.source, 200))
    if result.reason:
        facts.append(f"unscored: {result.reason}")
    facts += [f"flag: {excerpt(flag, 60)}" for flag in result.flags]
    return facts


def _verdict(verdict: Verdict, *, word: str, margin: str, notes: Sequence[str] = ()) -> dict[str, Any]:
    found = []
    if verdict.p_supported is not None:
        found.append(f"p {verdict.p_supported:.3f}")
    if verdict.mass is not None:
        found.append(f"mass {verdict.mass:.3f}")
    if verdict.windows > 1:
        window = "?" if verdict.window is None else verdict.window + 1
        found.append(f"decided by window {window} of {verdict.windows} of the context")
    if verdict.margin is not None and verdict.reason:
        found.append(str(verdict.reason))
    for vote in verdict.votes:
        value = {0: "no", 1: "yes", None: "undecided"}[vote.value]
        found.append(f"{excerpt(vote.judge, 20)}: {value}")
    found += notes
    return {
        "state": _STATES[verdict.value],
        "word": word,
        "margin": margin,
        "number": verdict.margin,
        "notes": found,
    }


def _statement(judged: JudgedStatement, finding: Finding) -> dict[str, Any]:
    origin = {
        "sentence": ["the sentence as it stands"],
        "resolved": ["the sentence, with what it leans on"],
        "template": ["question and short answer"],
    }
    notes = list(origin.get(judged.statement.origin, []))
    if judged.contradiction and judged.contradiction.margin is not None:
        notes.append(f"margin of contradiction {show_margin(judged.contradiction.margin)}")
    if judged.padding:
        notes.append("padding: " + ", ".join(str(way).replace("_", " ") for way in judged.padding))
    return {
        "text": _words(judged.statement.text),
        **_verdict(judged.verdict, word=finding.word, margin=finding.margin, notes=notes),
    }


def _segments(result: SampleResult) -> list[tuple[str, list[int], list[int]]]:
    """The response in pieces: text, the statements on it, and those of them that end with it.

    Cut here and not in the script, whose strings count otherwise than Python's.
    """
    response = result.sample.response or ""
    spans = [(judged.statement.start, judged.statement.end) for judged in result.statements]
    spans = [(max(0, start), min(len(response), end)) for start, end in spans]
    cuts = sorted({0, len(response), *(place for span in spans if span[0] < span[1] for place in span)})
    segments = []
    for start, end in itertools.pairwise(cuts):
        on = [k for k, (first, last) in enumerate(spans) if first <= start and end <= last]
        closing = [k for k in on if spans[k][1] == end]
        segments.append((_words(response[start:end]) or "", on, closing))
    return segments


def _goal(result: SampleResult, finding: Finding) -> dict[str, Any]:
    goal = result.goal
    assert goal is not None
    words = {0: "not reached", 1: "reached", None: "undecided"}
    wanted = {"reference": "Desired (reference)", "user_goal": "Desired (inferred goal)"}
    facts = [(wanted.get(goal.desired_from, "Desired (user's words)"), goal.desired)]
    if goal.workflow:
        facts += [("Inferred goal", goal.workflow.user_goal), ("Inferred end state", goal.workflow.end_state)]
    facts.append(("Trace formatter", goal.formatter))
    if goal.cut_tokens:
        facts.append(("Cut", f"{plural(goal.cut_tokens, 'token')} of the trace did not fit the window"))
    verdicts = [
        {
            "text": "Overall: is the outcome the desired one, given the whole trace?",
            **_verdict(goal.reached, word=finding.word, margin=finding.margin),
        }
    ]
    for text, verdict in (
        ("Claimed: given the words of the user and the agent alone", goal.claimed),
        ("Done: given the calls and the tool results alone", goal.done),
    ):
        margin = show_margin(verdict.margin)
        if verdict.margin is None and verdict.reason:
            margin = str(verdict.reason)
        verdicts.append({"text": text, **_verdict(verdict, word=words[verdict.value], margin=margin)})
    return {"facts": [(name, _words(text)) for name, text in facts], "verdicts": verdicts}


def _turn(number: int, message: Message) -> dict[str, Any]:
    labels = {"human": "user", "ai": "assistant"}
    speaker = f"{number} {labels.get(message.role, str(message.role))}"
    if message.name:
        speaker += f" {excerpt(message.name, 60)}"
    calls = []
    for call in message.tool_calls:
        args = "" if call.args is None else f" {_json(call.args)}"
        calls.append(printable(f"{call.name}{args}", keep=_CONTEXT))
    return {"role": str(message.role), "speaker": speaker, "text": _words(message.content), "calls": calls}


def _json(value: Any, *, indent: int | None = None) -> str:
    """JSON of what a record holds, which a user's metadata may stretch: no NaN, no half characters."""
    if isinstance(value, Mapping):
        value = _finite(value)
    text = json.dumps(
        value,
        ensure_ascii=False,
        indent=indent,
        default=str,
        separators=None if indent else (",", ":"),
    )
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and value - value != 0 else value
