"""Input files that other evaluators misread, each through `run` with a fake judge."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from anvil_local.cli import app as cli
from anvil_local.cli import options
from anvil_local.judge import FakeJudge

ROW = {"question": "Wet?", "answer": "It rained.", "contexts": ["Rain."]}
TRACE = {"messages": [{"role": "user", "content": "Shut it."}, {"role": "assistant", "content": "Shut."}]}


class Ran:
    """What a run left."""

    def __init__(self, code: int, out: str, err: str, judge: FakeJudge) -> None:
        self.code, self.err, self.judge = code, err, judge
        self.report = json.loads(out) if out else None

    @property
    def samples(self) -> list[dict[str, Any]]:
        """The samples of the report, without their places."""
        assert self.report is not None
        return [
            {key: value for key, value in result["sample"].items() if key != "source"}
            for result in self.report["results"]
        ]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    monkeypatch.chdir(tmp_path)

    def run(data: bytes | list[Any], *arguments: str, name: str = "data.jsonl") -> Ran:
        judge = FakeJudge(lambda task, fields: 1)
        monkeypatch.setattr(options, "build_judge", lambda config, **_: judge)
        if isinstance(data, list):
            data = b"\n".join(row if isinstance(row, bytes) else json.dumps(row).encode() for row in data)
        Path(name).write_bytes(data)
        with pytest.raises(SystemExit) as exit_:
            cli.main(["run", name, "--decomposition", "sentence", "--json", *arguments])
        out, err = capsys.readouterr()
        return Ran(int(exit_.value.code or 0), out, err, judge)

    return run


def test_a_mark_blank_lines_and_windows_line_ends_change_nothing(run: Any) -> None:
    lines = [json.dumps(ROW | {"id": name}).encode() for name in "abc"]
    plain = run(b"\n".join(lines) + b"\n")
    odd = run(b"\xef\xbb\xbf\r\n" + lines[0] + b"\r\n\r\n \r\n" + lines[1] + b"\n\n" + lines[2])
    assert (plain.code, odd.code) == (0, 0)
    assert plain.samples == odd.samples
    assert len(odd.samples) == 3


@pytest.mark.parametrize(
    ("third", "says"),
    [
        (b'{"answer": "It rai', "not JSON"),
        ([1, 2], "must be an object with named fields, not a list"),
        ({"question": "Wet?", "contexts": ["Rain."]}, "`response` is missing"),
    ],
)
def test_a_bad_third_line_is_refused_before_anything_is_judged(run: Any, third: Any, says: str) -> None:
    rows = [ROW | {"id": "a"}, ROW | {"id": "b"}, third]
    refused = run(rows)
    assert refused.code == 2
    assert "data.jsonl:3: " in refused.err
    assert says in refused.err
    assert not refused.judge.asked
    skipped = run(rows, "--skip-bad-rows")
    assert skipped.code == 0
    assert [sample["id"] for sample in skipped.samples] == ["a", "b"]
    assert [row.startswith("data.jsonl:3: ") for row in skipped.report["rejected"]] == [True]


def test_keys_that_nobody_knows_come_back_and_the_id_is_the_id(run: Any) -> None:
    (sample,) = run([ROW | {"id": "q-17", "topic": {"name": "weather", "tags": [1, None]}}]).samples
    assert sample["id"] == "q-17"
    assert sample["metadata"] == {"topic": {"name": "weather", "tags": [1, None]}}


def test_old_names_are_accepted_and_named_in_the_help(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    (sample,) = run([ROW | {"ground_truth": "It did."}]).samples
    assert sample["user_input"] == "Wet?"
    assert sample["reference"] == "It did."
    with pytest.raises(SystemExit):
        cli.main(["run", "--help"])
    text = capsys.readouterr().out
    assert all(name in text for name in ("question", "answer", "contexts", "ground_truth"))


@pytest.mark.parametrize("pair", [("question", "user_input"), ("answer", "response")])
def test_an_old_and_a_new_name_for_one_field_are_refused(run: Any, pair: tuple[str, str]) -> None:
    old, new = pair
    refused = run([ROW | {new: ROW[old]}])
    assert refused.code == 2
    assert f"data.jsonl:1: `{old}` and `{new}` are two names for one field" in refused.err


def test_contexts_as_one_text_are_one_context_and_the_header_says_so(run: Any) -> None:
    ran = run([{"response": "It rained.", "retrieved_contexts": "Rain."}])
    assert ran.samples[0]["retrieved_contexts"] == ["Rain."]
    assert "contexts given as one text, taken as one context: 1 row" in ran.err


@pytest.mark.parametrize(("value", "kind"), [(3, "a number"), ({"text": "Rain."}, "an object")])
def test_contexts_as_a_number_or_an_object_are_refused(run: Any, value: Any, kind: str) -> None:
    refused = run([{"response": "It rained.", "retrieved_contexts": value}])
    assert refused.code == 2
    assert f"data.jsonl:1: `retrieved_contexts` must be a list of texts, not {kind}" in refused.err


def test_contexts_in_a_csv_cell_are_a_json_list_or_one_text(run: Any) -> None:
    cells = ['"[""Rain."", ""Snow.""]"', '"Rain, or snow."']
    text = "response,retrieved_contexts\n" + "".join(f"It rained.,{cell}\n" for cell in cells)
    contexts = [sample["retrieved_contexts"] for sample in run(text.encode(), name="data.csv").samples]
    assert contexts == [["Rain.", "Snow."], ["Rain, or snow."]]


def test_an_id_used_twice_is_refused_with_both_lines(run: Any) -> None:
    refused = run([ROW | {"id": "a"}, ROW | {"id": "b"}, ROW | {"id": "a"}])
    assert refused.code == 2
    assert "data.jsonl:3: the id 'a' is used at data.jsonl:1 too" in refused.err


@pytest.mark.parametrize("data", [b"", b"\n\r\n", b"[]", b'{"samples": []}'])
def test_no_rows_are_nothing_to_judge(run: Any, data: bytes) -> None:
    empty = run(data, name="data.json")
    assert empty.code == 5
    assert "nothing to judge" in empty.err


def test_a_header_without_rows_is_nothing_to_judge(run: Any) -> None:
    assert run(b"response,contexts\n", name="data.csv").code == 5


def test_traces_and_answers_in_one_file_are_judged_by_what_fits_them(run: Any) -> None:
    mixed = run([ROW, TRACE])
    assert [
        (result["sample"]["id"], result["metric"].split("_")[0]) for result in mixed.report["results"]
    ] == [
        ("1", "faithfulness"),
        ("2", "goal"),
    ]


def test_a_metric_that_fits_no_row_is_an_error(run: Any) -> None:
    refused = run([ROW], "--metric", "goal")
    assert refused.code == 2
    assert "fits no row" in refused.err
    assert not refused.judge.asked


@pytest.mark.parametrize("text", ["a\0b", "a\u2028b\u2029c\x85d", "x" * 10_000, "אָ\u202eb\U0001f642"])
@pytest.mark.parametrize("field", ["answer", "question", "contexts"])
def test_odd_characters_and_long_words_are_judged(run: Any, field: str, text: str) -> None:
    given = [text] if field == "contexts" else f"It is {text}."
    odd = run([ROW | {field: given}])
    assert odd.code == 0
    (result,) = odd.report["results"]
    assert (
        result["sample"][{"answer": "response", "question": "user_input"}.get(field, "retrieved_contexts")]
        == given
    )
    response = result["sample"]["response"]
    assert all(
        0 <= item["statement"]["start"] < item["statement"]["end"] <= len(response)
        for item in result["statements"]
    )


@pytest.mark.parametrize("field", ["answer", "question", "contexts"])
def test_half_a_character_is_refused_with_its_line(run: Any, field: str) -> None:
    value = ["a\ud800"] if field == "contexts" else "a\ud800"
    refused = run([ROW, ROW | {field: value}])
    assert refused.code == 2
    assert f"data.jsonl:2: `{field}" in refused.err
    assert "lone surrogate U+D800" in refused.err


READ = """
import resource, sys
from anvil_local.samples import SampleFile
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
with SampleFile(sys.argv[1]) as samples:
    count = sum(1 for _ in samples)
print(count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("name", ["data.jsonl", "data.csv"])
def test_the_memory_of_a_reading_process_does_not_grow_with_the_file(tmp_path: Path, name: str) -> None:
    # In small: 24 MB; the same script read 200 MB of JSON lines with 3 MB.
    path = tmp_path / name
    context = "The ferry leaves at nine. " * 400
    with path.open("w", encoding="utf-8") as stream:
        stream.write("id,response,contexts\n" if name.endswith("csv") else "")
        for number in range(2400):
            row = {"id": f"r{number}", "response": f"At {number}.", "contexts": context}
            stream.write((",".join(row.values()) if name.endswith("csv") else json.dumps(row)) + "\n")
    assert path.stat().st_size > 24_000_000
    done = subprocess.run(
        [sys.executable, "-c", READ, str(path)], capture_output=True, text=True, check=True, timeout=120
    )
    count, grown = map(int, done.stdout.split())
    unit = 1 if sys.platform == "darwin" else 1024
    assert count == 2400
    assert grown * unit < 12_000_000
