"""CSV: what a cell becomes, and what is refused with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from anvil_local.errors import InputError, InputErrors
from anvil_local.records import Sample
from anvil_local.samples import SampleFile


def read(tmp_path: Path, text: str | bytes, name: str = "data.csv") -> list[Sample]:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(SampleFile(path))


def refused(tmp_path: Path, text: str | bytes) -> InputError:
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    return caught.value.errors[0] if isinstance(caught.value, InputErrors) else caught.value


@pytest.mark.parametrize(
    ("cell", "contexts"),
    [
        ("It rained.", ("It rained.",)),
        ('"[""It rained."", ""It snowed.""]"', ("It rained.", "It snowed.")),
        ("[]", ()),
        ("[1] It rained.", ("[1] It rained.",)),
        ("", None),
        ('"a\nb"', ("a\nb",)),
    ],
)
def test_contexts_are_a_json_list_or_one_text(
    tmp_path: Path, cell: str, contexts: tuple[str, ...] | None
) -> None:
    (sample,) = read(tmp_path, f"response,retrieved_contexts\nYes.,{cell}\n")
    assert sample.retrieved_contexts == contexts


def test_contexts_may_stand_in_several_columns(tmp_path: Path) -> None:
    first, second = read(tmp_path, "response,contexts,contexts,contexts\nYes.,a,,c\nNo.,d,,\n")
    assert (first.retrieved_contexts, second.retrieved_contexts) == (("a", "c"), ("d",))


@pytest.mark.parametrize("mark", [",", ";", "\t"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_separators_marks_and_line_ends_do_not_matter(
    tmp_path: Path, mark: str, bom: bytes, end: str
) -> None:
    rows = [["id", "question", "answer", "topic"], ["a", "Q, or R; or S?", "Ja – 100 %.", ""]]
    text = end.join(mark.join(f'"{cell}"' if cell.startswith("Q") else cell for cell in row) for row in rows)
    (sample,) = read(tmp_path, bom + text.encode())
    assert (sample.id, sample.user_input, sample.response) == ("a", "Q, or R; or S?", "Ja – 100 %.")
    assert sample.metadata == {}


def test_a_trace_is_a_json_list_in_a_cell(tmp_path: Path) -> None:
    cell = '"[{""role"": ""user"", ""content"": ""Hi""}]"'
    for name in ("messages", "user_input"):
        (sample,) = read(tmp_path, f"{name}\n{cell}\n")
        assert sample.is_trace


def test_a_question_that_begins_with_a_bracket_is_a_question(tmp_path: Path) -> None:
    (sample,) = read(tmp_path, "question,answer\n[sic] who?,Me.\n")
    assert sample.question == "[sic] who?"


def test_rows_are_named_by_the_line_where_they_begin(tmp_path: Path) -> None:
    samples = read(tmp_path, 'answer\n"a\nb"\n\nc\n')
    assert [sample.source.rsplit(":", 1)[1] for sample in samples] == ["2", "5"]


def test_a_cell_longer_than_the_usual_limit_is_read(tmp_path: Path) -> None:
    (sample,) = read(tmp_path, f"answer,contexts\nYes.,{'x' * 300_000}\n")
    assert sample.retrieved_contexts == ("x" * 300_000,)


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("answer,id\nYes.\n", ":2", "1 cells, but 2 columns"),
        ("answer,id\nYes.,a,b\n", ":2", "3 cells, but 2 columns"),
        ("answer,answer\nYes.,No.\n", "", "the column `answer` is there 2 times"),
        ("answer,\nYes.,No.\n", "", "a column has no name"),
        ("answer,contexts\nYes.,\"['a', 'b']\"\n", ":2", "looks like a list, but is not JSON"),
        ('answer,contexts\nYes.,"[1, 2]"\n', ":2", "must be text, not a number"),
        ("messages\nHi\n", ":2", "must be a JSON list"),
        ('answer\n"Yes\n', "", "not CSV after line"),
        (b"answer\nna\xefve\n", "", "is not UTF-8"),
        ("id,topic\na,b\n", ":2", "neither an answer nor a trace"),
        ("id,answer\na,b\na,c\n", ":3", "is used at"),
    ],
)
def test_what_is_unclear_is_refused(tmp_path: Path, text: str | bytes, place: str, says: str) -> None:
    error = refused(tmp_path, text)
    assert says in error.message
    assert str(error.where).endswith(f"data.csv{place}")
