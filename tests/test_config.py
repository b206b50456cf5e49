"""Where settings come from, which one wins, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from anvil_local.config import VARIABLES, Config, load_config
from anvil_local.errors import ExitCode, UsageError


def write(folder: Path, text: str, name: str = "anvil.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def refused(folder: Path, environment: dict[str, str] | None = None, **options: object) -> UsageError:
    with pytest.raises(UsageError) as error:
        load_config(folder, environment or {}, **options)
    assert error.value.exit_code == ExitCode.USAGE
    return error.value


def test_without_anything_the_defaults_hold(tmp_path: Path) -> None:
    assert load_config(tmp_path, {}) == Config()


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    write(tmp_path, 'model = "file"\nwindow = 1024\nthreads = 1\n')
    environment = {"ANVIL_MODEL": "variable", "ANVIL_WINDOW": "2048"}
    assert load_config(tmp_path, environment, model="option") == Config(
        model=("option",), window=2048, threads=1
    )


def test_what_the_command_line_leaves_open_does_not_win(tmp_path: Path) -> None:
    write(tmp_path, 'metrics = ["faithfulness"]\nadapter = false\ngates = ["faithfulness>=0.8"]\nseed = 0\n')
    config = load_config(tmp_path, {}, metrics=(), gates=(), adapter=None, seed=None)
    assert config == Config(metrics=("faithfulness",), adapter=False, gates=("faithfulness>=0.8",), seed=0)
    assert load_config(tmp_path, {}, adapter=True, seed=3).seed == 3


def test_the_nearest_file_is_read_and_no_other(tmp_path: Path) -> None:
    write(tmp_path, "threads = 1\nwindow = 512\n")
    write(tmp_path / "a", "threads = 2\n")
    assert load_config(tmp_path / "a" / "b" / "c", {}) == Config(threads=2)
    assert load_config(tmp_path, {}) == Config(threads=1, window=512)


def test_a_table_in_pyproject_counts_and_a_pyproject_without_one_does_not(tmp_path: Path) -> None:
    write(tmp_path, "[tool.anvil]\nthreads = 3\n", "pyproject.toml")
    write(tmp_path / "a", "[tool.ruff]\nline-length = 99\n", "pyproject.toml")
    assert load_config(tmp_path / "a", {}) == Config(threads=3)
    write(tmp_path, "threads = 4\n")
    assert load_config(tmp_path / "a", {}) == Config(threads=4)


def test_the_working_directory_is_where_the_search_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "threads = 5\n")
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path / "a")
    monkeypatch.setenv("ANVIL_WINDOW", "4096")
    assert load_config() == Config(threads=5, window=4096)
    assert load_config(Path()).threads == 5


def test_an_unknown_key_is_refused_with_file_and_suggestion(tmp_path: Path) -> None:
    path = write(tmp_path, "treads = 2\n")
    error = refused(tmp_path)
    assert (error.where, error.value) == (str(path), "treads")
    assert error.hint == "did you mean 'threads'?"


def test_an_unknown_variable_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    error = refused(tmp_path, {"ANVIL_TREADS": "2"})
    assert (error.where, error.hint) == ("ANVIL_TREADS", "did you mean 'ANVIL_THREADS'?")
    assert "ANVIL_MODEL" in str(refused(tmp_path, {"ANVIL_XYZZY": "1"}).hint)


def test_other_variables_and_empty_ones_are_left_alone(tmp_path: Path) -> None:
    environment = {"PATH": "/bin", "ANVILS": "1", "ANVIL_MODEL": "", "ANVIL_BUILD": "x", "ANVIL_PYTHON": "y"}
    assert load_config(tmp_path, environment) == Config()


def test_every_variable_sets_a_key_that_exists(tmp_path: Path) -> None:
    assert set(VARIABLES.values()) <= set(Config.model_fields)
    environment = {name: "0.5" if "UNSCORED" in name else "512" for name in VARIABLES}
    config = load_config(tmp_path, environment)
    assert (config.model, config.models_dir, config.window) == (("512",), "512", 512)
    assert (config.threads, config.gpu_layers, config.max_unscored) == (512, 512, 0.5)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('threads = "4"', "threads"),
        ("threads = true", "threads"),
        ("threads = 0", "threads"),
        ("threads = 1.5", "threads"),
        ("window = 100", "window"),
        ("adapter = 1", "adapter"),
        ('adapter = "no"', "adapter"),
        ("model = 5", "model"),
        ('metrics = "faithfulness"', "metrics"),
        ("metrics = [1]", "metrics.0"),
        ("gates = { a = 1 }", "gates"),
        ("max_unscored = 1.5", "max_unscored"),
        ("threshold = nan", "threshold"),
        ("threshold = inf", "threshold"),
        ('decomposition = "words"', "decomposition"),
        ("seed = 1979-05-27", "seed"),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_with_file_and_key(tmp_path: Path, line: str, key: str) -> None:
    path = write(tmp_path, line + "\n")
    error = refused(tmp_path, {"ANVIL_THREADS": "2"}, window=512)
    assert error.where == str(path)
    assert error.message.startswith(f"{key}: ")


def test_several_models_are_a_list_and_one_is_a_text(tmp_path: Path) -> None:
    write(tmp_path, 'model = ["a", "b"]\n')
    assert load_config(tmp_path, {}).model == ("a", "b")
    write(tmp_path, 'model = "a"\n')
    assert load_config(tmp_path, {}).model == ("a",)
    assert load_config(tmp_path, {}, model=("c", "d")).model == ("c", "d")


def test_a_whole_number_is_a_number(tmp_path: Path) -> None:
    write(tmp_path, "threshold = 1\nmax_unscored = 0\n")
    assert load_config(tmp_path, {}) == Config(threshold=1.0, max_unscored=0.0)


def test_a_variable_and_an_option_of_the_wrong_kind_are_named(tmp_path: Path) -> None:
    assert refused(tmp_path, {"ANVIL_THREADS": "many"}).where == "ANVIL_THREADS"
    assert refused(tmp_path, {"ANVIL_WINDOW": "1"}).where == "ANVIL_WINDOW"
    assert refused(tmp_path, {}, gpu_layers=-2).where == "--gpu-layers"
    assert refused(tmp_path, {}, nonsense=1).where == "--nonsense"


@pytest.mark.parametrize("text", ["threads = \n", "a = 1\na = 2\n", "\x00"])
def test_a_file_that_is_not_toml_is_refused(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    assert refused(tmp_path).where == str(path)


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "anvil.toml").write_bytes('model = "é"\n'.encode("latin-1"))
    assert "cannot be read" in refused(tmp_path).message


@pytest.mark.parametrize(
    "text", ['[tool]\nanvil = "x"\n', "[tool]\nanvil = 5\n", "[[tool.anvil]]\nthreads = 1\n"]
)
def test_a_table_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text, "pyproject.toml")
    error = refused(tmp_path)
    assert error.where == str(path)
    assert "must be a table" in error.message


def test_a_pyproject_whose_tool_is_no_table_is_not_ours(tmp_path: Path) -> None:
    write(tmp_path, "tool = 5\n", "pyproject.toml")
    assert load_config(tmp_path, {}) == Config()
