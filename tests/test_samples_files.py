"""Files of samples: what is accepted, what is refused and where, and that memory stays small."""

from __future__ import annotations

import io
import json
import os
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anvil_local.errors import ExitCode, InputError, InputErrors, NothingToJudge
from anvil_local.samples import Counts, SampleFile, files, json_document

ROWS: list[dict[str, Any]] = [
    {
        "id": "a",
        "user_input": "Is the gate open?",
        "response": "It is open – until 9.",
        "retrieved_contexts": ["Open."],
    },
    {"question": "Who has the key?", "answer": "The warden\u2028has it.\0", "contexts": "The warden."},
    {
        "messages": [
            {"role": "user", "content": "Shut the gate. 🙂"},
            {"role": "assistant", "content": "Shut."},
        ]
    },
]
LINES = [json.dumps(row, ensure_ascii=False).encode() for row in ROWS]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write a file into the working directory, so that its name in messages is short."""
    monkeypatch.chdir(tmp_path)

    def write(data: bytes | list[Any], name: str = "data.jsonl") -> str:
        if isinstance(data, list):
            lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in data]
            data = b"\n".join(lines) + b"\n"
        Path(name).write_bytes(data)
        return name

    return write


def refusals(name: str, **options: Any) -> list[InputError]:
    with pytest.raises(InputErrors) as caught:
        SampleFile(name, **options).check()
    return caught.value.errors


def refusal(name: str) -> InputError:
    with pytest.raises(InputError) as caught:
        SampleFile(name).check()
    return caught.value


def plain(samples: SampleFile) -> list[dict[str, Any]]:
    return [sample.model_dump(exclude={"source"}) for sample in samples]


def test_json_lines_are_counted_and_read(write: Any) -> None:
    samples = SampleFile(write(LINES))
    assert samples.check() == Counts(rows=3, answers=2, traces=1, rejected=0, lone_contexts=1)
    assert [(sample.id, sample.source) for sample in samples] == [
        ("a", "data.jsonl:1"),
        ("2", "data.jsonl:2"),
        ("3", "data.jsonl:3"),
    ]


def test_iterating_checks_first_and_can_be_repeated(write: Any) -> None:
    samples = SampleFile(write(LINES))
    assert list(samples) == list(samples)
    with pytest.raises(InputErrors):
        next(iter(SampleFile(write([LINES[0], b"{"]))))


@given(
    bom=st.booleans(),
    ends=st.lists(st.sampled_from([b"\n", b"\r\n"]), min_size=3, max_size=3),
    blanks=st.lists(st.sampled_from([b"", b"\n", b"\r\n", b" \t\n", b"\n\n"]), min_size=4, max_size=4),
    last_end=st.booleans(),
    name=st.sampled_from(["data.jsonl", "data.ndjson", "data.json", "data"]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_marks_blank_lines_and_line_ends_do_not_change_the_samples(
    write: Any, bom: bool, ends: list[bytes], blanks: list[bytes], last_end: bool, name: str
) -> None:
    expected = plain(SampleFile(write(LINES)))
    data = b"\xef\xbb\xbf" if bom else b""
    for blank, line, end in zip(blanks, LINES, ends, strict=False):
        data += blank + line + end
    data = data + blanks[3] if last_end else data.rstrip(b"\r\n")
    assert plain(SampleFile(write(data, name))) == expected


def test_lines_are_counted_with_the_blank_ones(write: Any) -> None:
    (error,) = refusals(write(b"\n\r\n" + LINES[0] + b"\n\n{}\n"))
    assert error.where == "data.jsonl:5"


def test_files_put_together_keep_the_marks_of_their_parts(write: Any) -> None:
    marked = b"\xef\xbb\xbf"
    assert SampleFile(write([marked + LINES[0], marked + LINES[1]])).check().rows == 2


@pytest.mark.parametrize(
    ("bad", "field", "message"),
    [
        (b"{'user_input'}", None, "not JSON"),
        (b'["user_input"]', None, "a row must be an object with named fields, not a list"),
        (b'{"user_input": "q"}', "response", "`response` is missing"),
        (b'{"user_input": "q", "response": ""}', "response", "`response` is empty"),
        (rb'{"user_input": "x", "response": "half \ud83d"}', "response", "half a character"),
        (b'{"response": "a", "response": "b"}', None, "given twice"),
        (b'{"response": "a", "score": NaN}', None, "NaN is not JSON"),
        (b'{"response": "a", "score": 1e400}', "score", "not a finite number"),
        (b'{"response": "caf\xe9"}', None, r"line 3 is not UTF-8: byte 0xe9 at offset 236"),
        (b'{"response": "a"}\r{"response": "b"}', None, "more than one JSON value"),
        (b'{"user_input": []}', "user_input", "no messages"),
        (b"[" * 100_000, None, "nested"),
    ],
)
def test_a_bad_third_line_is_refused_with_its_number_and_field(
    write: Any, bad: bytes, field: str | None, message: str
) -> None:
    (error,) = refusals(write([*LINES[:2], bad, LINES[2]]))
    assert error.where == "data.jsonl:3"
    assert error.field == field
    assert message in error.message
    str(error).encode()


def test_all_bad_rows_are_listed_in_order(write: Any) -> None:
    errors = refusals(write([b"{", LINES[0], b"[]", LINES[0], b"{}"]))
    assert [error.where for error in errors] == [f"data.jsonl:{line}" for line in (1, 3, 4, 5)]


def test_bad_rows_can_be_skipped_and_are_kept_for_the_report(write: Any) -> None:
    samples = SampleFile(write([b"{", *LINES, b"[]", {"id": "a", "response": "Again."}]), skip_bad_rows=True)
    assert samples.check() == Counts(rows=6, answers=2, traces=1, rejected=3, lone_contexts=1)
    assert [error.where for error in samples.rejected] == [f"data.jsonl:{line}" for line in (1, 5, 6)]
    # A row without an id keeps its number, whatever was skipped before it.
    assert [sample.id for sample in samples] == ["a", "3", "4"]


def test_checking_stops_after_a_thousand_bad_rows_unless_they_are_skipped(write: Any) -> None:
    name = write([LINES[0], *[b"{}"] * 1500])
    errors = refusals(name)
    assert len(errors) == files.MAX_ERRORS + 1
    assert "stopped" in errors[-1].message
    assert SampleFile(name, skip_bad_rows=True).check().rejected == 1500


def test_the_same_id_twice_is_refused_with_both_lines(write: Any) -> None:
    rows = [
        {"id": 7, "response": "a"},
        {"response": "b"},
        {"id": "7", "response": "c"},
        {"id": 7, "response": "d"},
    ]
    errors = refusals(write(rows))
    assert [error.where for error in errors] == ["data.jsonl:3", "data.jsonl:4"]
    assert all("the id '7' is used at data.jsonl:1 too" in error.message for error in errors)
    assert errors[0].field == "id"


def test_an_id_that_is_the_number_of_a_row_without_one_is_refused(write: Any) -> None:
    (error,) = refusals(write([{"id": 2, "response": "a"}, {"response": "b"}]))
    assert "data.jsonl:1" in error.message


def test_ids_with_the_same_digest_are_told_apart(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_digest", lambda sample_id: 1)
    assert SampleFile(write(LINES)).check().rows == 3


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\xef\xbb\xbf", b" \r\n"])
@pytest.mark.parametrize("name", ["data.jsonl", "data.json", "data"])
def test_a_file_without_rows_is_nothing_to_judge(write: Any, data: bytes, name: str) -> None:
    with pytest.raises(NothingToJudge, match="nothing to judge: no rows") as caught:
        SampleFile(write(data, name)).check()
    assert caught.value.exit_code == ExitCode.NOTHING
    assert caught.value.where == name


@pytest.mark.parametrize("data", [b"[]", b" [\n] \n", b'{"samples": []}'])
def test_an_empty_list_is_nothing_to_judge(write: Any, data: bytes) -> None:
    with pytest.raises(NothingToJudge):
        SampleFile(write(data, "data.json")).check()


def test_a_file_of_skipped_rows_only_is_nothing_to_judge(write: Any) -> None:
    samples = SampleFile(write([b"{}", b"["]), skip_bad_rows=True)
    with pytest.raises(NothingToJudge, match="all 2 rows are bad"):
        samples.check()
    assert len(samples.rejected) == 2


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize("name", ["data.json", "data", "data.txt"])
def test_a_json_list_and_an_object_with_samples_give_the_same_samples(
    write: Any, indent: int | None, wrapped: bool, name: str
) -> None:
    document = json.dumps({"samples": ROWS} if wrapped else ROWS, indent=indent, ensure_ascii=False)
    samples = SampleFile(write(b"\xef\xbb\xbf" + document.replace("\n", "\r\n").encode(), name))
    assert plain(samples) == plain(SampleFile(write(LINES)))
    assert [sample.source for sample in samples] == [f"{name}[{index}]" for index in range(3)]


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('ab"\\[]{},:é\n🙂'), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('k"\\{}', max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.lists(JSON_VALUES, max_size=5), st.booleans(), st.sampled_from([None, 1]), st.integers(12, 40))
def test_a_document_is_cut_into_its_elements_wherever_its_chunks_end(
    rows: list[Any], wrapped: bool, indent: int | None, chunk: int
) -> None:
    data = json.dumps({"samples": rows} if wrapped else rows, indent=indent, ensure_ascii=False).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_document, "_CHUNK", chunk + 6)
        assert list(json_document.read(io.BytesIO(data))) == list(enumerate(rows))


def test_bad_rows_of_a_document_are_named_by_index_and_line(write: Any) -> None:
    errors = refusals(write(b'[\n  {"response": "a"},\n  {"response"\n: tru},\n  {}, 5\n]', "data.json"))
    assert [error.where for error in errors] == ["data.json[1]", "data.json[2]", "data.json[3]"]
    assert "line 4, column 3" in errors[0].message
    assert errors[1].field == "response"


def test_bytes_that_are_not_utf8_in_a_document_are_named_by_line_and_offset(write: Any) -> None:
    (error,) = refusals(write(b'[{"response": "a"},\n{"response": "\xff"}]', "data.json"))
    assert error.where == "data.json[1]"
    assert "line 2 is not UTF-8: byte 0xff at offset 34" in error.message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'[{"response": "a"}', "the file ends at byte 18, before its list does"),
        (b'[{"response": "a"}, ]', "a comma with no row beside it"),
        (b'[, {"response": "a"}]', "a comma with no row beside it"),
        (b'[{"response": "a"}}', "a } without its { at byte 18"),
        (b'[{"response": "a"}] []', "the list ends at line 1, and more follows"),
        (b'[{"response": "a"}]\n' + LINES[0], "the list ends at line 1, and more follows"),
        (b'{"samples": [{"response": "a"}], "name": "x"}', "more follows"),
        (b'{"samples": [{"response": "a"}]', "more follows"),
        (b'{"samples": {"response": "a"}}', "not a list of rows"),
        (b'{\n "user_input": "q",\n "response": "a"\n}', "one JSON object over several lines"),
        (b"id,response\n1,a\n", "neither JSON lines nor JSON"),
        ('{"response": "a"}'.encode("utf-16"), "the file is UTF-16"),
    ],
)
def test_a_file_of_another_shape_is_refused_as_a_whole(write: Any, data: bytes, message: str) -> None:
    error = refusal(write(data, "data.json"))
    assert error.where == "data.json"
    assert message in error.message
    assert error.hint


def test_a_broken_end_does_not_hide_the_bad_rows_before_it(write: Any) -> None:
    errors = refusals(write(b"[{}, 5, ", "data.json"))
    assert [error.where for error in errors] == ["data.json[0]", "data.json[1]", "data.json"]


def test_a_broken_document_is_refused_even_when_bad_rows_are_skipped(write: Any) -> None:
    with pytest.raises(InputError, match="before its list does"):
        SampleFile(write(b"[{}, " + LINES[0], "data.json"), skip_bad_rows=True).check()


def test_a_list_in_a_file_named_json_lines_says_what_to_do(write: Any) -> None:
    error = refusals(write(b"[\n" + LINES[0] + b"\n]\n"))[0]
    assert error.where == "data.jsonl:1"
    assert ".json" in (error.hint or "")


def test_a_missing_file_is_refused_when_it_is_needed(write: Any) -> None:
    samples = SampleFile("nowhere.jsonl")
    with pytest.raises(InputError, match="no such file") as caught:
        samples.check()
    assert caught.value.where == "nowhere.jsonl"


def test_a_directory_is_refused(tmp_path: Path) -> None:
    assert "directory" in refusal(str(tmp_path)).message


def test_a_file_that_may_not_be_read_is_refused(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def deny(*args: Any, **options: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    name = write(LINES)
    monkeypatch.setattr("builtins.open", deny)
    error = refusal(name)
    monkeypatch.undo()
    assert error.message == "cannot be read: Permission denied"


def test_a_disk_that_fails_in_the_middle_is_an_input_error(
    write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FailingDisk(io.BytesIO):
        def __next__(self) -> bytes:
            raise OSError(5, "Input/output error")

    name = write(LINES)
    monkeypatch.setattr("builtins.open", lambda *args, **options: FailingDisk(LINES[0]))
    error = refusal(name)
    monkeypatch.undo()
    assert str(error) == "data.jsonl: cannot be read: Input/output error"


def test_a_process_without_standard_input_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert "no standard input" in refusal("-").message


def test_a_file_that_changes_after_the_check_is_refused(write: Any) -> None:
    samples = SampleFile(write(LINES))
    samples.check()
    write([*LINES, LINES[2]])
    with pytest.raises(InputError, match="changed after it was checked"):
        list(samples)


def test_standard_input_is_read_twice_through_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\n".join(LINES))))
    with SampleFile("-") as samples:
        assert samples.check().rows == 3
        assert [sample.source for sample in samples] == ["<stdin>:1", "<stdin>:2", "<stdin>:3"]
        assert len(list(samples)) == 3
        copy = samples._spool
    assert copy is not None
    assert not os.path.exists(copy.name)


def test_standard_input_may_be_a_json_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(ROWS).encode())))
    with SampleFile(Path("-")) as samples:
        assert [sample.source for sample in samples] == ["<stdin>[0]", "<stdin>[1]", "<stdin>[2]"]


def test_a_pipe_with_a_name_is_read_twice_through_a_copy(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"\n".join(LINES),))
    writer.start()
    with SampleFile(pipe) as samples:
        assert samples.check().rows == 3
        assert len(list(samples)) == 3
    writer.join()


def test_two_readers_of_one_file_do_not_disturb_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\n".join(LINES))))
    with SampleFile("-") as samples:
        assert [a.id == b.id for a, b in zip(samples, samples, strict=True)] == [True] * 3


def write_large(path: Path, *, separator: bytes = b"\n", every_tenth: bytes = b"response") -> None:
    # 4,000 rows of 5 kB, with escapes and characters of more than one byte.
    context = 'Der Fährmann sagt: \\"um neun\\" [1], {2}. ' * 110
    with path.open("wb") as stream:
        for number in range(4000):
            row = f'{{"id": "row-{number}", "response": "Nr. {number}.", "contexts": ["{context}"]}}'.encode()
            if number % 10 == 0:
                row = row.replace(b"response", every_tenth)
            stream.write((separator if number else b"[" if separator == b"," else b"") + row)
        stream.write(b"]" if separator == b"," else b"\n")
    assert path.stat().st_size > 18_000_000


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("data.jsonl", {}),
        ("data.json", {"separator": b","}),
        ("bad.jsonl", {"every_tenth": b"resp"}),
    ],
)
def test_memory_does_not_grow_with_the_file(tmp_path: Path, name: str, options: dict[str, bytes]) -> None:
    write_large(tmp_path / name, **options)
    samples = SampleFile(tmp_path / name, skip_bad_rows=True)
    tracemalloc.start()
    try:
        counts = samples.check()
        assert sum(1 for _ in samples) == counts.answers
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert counts.rows == 4000
    assert counts.rejected == (400 if options.get("every_tenth") else 0)
    assert kept < 1_000_000
    assert peak < 3_000_000
