"""Items put together with the line that opens their list; headings."""

from __future__ import annotations

import pytest

from anvil_local.decompose import split_statements


def cut(response: str, language: str | None = None) -> list[str]:
    found = split_statements(response, language=language)
    for statement in found.statements:  # an item's place is its own line
        assert response[statement.start : statement.end]
    return [statement.text for statement in found.statements]


def test_items_are_said_with_the_line_that_opens_them() -> None:
    response = "The colours of the flag are:\n- red\n- white and blue\n\nThe flag is old."
    assert cut(response) == [
        "The colours of the flag are: red",
        "The colours of the flag are: white and blue",
        "The flag is old.",
    ]
    found = split_statements(response)
    assert [response[item.start : item.end] for item in found.statements[:2]] == ["red", "white and blue"]
    assert found.without_claim == 1


def test_numbered_items_lose_their_number() -> None:
    assert cut("The first two mayors were:\n1. Mara Holt\n2. Jon Berg") == [
        "The first two mayors were: Mara Holt",
        "The first two mayors were: Jon Berg",
    ]


def test_items_that_are_sentences_stand_alone() -> None:
    response = "There are two reasons for the delay:\n- The old mill was closed.\n- The road is narrow."
    assert cut(response) == [
        "There are two reasons for the delay:",
        "The old mill was closed.",
        "The road is narrow.",
    ]


def test_a_line_that_only_announces_is_not_put_before_its_items() -> None:
    assert cut("Here is a list:\n- red wine of 1990\n- white wine of 1991") == [
        "red wine of 1990",
        "white wine of 1991",
    ]


def test_a_colon_inside_a_line_opens_nothing() -> None:
    assert cut("The flag has two colours: red and white. It is old.")[0] == (
        "The flag has two colours: red and white."
    )


@pytest.mark.parametrize("heading", ["## Results", "**Summary**", "Notes:", "### Early life and work"])
def test_a_heading_claims_nothing(heading: str) -> None:
    found = split_statements(f"{heading}\n\nThe mill is old.")
    assert [statement.text for statement in found.statements] == ["The mill is old."]
    assert found.without_claim == 1


@pytest.mark.parametrize("line", ["## Sales rose by 5 % in 2020", "**The mill is old**", "The mill is old"])
def test_a_heading_that_says_something_is_a_claim(line: str) -> None:
    found = split_statements(f"{line}\n\nThe road is narrow.")
    assert len(found.statements) == 2


def test_lists_in_other_languages_are_left_alone() -> None:
    assert cut("Die Farben der Fahne sind die folgenden:\n- rot\n- weiß", "de")[1:] == ["rot", "weiß"]
