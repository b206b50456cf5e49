"""Who imports whom, and what an import costs."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import platformdirs
import pytest
import pytest_socket

import anvil_local

PACKAGE = Path(anvil_local.__file__).parent

# A module imports from lower rows only; a package is one module here. Imports inside functions count too.
LAYERS = (
    ("pytest_plugin", "ragas"),
    ("cli",),
    ("comparison", "correction", "distributed", "shards", "stability"),
    ("bundling", "config", "replay"),
    ("explanation", "labels", "runner", "selfcheck"),
    ("judge_gates",),
    ("assess", "cards"),
    ("cache", "calibration", "decompose", "padding", "planning", "reports", "voting"),
    ("judge",),
    ("engine", "gates", "grammar", "models"),
    ("gguf",),
    ("lists", "metrics", "scoring", "windows"),
    ("coreference",),
    ("language", "probes", "prompts", "samples", "stats"),
    ("paired", "records"),
    ("packages",),
    ("errors", "_version"),
)
ROW = {name: number for number, names in enumerate(LAYERS) for name in names}

HEAVY = ("jinja2", "llama_cpp", "numpy", "outlines", "outlines_core", "pandas", "pyarrow", "ray", "sentencex")
ONLY = {
    "llama_cpp": "engine",
    "outlines": "grammar",
    "outlines_core": "grammar",
    "ray": "distributed",
    "sentencex": "language",
}


def files() -> dict[str, ast.Module]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


FILES = files()


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def nodes(tree: ast.AST, *, inside_functions: bool, for_types: bool) -> Iterator[ast.AST]:
    children = list(ast.iter_child_nodes(tree))
    if is_type_checking(tree) and not for_types:
        assert isinstance(tree, ast.If)
        children = list(tree.orelse)
    for node in children:
        if inside_functions or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            yield from nodes(node, inside_functions=inside_functions, for_types=for_types)


def imports(name: str, *, inside_functions: bool = True, for_types: bool = True) -> set[str]:
    """The dotted names that a module imports, submodules named apart where the package has them."""
    found: set[str] = set()
    for node in nodes(FILES[name], inside_functions=inside_functions, for_types=for_types):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: relative import"
            assert node.module is not None
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                found.add(submodule if submodule in FILES else node.module)
    return found


def component(name: str) -> str:
    """`anvil_local.samples.rows` belongs to `samples`."""
    return name.split(".")[1] if "." in name else ""


def test_every_module_has_its_row() -> None:
    assert {component(name) for name in FILES} - {""} == set(ROW)


@pytest.mark.parametrize("name", [name for name in FILES if name != "anvil_local"])
def test_imports_point_down(name: str) -> None:
    here = component(name)
    for other in imports(name):
        if other.split(".")[0] != "anvil_local":
            continue
        assert other != "anvil_local", f"{name} imports the public surface"
        there = component(other)
        assert there == here or ROW[there] > ROW[here], f"{name} imports {other}"


def test_no_module_level_import_goes_in_a_circle() -> None:
    graph = {
        name: {other for other in imports(name, inside_functions=False, for_types=False) if other in FILES}
        for name in FILES
    }
    try:
        order = list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(f"import cycle: {error.args[1]}")
    assert set(order) == set(FILES)


def test_the_test_sees_cycles_and_imports_in_functions_and_for_types() -> None:
    code = (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numpy\nelse:\n    import json\n"
        "def f():\n    import jinja2\nclass C:\n    import pandas\n"
    )
    tree = ast.parse(code)
    FILES["anvil_local.sample_for_this_test"] = tree
    try:
        name = "anvil_local.sample_for_this_test"
        assert imports(name) == {"typing", "numpy", "json", "jinja2", "pandas"}
        assert imports(name, inside_functions=False, for_types=False) == {"typing", "json", "pandas"}
    finally:
        del FILES["anvil_local.sample_for_this_test"]


@pytest.mark.parametrize("name", FILES)
def test_heavy_libraries_are_imported_where_they_are_used_and_nowhere_else(name: str) -> None:
    on_top = imports(name, inside_functions=False, for_types=False)
    assert not {other.split(".")[0] for other in on_top} & set(HEAVY)
    for other in imports(name):
        library = other.split(".")[0]
        if library in ONLY:
            assert component(name) == ONLY[library], f"{name} imports {library}"


LOADED = f"import sys; print(*sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)"
RUN = (
    "from anvil_local.cli import main\n"
    "try:\n    main({arguments!r})\nexcept SystemExit as end:\n    assert not end.code\n"
)


def loaded_by(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{LOADED}"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.strip()


@pytest.mark.parametrize(
    "code",
    [
        "import anvil_local",
        "import anvil_local.cli",
        "import " + ", ".join(sorted(FILES)),
        "from anvil_local import *",
        RUN.format(arguments=["--version"]),
        RUN.format(arguments=["--help"]),
        RUN.format(arguments=["run", "--help"]),
        RUN.format(arguments=["models", "list"]),
    ],
    ids=["package", "cli", "modules", "star", "version", "help", "run help", "models list"],
)
def test_what_needs_no_model_loads_nothing_heavy(code: str) -> None:
    assert loaded_by(code) == ""


def test_the_package_alone_loads_not_even_its_own_parts() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, anvil_local; print(*sorted(m for m in sys.modules if 'anvil' in m))",
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == ["anvil_local", "anvil_local._version"]


def test_this_test_would_notice() -> None:
    assert loaded_by("import numpy") == "numpy"


# What conftest.py promises


def test_a_test_cannot_load_a_model_by_accident() -> None:
    from anvil_local.engine import Engine, EngineOptions

    with pytest.raises(AssertionError, match="mark it real_model"):
        Engine(Path("any.gguf"), options=EngineOptions())


def test_a_test_cannot_reach_the_network() -> None:
    import socket

    # pytest-socket warns before it raises, and warnings are errors here.
    with pytest.raises((pytest_socket.SocketBlockedError, UserWarning), match="A test tried to use socket"):
        socket.create_connection(("127.0.0.1", 9), timeout=1)


def test_a_test_sees_neither_settings_nor_the_home_of_the_developer() -> None:
    assert not [name for name in os.environ if name.startswith("ANVIL_")]
    assert os.environ["NO_COLOR"]
    home = Path.home()
    assert not list(home.iterdir())
    assert home in platformdirs.user_data_path("anvil-local").parents
    assert home in platformdirs.user_cache_path("anvil-local").parents
