"""The HTML report without a browser: what stands in it, and that no data can act in it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anvil_local.records import (
    JudgedStatement,
    Message,
    Reason,
    Report,
    Role,
    Sample,
    SampleResult,
    Statement,
    ToolCall,
    Verdict,
)
from anvil_local.reports import render_html
from anvil_local.reports.text import show_interval
from anvil_local.scoring import score_statements
from tests.test_reports import HOSTILE, answer, example, nasty, report, trace, verdict

SETTINGS = settings(deadline=None, max_examples=25)


class Page(HTMLParser):
    """The tags, the attributes and the texts of a page, as a browser without scripts sees them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self._open = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag in self.raw:
            self._open = tag
            self.raw[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open:
            self.raw[self._open][-1] += data
        else:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    @property
    def payload(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.raw["script"][0])
        return loaded

    def sample(self, number: int) -> dict[str, Any]:
        found: dict[str, Any] = self.payload["samples"][number]
        return found


def with_sample(result: SampleResult, **fields: Any) -> SampleResult:
    return result.model_copy(update={"sample": result.sample.model_copy(update=fields)})


def spans(response: str, *places: tuple[int, int, int | None]) -> SampleResult:
    return score_statements(
        SampleResult(
            sample=Sample(id="s", response=response),
            metric="faithfulness",
            score=None,
            statements=tuple(
                JudgedStatement(
                    statement=Statement(text=f"claim {k}", start=start, end=end, sentence=k),
                    verdict=verdict(value),
                )
                for k, (start, end, value) in enumerate(places)
            ),
        )
    )


def test_score_gates_notes_and_the_worst_samples_stand_there_without_the_script() -> None:
    text = Page(render_html(example())).text
    for words in (
        "FAIL",
        "0.46",
        "faithfulness.mean 0.46 >= 0.80: FAIL",
        "goal.mean 0.50 >= 0.50: PASS",
        "dropped statements 2 (copies_question 1, duplicate 1)",
        "answers.jsonl:9: response is empty",
        "refused -3.50 The tower was built in 1789.",
    ):
        assert words in text


def test_equal_reports_give_equal_pages() -> None:
    assert render_html(example()) == render_html(Report.model_validate_json(example().model_dump_json()))


def test_the_page_names_no_address_to_load_from() -> None:
    page = render_html(example())
    links = {value for name, value in Page(page).attributes if name in {"src", "href", "action", "srcset"}}
    assert links == {"#samples", "data:,"}
    assert set(re.findall(r"https?://[^\"' ]+", page)) == {
        "http://www.w3.org/2000/svg"
    }  # a name, not a place
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|innerHTML|eval\(", page)


def test_only_the_style_and_the_script_of_the_page_may_run() -> None:
    page = Page(render_html(example()))
    (policy,) = [
        value for name, value in page.attributes if name == "content" and "default-src" in str(value)
    ]
    for kind, text in (("style", page.raw["style"][0]), ("script", page.raw["script"][1])):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in str(policy)
    assert "unsafe" not in str(policy)
    assert str(policy).startswith("default-src 'none'")
    names = {name for name, _ in page.attributes}
    assert "style" not in names
    assert not [name for name in names if name.startswith("on")]


@SETTINGS
@given(HOSTILE)
def test_no_data_changes_the_structure_of_the_page(text: str) -> None:
    page = render_html(nasty(text))
    page.encode("utf-8")
    found, expected = Page(page), Page(render_html(nasty("plain")))
    # Details, and the facts of the head, come with the data.
    optional = {"small", "br", "span", "div", "dt", "dd"}
    assert set(found.tags) <= set(expected.tags) | optional
    assert [tag for tag in found.tags if tag not in optional] == [
        tag for tag in expected.tags if tag not in optional
    ]
    assert len(found.raw["script"]) == 2
    assert len(found.payload["samples"]) == 3
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]", page)


@pytest.mark.parametrize(
    "attack",
    [
        "</script><script>alert(1)</script>",
        "<!--<script>",
        "<img src=x onerror=alert(1)>",
        "\u2028alert(1)\u2029",
        "{{ 7 * 7 }}{% raw %}",
        "javascript:alert(1)",
        "]]>&lt;b&gt;",
    ],
)
def test_an_attack_stays_text(attack: str) -> None:
    page = render_html(nasty(attack))
    body = page.split("<body>")[1]
    assert body.count("<script") == 2
    assert "<img" not in page
    assert "<!--" not in body
    shown = Page(page).sample(0)["statements"][0]["text"]
    assert shown == attack.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def test_a_statement_is_marked_at_its_place_whatever_stands_before_it() -> None:
    response = "👩‍👩‍👧 Über. It rained."
    place = response.index("It")
    page = Page(render_html(report(spans(response, (place, len(response), 0)))))
    assert page.sample(0)["response"] == [[response[:place], [], []], ["It rained.", [0], [0]]]


@given(st.text(max_size=30), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=4))
@SETTINGS
def test_no_text_of_the_response_is_lost_or_said_twice(response: str, places: list[tuple[int, int]]) -> None:
    result = spans(response, *((start, end, 1) for start, end in places))
    pieces = Page(render_html(report(result))).sample(0)["response"]
    whole = Page(render_html(report(spans(response)))).sample(0)["response"]
    if "\r\n" not in response:  # a cut inside it shows both
        assert "".join(piece[0] for piece in pieces) == "".join(piece[0] for piece in whole)
    for k, (start, end) in enumerate(places):
        reached = min(end, len(response)) > start
        assert any(k in piece[2] for piece in pieces) == reached


