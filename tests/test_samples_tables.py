"""Parquet, Arrow, saved data sets, and objects of other libraries that hold many rows."""

from __future__ import annotations

import datetime
import json
import sys
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from anvil_local.errors import InputError
from anvil_local.samples import SampleFile, as_samples
from anvil_local.samples.arrow import plain

ROWS: list[dict[str, Any]] = [
    {
        "id": "a",
        "user_input": "Q?",
        "response": "It rained.",
        "retrieved_contexts": ["Rain.", "Snow."],
        "n": 1,
    },
    {"id": "b", "user_input": None, "response": "It snowed.", "retrieved_contexts": [], "n": 2},
]


def plain_rows(samples: Any) -> list[Any]:
    return [sample.model_dump(exclude={"source"}) for sample in samples]


EXPECTED = plain_rows(as_samples(ROWS))


@pytest.fixture
def arrow() -> Any:
    return pytest.importorskip("pyarrow")


def save_folder(arrow: Any, folder: Path, **state: Any) -> Path:
    """What `Dataset.save_to_disk` leaves, cut to what matters: the rows in two files."""
    folder.mkdir()
    names = [f"data-0000{i}-of-00002.arrow" for i in range(2)]
    table = arrow.Table.from_pylist(ROWS)
    for i, name in enumerate(names):
        part = table.slice(i, 1)
        with (
            arrow.OSFile(str(folder / name), "wb") as file,
            arrow.ipc.new_stream(file, part.schema) as writer,
        ):
            writer.write_table(part)
    state = {"_data_files": [{"filename": name} for name in names], "_split": None} | state
    (folder / "state.json").write_text(json.dumps(state), encoding="utf-8")
    (folder / "dataset_info.json").write_text("{}", encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", ["data.parquet", "data"])
def test_parquet_is_read_by_its_name_and_by_its_beginning(arrow: Any, tmp_path: Path, name: str) -> None:
    from pyarrow import parquet

    parquet.write_table(arrow.Table.from_pylist(ROWS), tmp_path / name)
    samples = SampleFile(tmp_path / name)
    assert plain_rows(samples) == EXPECTED
    assert [sample.source for sample in samples][1] == f"{tmp_path / name}[1]"


@pytest.mark.parametrize("kind", ["new_file", "new_stream"])
def test_arrow_files_and_streams_are_read(arrow: Any, tmp_path: Path, kind: str) -> None:
    table = arrow.Table.from_pylist(ROWS)
    path = tmp_path / "data.arrow"
    with arrow.OSFile(str(path), "wb") as file, getattr(arrow.ipc, kind)(file, table.schema) as writer:
        writer.write_table(table)
    assert plain_rows(SampleFile(path)) == EXPECTED


def test_a_saved_data_set_is_read_from_all_its_files(arrow: Any, tmp_path: Path) -> None:
    assert plain_rows(SampleFile(save_folder(arrow, tmp_path / "saved"))) == EXPECTED


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({"_indices_files": [{"filename": "indices.arrow"}]}, "flatten_indices"),
        ({"_data_files": [{"filename": "../secret.arrow"}]}, "outside its folder"),
        ({"_data_files": [{"filename": "gone.arrow"}]}, "is missing"),
        ({"_data_files": None}, "does not name the data files"),
    ],
)
def test_a_saved_data_set_that_is_not_whole_is_refused(
    arrow: Any, tmp_path: Path, state: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError) as caught:
        SampleFile(save_folder(arrow, tmp_path / "saved", **state)).check()
    assert says in str(caught.value)


def test_a_folder_of_several_data_sets_names_them(arrow: Any, tmp_path: Path) -> None:
    save_folder(arrow, tmp_path / "train")
    save_folder(arrow, tmp_path / "test")
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}', encoding="utf-8")
    with pytest.raises(InputError, match=r"several data sets\nhint: .*test, .*train"):
        SampleFile(tmp_path).check()


@pytest.mark.parametrize("name", ["data.parquet", "data.arrow"])
def test_a_broken_binary_file_is_refused(arrow: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"PAR1 or ARROW1, but no more")
    with pytest.raises(InputError, match="not readable as"):
        SampleFile(tmp_path / name, format=name.split(".")[1]).check()


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "data.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"anvil-local\[parquet\]"):
        SampleFile(tmp_path / "data.parquet").check()


def test_values_that_json_does_not_have_become_text() -> None:
    value = {"a": [datetime.date(2025, 1, 2)], "b": Decimal("1.50"), "c": Decimal(3)}
    assert plain(value) == {"a": ["2025-01-02"], "b": "1.50", "c": 3}


def test_a_pandas_frame_is_read_with_its_missing_values_as_null() -> None:
    pandas = pytest.importorskip("pandas")
    assert plain_rows(as_samples(pandas.DataFrame(ROWS))) == EXPECTED
    numpy = pytest.importorskip("numpy")
    frame = pandas.DataFrame({"response": ["a", "b"], "contexts": [["x"], numpy.nan], "n": [1.5, None]})
    first, second = as_samples(frame)
    assert (first.retrieved_contexts, second.retrieved_contexts) == (("x",), None)
    assert (first.metadata, second.metadata) == ({"n": 1.5}, {"n": None})
    frame["contexts"] = [numpy.array(["x", "y"]), numpy.array([])]
    assert [sample.retrieved_contexts for sample in as_samples(frame)] == [("x", "y"), ()]


def test_a_pandas_frame_with_a_column_twice_is_refused() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(InputError, match="`a` is there twice"):
        list(as_samples(pandas.DataFrame([[1, 2]], columns=["a", "a"])))


def test_a_polars_frame_and_an_arrow_table_are_known_by_what_they_can_do() -> None:
    polars = SimpleNamespace(iter_rows=lambda *, named: iter(ROWS if named else ()))
    batch = SimpleNamespace(to_pylist=lambda: ROWS)
    table = SimpleNamespace(schema=None, to_batches=lambda: [batch])
    for frame in (polars, table):
        assert plain_rows(as_samples(frame)) == EXPECTED


@pytest.mark.parametrize("name", ["samples", "test_cases"])
def test_data_sets_of_evaluators_are_read_by_their_samples(name: str) -> None:
    assert plain_rows(as_samples(SimpleNamespace(**{name: ROWS}))) == EXPECTED


def test_a_dict_of_data_sets_is_refused_with_their_names() -> None:
    part = SimpleNamespace(features={}, num_rows=2)
    with pytest.raises(InputError, match="'train', 'test'"):
        list(as_samples({"train": part, "test": part}))
