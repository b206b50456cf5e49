"""Pronouns, last names, abbreviations and descriptions put back to the names they stand for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil_local.coreference import find_subject, resolve_sentences
from anvil_local.language import load_language, split_sentences

ENGLISH = load_language("en")


def resolve(text: str, question: str = "") -> list[str]:
    sentences = [text[span.start : span.end] for span in split_sentences(text, "en")]
    return resolve_sentences(sentences, question, ENGLISH)


def last(text: str, question: str = "") -> str:
    return resolve(text, question)[-1]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Mara Holt was born in Lund. She studied law.", "Mara Holt studied law."),
        ("Mara Holt was born in Lund. In 1980, she moved to Oslo.", "In 1980, Mara Holt moved to Oslo."),
        ("Mara Holt was born in Lund. Her mother taught music.", "Mara Holt's mother taught music."),
        ("Mara Holt was born in Lund. When she was ten, she left.", "When Mara Holt was ten, she left."),
        ("Ravi Menon is a chemist. He's from Kochi.", "Ravi Menon is from Kochi."),
        ("The old mill stands in Bergen. It leaks.", "The old mill leaks."),
        ("The old mill stands in Bergen. However, it leaks.", "However, the old mill leaks."),
        ("Tall trees are rare here. They fall in storms.", "Tall trees fall in storms."),
        ("Tall trees are rare here. Their roots are short.", "Tall trees' roots are short."),
        ("Velmora, also called the white town, is a port. It has two docks.", "Velmora has two docks."),
        ('"Low Tide" is a song by Mara Holt. It lasts two minutes.', '"Low Tide" lasts two minutes.'),
        ("The winner was Mara Holt. She trained in Oslo.", "Mara Holt trained in Oslo."),
        ("One sailor who has seen the world is Mara Holt. She is old.", "Mara Holt is old."),
        ("Mara Holt: She sings in Oslo.", "Mara Holt sings in Oslo."),
        ("Orbex first reached the market in 1990. Later, they won a prize.", "Later, Orbex won a prize."),
        ("Orbex is a maker of steel. They also produce copper.", "Orbex also produces copper."),
        ("The gas used in balloons is helium. It is light.", "The gas used in balloons is light."),
    ],
)  # fmt: skip
def test_a_pronoun_becomes_the_last_subject_that_fits(text: str, wanted: str) -> None:
    assert last(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "The old mill stands in Bergen. It is raining.",
        "The old mill stands in Bergen. It is important to close the door.",
        "The old mill stands in Bergen. It takes two hours to get there.",
        "The old mill stands in Bergen. It is said that ghosts live there.",
        "The old mill stands in Bergen. It was Mara Holt who built the dam.",
        "Mara Holt was born in Lund. It is a town in Sweden.",
        "Mara Holt was born in Lund. They are proud of that.",
        "The mill makes paper bags. They are sold in Oslo.",
        "Nobody knows. He left.",
        "Mara Holt sings. She's seen the world.",
        "The old mill stands in Bergen. He left.",
        "Mara Holt was born in Lund. When Ines Vega came, she left.",
        "The old mill stands in Bergen. This is a pity.",
    ],
)
def test_a_pronoun_that_nothing_fits_stays(text: str) -> None:
    assert last(text) == text.partition(". ")[2]


def test_he_and_she_are_told_apart_once_the_text_has_said_who_is_who() -> None:
    text = "Mara Holt was born in Lund. She sings. Jon Berg married her. He paints. She travels."
    assert resolve(text)[1::2] == ["Mara Holt sings.", "Jon Berg paints."]
    assert last(text) == "Mara Holt travels."


def test_a_last_name_becomes_the_full_name() -> None:
    assert last("Mara Holt was born in Lund. In 1990, Holt won a prize.") == "In 1990, Mara Holt won a prize."


@pytest.mark.parametrize(
    "text",
    [
        "Mara Holt and her brother Nils Holt were born in Lund. Holt won a prize.",
        "Mara Holt was born in Lund. Nils Holt won a prize.",
        "Mara Holt was born in Lund. The Holt won a prize.",
        "Mara Holt was born in Lund. Holt Street was closed.",
        "Mara Holt was born in Lund. Dr. Holt won a prize.",
    ],
)
def test_a_last_name_that_may_be_another_stays(text: str) -> None:
    assert last(text) == text.partition(". ")[2]


def test_an_abbreviation_is_written_out_once_it_was_introduced() -> None:
    text = "The Lund Tram Authority (LTA) runs two lines. Today, LTA employs 40 people."
    assert last(text) == "Today, Lund Tram Authority (LTA) employs 40 people."


def test_brackets_that_hold_no_abbreviation_of_what_stands_before_are_left() -> None:
    text = "The tram authority of Lund (WHO) runs two lines. Today, WHO employs 40 people."
    assert last(text) == "Today, WHO employs 40 people."


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Arta is a river in Velmora. The river was dammed in 1960.", "Arta was dammed in 1960."),
        ("Arta is a river in Velmora. In 1960, the river was dammed.", "In 1960, Arta was dammed."),
        ("Arta is a river in Velmora. The river's mouth was moved.", "Arta's mouth was moved."),
        ("Arta is a river. Bela is a river. The river was dammed.", "The river was dammed."),
        ("Arta is a river in Velmora. The river boats were sold.", "The river boats were sold."),
        ("The best inn in Lund is Humla. The inn offers fish.", "Humla offers fish."),
        (
            "Some causes of forest fires are known. These causes include lightning.",
            "The causes of forest fires include lightning.",
        ),
    ],
)
def test_a_description_becomes_the_one_name_that_it_was_said_of(text: str, wanted: str) -> None:
    assert last(text) == wanted


@pytest.mark.parametrize("preposition", ["in", "at", "near", "behind", "of", "from", "beside", "on"])
def test_a_place_is_not_called_by_what_is_there(preposition: str) -> None:
    text = f"The red roses {preposition} the garden are wet. The garden has a bench."
    assert last(text) == "The garden has a bench."


def test_a_person_of_the_question_can_be_meant() -> None:
    assert resolve("She was born in Lund.", "Where was Mara Holt born?") == ["Mara Holt was born in Lund."]


@pytest.mark.parametrize(
    "question", ["Class B The mill is old.", "Plan A Each mill is old.", "In B He is old."]
)
def test_a_letter_before_a_new_sentence_is_nobodys_name(question: str) -> None:
    assert resolve("He sold it.", question) == ["He sold it."]


def test_a_common_noun_is_not_capitalised_inside_a_sentence() -> None:
    text = "Tall trees are rare here. Moreover, they fall in storms, as tall things do."
    assert last(text) == "Moreover, tall trees fall in storms, as tall things do."


def test_other_languages_are_left_alone() -> None:
    sentences = ["Mara Holt wurde in Lund geboren.", "He Sie studierte Jura."]
    assert resolve_sentences(sentences, "", load_language("de")) == sentences


@pytest.mark.parametrize(
    ("sentence", "subject"),
    [
        ("The old mill stands in Bergen.", "The old mill"),
        ("In 1990, the old mill was sold.", "the old mill"),
        ("Tall trees are rare.", "Tall trees"),
        ("Mara Holt (1900-1980) sang.", None),
        ("Mara Holt (1900-1980) was a singer.", "Mara Holt"),
        ("Close the door.", None),
        ("Which mill is it?", None),
        ("", None),
    ],
)
def test_the_subject_is_what_stands_before_the_verb(sentence: str, subject: str | None) -> None:
    found = find_subject(sentence)
    assert (found.text if found else None) == subject


@given(st.lists(st.text(max_size=60), max_size=5), st.text(max_size=40))
def test_any_text_gives_as_many_texts_and_the_same_ones_again(sentences: list[str], question: str) -> None:
    found = resolve_sentences(sentences, question, ENGLISH)
    assert len(found) == len(sentences)
    assert found == resolve_sentences(sentences, question, ENGLISH)
