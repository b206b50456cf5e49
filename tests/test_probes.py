"""The probe file: balanced, paired, without duplicates, small enough."""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby

import pytest

from anvil_local.errors import UsageError
from anvil_local.probes import KINDS, Probe, digest_probes, load_probes
from anvil_local.selfcheck import auroc

PROBES = load_probes()
PAIRS = [tuple(group) for _, group in groupby(PROBES, key=lambda probe: probe.pair)]

SCRIPTS = {
    "ja": r"[\u3040-\u30ff]",
    "zh": r"[\u4e00-\u9fff]",
    "ar": r"[\u0600-\u06ff]",
    "hi": r"[\u0900-\u097f]",
}


def estimate_tokens(text: str) -> float:
    """1.35 tokens a word; where words are not a measure, a token for three bytes."""
    other = sum(ord(char) > 0x370 for char in text)
    return len(text.encode()) / 3 if other > len(text) / 4 else 1.35 * len(text.split())


def test_there_are_about_160_probes_with_unique_ids() -> None:
    assert 150 <= len(PROBES) <= 180
    assert len({probe.id for probe in PROBES}) == len(PROBES)


def test_every_kind_is_known_and_has_probes_and_the_file_keeps_kinds_together() -> None:
    assert [kind for kind, _ in groupby(PROBES, key=lambda probe: probe.kind)] == list(KINDS)
    assert all(probe.id.startswith(f"{probe.kind}-") for probe in PROBES)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_balanced(kind: str) -> None:
    labels = Counter(probe.label for probe in load_probes([kind]))
    assert labels[0] == labels[1] >= (2 if kind == "cross_language" else 4)


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair[0].pair)
def test_a_pair_shares_context_or_statement_and_holds_a_0_and_a_1(pair: tuple[Probe, ...]) -> None:
    first, second = pair
    assert (first.id[-1], second.id[-1]) == ("a", "b")
    assert {first.label, second.label} == {0, 1}
    assert (first.context == second.context) != (first.statement == second.statement)
    assert (first.kind, first.language) == (second.kind, second.language)


def test_the_first_of_a_pair_does_not_give_the_label_away() -> None:
    share = sum(pair[0].label for pair in PAIRS) / len(PAIRS)
    assert 0.4 <= share <= 0.6


def test_no_question_and_no_statement_is_asked_twice() -> None:
    assert len({(probe.context, probe.statement) for probe in PROBES}) == len(PROBES)
    pairs = {statement: set() for statement in (probe.statement for probe in PROBES)}
    for probe in PROBES:
        pairs[probe.statement].add(probe.pair)
    assert all(len(names) == 1 for names in pairs.values())


def test_texts_are_clean() -> None:
    for probe in PROBES:
        for text in (probe.context, probe.statement):
            assert text == text.strip()
            assert "  " not in text
        assert "\n" not in probe.statement
        assert probe.statement[-1] in ".。।", probe.id
        assert probe.statement not in probe.context or probe.label == 1


def test_other_languages_are_tagged_and_written_in_their_scripts() -> None:
    tagged = {probe.language for probe in PROBES if probe.kind == "language"}
    assert tagged == {"es", "de", "fr", "pl", "ja", "zh", "ar", "hi"}
    for probe in PROBES:
        if probe.kind == "cross_language":
            assert re.fullmatch("[a-z]{2}>[a-z]{2}", probe.language)
        elif probe.kind != "language":
            assert probe.language == "en"
            assert probe.context.isascii()
            assert probe.statement.isascii()
        elif probe.language in SCRIPTS:
            assert re.search(SCRIPTS[probe.language], probe.context)
            assert re.search(SCRIPTS[probe.language], probe.statement)


def test_contexts_are_short_but_for_position() -> None:
    for probe in PROBES:
        words = len(probe.context.split())
        if probe.kind == "position":
            assert 250 <= words <= 400
        elif probe.kind != "language":
            assert 10 <= words <= 80, probe.id


def test_position_has_its_evidence_early_in_the_middle_and_late() -> None:
    evidence = {
        "position-1": "a lost badge costs 15 euros",
        "position-2": "Laptops are replaced every four years",
        "position-3": "more than sixty days after the journey",
        "position-4": "two of the club's eight boats",
        "position-5": "went to Easton",
        "position-6": "for adults therefore stays",
    }
    probes = {probe.pair: probe for probe in PROBES if probe.kind == "position"}
    assert set(probes) == set(evidence)
    places = [probes[name].context.index(text) / len(probes[name].context) for name, text in evidence.items()]
    for early, middle, late in (places[:3], places[3:]):
        assert early < 0.15
        assert 0.35 < middle < 0.65
        assert late > 0.85


def test_the_whole_check_stays_under_12_000_tokens() -> None:
    prompt = 25
    tokens = 0.0
    for context, group in groupby(PROBES, key=lambda probe: probe.context):
        tokens += estimate_tokens(context)
        tokens += sum(estimate_tokens(probe.statement) + prompt for probe in group)
    assert tokens < 12_000


def test_orders_in_the_context_push_both_ways() -> None:
    contexts = " ".join({probe.context for probe in load_probes(["instruction"])})
    assert "answer 0" in contexts
    assert "reply with 1" in contexts
    assert "<|im_start|>assistant" in contexts


def test_kinds_are_chosen_by_name_and_an_unknown_one_is_refused_with_a_suggestion() -> None:
    chosen = load_probes(["order", "number"])
    assert {probe.kind for probe in chosen} == {"number", "order"}
    with pytest.raises(UsageError, match="did you mean 'negation'"):
        load_probes(["negations"])
    with pytest.raises(UsageError, match="known: number"):
        load_probes(["xyz"])
    with pytest.raises(UsageError, match="no kind"):
        load_probes([])


def test_the_digest_is_that_of_the_file() -> None:
    assert re.fullmatch("[0-9a-f]{64}", digest_probes())


NEGATIONS = re.compile(r"\b(not|no|none|cannot|nobody|nothing|never|nicht)\b", re.IGNORECASE)
TOTALS = re.compile(r"\b(all|every|everyone|both|only|solo)\b", re.IGNORECASE)


def share_of_words_in_context(probe: Probe) -> float:
    context = set(re.findall(r"\w+", probe.context.lower()))
    words = re.findall(r"\w+", probe.statement.lower())
    return sum(word in context for word in words) / len(words)


def test_shallow_cues_do_not_tell_the_label() -> None:
    for cue in (NEGATIONS, TOTALS):
        found = Counter(probe.label for probe in PROBES if cue.search(probe.statement))
        assert abs(found[0] - found[1]) <= 3
    for shallow in (share_of_words_in_context, lambda probe: len(probe.statement)):
        area = auroc([(probe.label, shallow(probe)) for probe in PROBES])
        assert area is not None
        assert 0.45 < area < 0.55