def test_overlapping_statements_share_their_piece() -> None:
    page = Page(render_html(report(spans("abcdef", (0, 4, 1), (2, 6, 0)))))
    assert page.sample(0)["response"] == [["ab", [0], []], ["cd", [0, 1], [0]], ["ef", [1], [1]]]


def test_anchors_are_unique_and_do_not_depend_on_the_other_samples() -> None:
    twice = [answer("a", "r"), answer("a", "r"), answer("a-2", "r"), answer("a b", "r"), answer("a/b", "r")]
    samples = Page(render_html(report(*twice))).payload["samples"]
    anchors = [sample["anchor"] for sample in samples]
    assert len(set(anchors)) == 5
    assert anchors[0] == "faithfulness.a"
    assert all(re.fullmatch(r"[\w-]+\.[\w-]+", anchor) for anchor in anchors)
    alone = Page(render_html(report(twice[3]))).sample(0)["anchor"]
    assert alone == anchors[3]


def test_the_worst_come_first_then_the_unscored_then_the_rest() -> None:
    results = [
        answer("full", "r", ("a", verdict(1))),
        answer("none", "r"),
        answer("half", "r", ("a", verdict(1)), ("b", verdict(0))),
        answer("zero", "r", ("a", verdict(0))),
    ]
    samples = Page(render_html(report(*results))).payload["samples"]
    order = [sample["id"] for sample in sorted(samples, key=lambda sample: int(sample["risk"]))]
    assert order == ["zero", "half", "none", "full"]


def test_a_trace_shows_turns_calls_and_claimed_against_done() -> None:
    turns = (
        Message(role=Role.HUMAN, content="Cancel it."),
        Message(role=Role.AI, tool_calls=(ToolCall(name="cancel", args={"order": 17}),)),
        Message(role=Role.TOOL, name="cancel", content="error: locked"),
    )
    page = Page(render_html(report(with_sample(trace("t", verdict(0, -0.75)), user_input=turns))))
    sample = page.sample(0)
    assert [turn["speaker"] for turn in sample["trace"]] == ["1 user", "2 assistant", "3 tool cancel"]
    assert sample["trace"][1]["calls"] == ['cancel {"order":17}']
    assert sample["tally"] == "claimed ✓, done ✕"
    words = [(item["word"], item["margin"]) for item in sample["goal"]["verdicts"]]
    assert words == [("not reached", "-0.75"), ("reached", "+0.50"), ("not reached", "no_tool_results")]
    assert ["Inferred end state", "The restaurant was full."] in sample["goal"]["facts"]


def test_a_context_that_samples_share_is_in_the_page_once() -> None:
    context = "Open from nine to five."
    results = [with_sample(answer(str(k), "r"), retrieved_contexts=(context, "")) for k in range(3)]
    page = render_html(report(*results))
    assert page.count(context) == 1
    assert [sample["contexts"] for sample in Page(page).payload["samples"]] == [[0, 1]] * 3


def test_the_deciding_window_is_named() -> None:
    judged = Verdict(value=1, margin=1.0, windows=3, window=1)
    sample = Page(render_html(report(answer("1", "r", ("s", judged))))).sample(0)
    assert "decided by window 2 of 3 of the context" in sample["statements"][0]["notes"]


def test_numbers_that_json_does_not_have_reach_no_script() -> None:
    odd = answer("1", "r", metadata={"loss": float("nan"), "all": [float("inf")], "x": range(2)})
    page = Page(render_html(report(odd)))
    assert "NaN" not in page.raw["script"][0]
    assert "Infinity" not in page.raw["script"][0]
    assert '"loss": null' in page.sample(0)["metadata"]


def test_a_report_of_nothing_is_a_page() -> None:
    page = Page(render_html(report(data=())))
    assert "No metric was scored." in page.text
    assert page.payload == {"samples": [], "texts": []}


def test_an_interrupted_run_never_looks_like_a_pass() -> None:
    page = Page(render_html(report(complete=False)))
    assert "INCOMPLETE" in page.text
    assert "PASS" not in page.text


def test_a_verdict_without_a_model_says_why() -> None:
    result = answer("1", "r", ("s", verdict(0, reason=Reason.EMPTY_CONTEXT)))
    statement = Page(render_html(report(result))).sample(0)["statements"][0]
    assert (statement["word"], statement["margin"], statement["number"]) == ("refused", "empty_context", None)


def test_a_refused_statement_says_how_it_fails_when_that_was_asked() -> None:
    result = answer("1", "r", ("s", verdict(0, -2.0)))
    judged = result.statements[0].model_copy(update={"contradiction": verdict(1, 1.5)})
    page = Page(render_html(report(result.model_copy(update={"statements": (judged,)}))))
    statement = page.sample(0)["statements"][0]
    assert (statement["word"], statement["state"]) == ("contradicted", "no")
    assert "margin of contradiction +1.50" in statement["notes"]


def test_each_score_stands_beside_its_interval() -> None:
    shown = example()
    page = " ".join(Page(render_html(shown)).text.split())
    for summary in shown.summaries:
        assert summary.mean_interval is not None
        assert show_interval(summary.mean_interval) in page
        assert summary.metric.startswith("goal") or show_interval(summary.pooled_interval) in page
