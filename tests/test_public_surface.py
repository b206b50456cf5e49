"""What people may rely on: the names, their docs, the records' fields and the tree of errors."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from enum import Enum
from pathlib import Path

import pytest

import anvil_local
from anvil_local import errors, records
from anvil_local.config import Config
from anvil_local.errors import AnvilError, ExitCode, InputError, InputErrors, shorten
from anvil_local.records import Record

MODULES = sorted(module.name for module in pkgutil.walk_packages(anvil_local.__path__, "anvil_local."))
RECORDS = sorted(
    {value for value in vars(records).values() if inspect.isclass(value) and issubclass(value, Record)}
    | {Config},
    key=lambda record: record.__name__,
)
ERRORS = [
    value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, AnvilError)
]


def parse(module: object) -> ast.Module:
    assert inspect.ismodule(module)
    assert module.__file__ is not None
    return ast.parse(Path(module.__file__).read_text(encoding="utf-8"))


# Names


def test_the_list_of_public_names_is_sorted_and_complete() -> None:
    assert anvil_local.__all__ == sorted(anvil_local.__all__)
    assert set(anvil_local.__all__) == {*anvil_local._HOMES, "__version__"}
    assert set(anvil_local.__all__) <= set(dir(anvil_local))


def test_type_checkers_see_the_same_names() -> None:
    block = next(node for node in parse(anvil_local).body if isinstance(node, ast.If))
    seen = {
        alias.name: (node.module or "").removeprefix("anvil_local.")
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == anvil_local._HOMES


@pytest.mark.parametrize("name", anvil_local.__all__)
def test_every_public_name_is_there_and_has_its_own_docstring(name: str) -> None:
    value = getattr(anvil_local, name)
    if name == "__version__":
        assert re.fullmatch(r"\d+\.\d+.*", value)
        return
    assert vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    if inspect.isclass(value):
        for method, function in vars(value).items():
            if not method.startswith("_") and callable(function):
                assert function.__doc__, f"{name}.{method}"


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Jugde'"):
        anvil_local.Jugde  # noqa: B018
    with pytest.raises(ImportError):
        from anvil_local import Jugde  # type: ignore[attr-defined]  # noqa: F401


@pytest.mark.parametrize("name", MODULES)
def test_every_module_says_what_it_is_and_its_names_exist(name: str) -> None:
    module = importlib.import_module(name)
    if not name.endswith("_version"):
        assert module.__doc__
    names = getattr(module, "__all__", [])
    assert len(set(names)) == len(names)
    for public in names:
        assert hasattr(module, public), public


# Records


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_every_field_of_a_record_is_described_and_the_record_is_frozen_and_closed(
    record: type[Record],
) -> None:
    assert vars(record).get("__doc__")
    for name, field in record.model_fields.items():
        assert field.description, name
    assert record.model_config["frozen"]
    assert record.model_config["extra"] == "forbid"
    assert record.model_config["allow_inf_nan"] is False


@pytest.mark.parametrize("module", [records, errors])
def test_every_member_of_an_enum_is_described(module: object) -> None:
    found = 0
    for node in parse(module).body:
        if isinstance(node, ast.ClassDef) and issubclass(getattr(module, node.name), Enum):
            body = node.body[1:]  # after the docstring
            if node.name == "Role":  # four words that everybody knows
                continue
            for member, described in zip(body[::2], body[1::2], strict=True):
                assert isinstance(member, ast.Assign)
                assert isinstance(described, ast.Expr)
                found += 1
    assert found >= 5


# Errors


def documented_tree() -> dict[str, tuple[str, int | None]]:
    """Name -> parent and exit code, from the docstring of `errors`."""
    path: list[str] = []
    found: dict[str, tuple[str, int | None]] = {}
    code: dict[str, int | None] = {}
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"    ([│ ]*)(?:[├└]── )?([A-Z]\w+)\b(.*)$", line)
        if not match or not hasattr(errors, match[2]):
            continue
        depth = len(match[1]) // 4 + ("──" in line)
        path[depth:] = [match[2]]
        parent = path[depth - 1] if depth else "Exception"
        exit_code = re.search(r"exit (\d+)$", match[3].strip())
        code[match[2]] = int(exit_code[1]) if exit_code else code.get(parent)
        found[match[2]] = (parent, code[match[2]])
    return found


def test_the_tree_in_the_docstring_is_the_tree_of_classes() -> None:
    actual = {error.__name__: error.__base__.__name__ for error in ERRORS if error.__base__}
    assert {name: parent for name, (parent, _) in documented_tree().items()} == actual


def test_the_exit_codes_in_the_docstring_are_those_of_the_classes() -> None:
    for name, (_, code) in documented_tree().items():
        if name != "AnvilError":
            assert getattr(errors, name).exit_code == code, name


def test_exit_codes_are_the_documented_ones() -> None:
    assert [code.value for code in ExitCode] == [0, 1, 2, 3, 5, 130]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)
def test_every_error_has_a_docstring(error: type[AnvilError]) -> None:
    assert vars(error).get("__doc__")


def test_a_message_has_its_place_first_and_its_hint_last() -> None:
    error = AnvilError("it is wrong", where="a.jsonl:3", value="x", hint="do that")
    assert str(error) == "a.jsonl:3: it is wrong (got 'x')\nhint: do that"
    assert str(AnvilError("it is wrong")) == "it is wrong"


def test_many_bad_rows_are_one_error_that_shows_twenty() -> None:
    error = InputErrors([InputError("bad", where=f"a:{number}") for number in range(25)])
    assert str(error).startswith("25 bad rows\na:0: bad\n")
    assert str(error).endswith("... and 5 more")


def test_a_shown_value_is_short_and_printable_anywhere() -> None:
    assert shorten("x" * 500) == "'" + "x" * 78 + "…"
    assert shorten("\x1b[31m\ud800") == r"'\x1b[31m\ud800'"
    shorten({"a": "\ud800"}).encode()
