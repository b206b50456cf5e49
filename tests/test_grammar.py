"""The grammar on a small vocabulary of bytes; the real vocabularies are in real_model/."""

from __future__ import annotations

import numpy as np
import pytest

from anvil_local.errors import GrammarError
from anvil_local.grammar import PATTERNS, Grammar

END = 0
PIECES = {
    1: b"0",
    2: b"1",
    3: b"- ",
    4: b"\n",
    5: b"none",
    6: b"n",
    7: b"\xe6\x97",  # the first two bytes of a character
    8: b"\xa5",  # its third
    9: b"word",
    10: b"1",  # a second token for the same text
    11: b"\x1b[2J",
    12: b"Yes",
    13: b" Yes",
    14: b"No",
    15: b"o",
    16: b"e",
    17: b"u",
    18: b"s",
    19: b"r",
    20: b"_",
    21: b"g",
    22: b"a",
    23: b"l",
    24: b":",
    25: b" ",
    26: b"d",
    27: b"t",
    40: b"user_goal: ",
    41: b"end_state: ",
}


@pytest.fixture
def grammar() -> Grammar:
    return Grammar(PIECES, END)


def spell(grammar: Grammar, pattern: str, tokens: list[int]) -> bool:
    """Whether the grammar admits the tokens, and an end after them."""
    walk = grammar.walk(pattern)
    for token in tokens:
        if not walk.allows(token):
            return False
        walk.advance(token)
    return walk.may_end


def test_a_label_gets_every_token_that_spells_it(grammar: Grammar) -> None:
    assert grammar.choices(("0", "1")) == ((1,), (2, 10))


def test_a_word_label_may_follow_a_space_and_a_digit_may_not(grammar: Grammar) -> None:
    assert grammar.choices(("No", "Yes")) == ((14,), (12, 13))


def test_a_label_without_a_token_is_an_error_that_names_it(grammar: Grammar) -> None:
    with pytest.raises(GrammarError, match="'maybe'"):
        grammar.choices(("No", "maybe"))


def test_statements_are_lines_or_none(grammar: Grammar) -> None:
    pattern = PATTERNS["statements"]
    assert spell(grammar, pattern, [5])
    assert spell(grammar, pattern, [3, 9, 4])
    assert spell(grammar, pattern, [3, 9, 4, 3, 9, 9, 4])
    assert not spell(grammar, pattern, [3, 9])
    assert not spell(grammar, pattern, [9, 4])
    assert not spell(grammar, pattern, [3, 4])
    assert not spell(grammar, pattern, [5, 3, 9, 4])


def test_a_workflow_is_two_lines_in_this_order(grammar: Grammar) -> None:
    pattern = PATTERNS["workflow"]
    assert spell(grammar, pattern, [40, 9, 4, 41, 9, 4])
    assert not spell(grammar, pattern, [41, 9, 4, 40, 9, 4])
    assert not spell(grammar, pattern, [40, 9, 4])


def test_a_character_may_be_spelled_byte_by_byte_but_not_left_half(grammar: Grammar) -> None:
    pattern = PATTERNS["statements"]
    assert spell(grammar, pattern, [3, 7, 8, 4])
    assert not spell(grammar, pattern, [3, 7, 4])
    assert not spell(grammar, pattern, [3, 8, 4])


@pytest.mark.parametrize("name", sorted(PATTERNS))
def test_no_grammar_admits_control_characters(grammar: Grammar, name: str) -> None:
    walk = grammar.walk(PATTERNS[name])
    walk.advance(3 if name == "statements" else 40)
    walk.advance(9)
    assert walk.allows(9)
    assert not walk.allows(11)


def test_the_mask_agrees_with_asking_token_by_token(grammar: Grammar) -> None:
    for tokens in ([], [3], [3, 9], [3, 9, 4], [5]):
        walk = grammar.walk(PATTERNS["statements"])
        for token in tokens:
            walk.advance(token)
        mask = walk.allowed(64)
        assert mask.shape == (64,)
        assert mask.dtype == np.bool_
        for token in range(42):
            known = token in PIECES or token == END
            assert mask[token] == (known and walk.allows(token)), (tokens, token)
        assert not mask[42:].any()


def test_a_pattern_outside_the_vocabulary_is_a_grammar_error(grammar: Grammar) -> None:
    with pytest.raises(GrammarError):
        grammar.walk("[x]{3}")
