"""JSON text that two programs would read in two ways is refused."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil_local.errors import InputError
from anvil_local.samples.strict_json import MAX_DEPTH, check_json, join_path, json_kind, parse_json

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_every_json_value_comes_back_equal_and_passes_the_check(value: object, escaped: bool) -> None:
    data = json.dumps(value, ensure_ascii=escaped).encode()
    read = parse_json(data)
    assert json.dumps(read) == json.dumps(value)
    check_json(read)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a": NaN}', "NaN is not JSON"),
        (b'{"a": -Infinity}', "-Infinity is not JSON"),
        (b'{"a": 1, "b": {"c": 1, "c": 1}}', "the key 'c' is given twice"),
        (b'{"a": 1} {"a": 2}', "more than one JSON value, the second at line 7, column 10"),
        (b'{"a":\n tru}', "not JSON: Expecting value at line 8, column 2"),
        (b'{"a": "x\x00y"}', "not JSON: Invalid control character at line 7"),
        (b"", "not JSON"),
        (b"[" * 200_000, "nested more than"),
        (b"1" * 5000, "not usable JSON"),
        (b'{"a":\n"caf\xe9"}', r"line 8 is not UTF-8: byte 0xe9 at offset 110"),
        (b'"\xed\xa0\x80"', "line 7 is not UTF-8: byte 0xed at offset 101"),
    ],
)
def test_what_is_not_strict_json_is_refused_with_its_place(data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        parse_json(data, line=7, offset=100)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (r'{"a": ["ok", "x\ud83d"]}', "a[1]"),
        (r'{"a": {"b c": "\udc00"}}', "a['b c']"),
        ('{"a": {"b": 1e999}}', "a.b"),
    ],
)
def test_values_that_no_file_can_hold_are_refused_with_their_path(text: str, path: str) -> None:
    with pytest.raises(InputError) as caught:
        check_json(parse_json(text.encode()))
    assert caught.value.field == path
    str(caught.value).encode()


def test_the_first_bad_value_in_reading_order_is_named() -> None:
    with pytest.raises(InputError, match=r"`a\[1\]`"):
        check_json({"a": [0, math.inf, math.nan], "b": math.nan})


def test_nesting_is_bounded_so_that_no_writer_fails_later() -> None:
    deep: object = "x"
    for _ in range(MAX_DEPTH):
        deep = [deep]
    check_json(deep)
    with pytest.raises(InputError, match="nested"):
        check_json([deep])


def test_surrogate_pairs_and_odd_characters_are_text() -> None:
    value = parse_json(rb'"\ud83d\ude42 \u0000 \u2028"')
    assert value == "🙂 \0 \u2028"
    check_json(value)


def test_paths_quote_keys_that_are_not_words() -> None:
    assert join_path("", "a") == "a"
    assert join_path("a", "b-c") == "a.b-c"
    assert join_path("a", "x.y") == "a['x.y']"
    assert join_path("", "\ud800") == r"['\ud800']"


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, "null"),
        (True, "true or false"),
        (1, "a number"),
        (0.5, "a number"),
        ("", "text"),
        ([], "a list"),
        ({}, "an object"),
        (b"", "a bytes"),
    ],
)
def test_kinds_are_named_in_the_words_of_json(value: object, kind: str) -> None:
    assert json_kind(value) == kind
