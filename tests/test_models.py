from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anvil_local import models
from anvil_local.errors import AdapterInvalid, ExitCode, ModelError, ModelFileInvalid, ModelNotFound
from anvil_local.gguf import check_gguf, requantise
from anvil_local.models import (
    DEFAULT_MODEL,
    add_model,
    bundled_folder,
    find_model,
    install_model,
    load_manifest,
    model_path,
    models_folder,
    resolve_model,
    verify_model,
)

needs_pip = pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="this environment has no pip")


def gguf(*, name: str = "Tiny", values: dict[str, str | int] | None = None, tensors: int = 2) -> bytes:
    """A GGUF file of F32 tensors with 8 weights each, and a small vocabulary."""
    pairs: dict[str, str | int | list[str]] = {
        "general.architecture": "llama",
        "general.type": "model",
        "general.name": name,
        "llama.context_length": 2048,
        "tokenizer.ggml.tokens": ["a", "b", "0", "1"],
    }
    pairs |= values or {}

    def string(text: str) -> bytes:
        data = text.encode()
        return struct.pack("<Q", len(data)) + data

    out = b"GGUF" + struct.pack("<IQQ", 3, tensors, len(pairs))
    for key, value in pairs.items():
        out += string(key)
        if isinstance(value, str):
            out += struct.pack("<I", 8) + string(value)
        elif isinstance(value, int):
            out += struct.pack("<II", 4, value)
        else:
            out += struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(string, value))
    for number in range(tensors):
        out += string(f"blk.{number}.weight") + struct.pack("<IQIQ", 1, 8, 0, 32 * number)
    out += b"\0" * (-len(out) % 32)
    return out + bytes(range(32)) * tensors


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def write_wheel(folder: Path, name: str, members: dict[str, bytes], version: str = "1.0") -> Path:
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    path = folder / f"{module}-{version}-py3-none-any.whl"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for member, data in members.items():
            wheel.writestr(member, data)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


def write_own_manifest(home: Path, *, weights: bytes, packages: dict[str, str], sha: str = "") -> None:
    home.mkdir(parents=True, exist_ok=True)
    lines = [
        "[models.tiny]",
        'title = "Tiny"',
        'file = "tiny.gguf"',
        f'sha256 = "{sha or sha256(weights)}"',
        f"bytes = {len(weights)}",
        'license = "Apache-2.0"',
    ]
    for package, member in packages.items():
        lines += [
            "[[models.tiny.packages]]",
            f'name = "{package}"',
            'version = "1.0"',
            f'member = "{member}"',
        ]
    (home / "models.toml").write_text("\n".join(lines) + "\n")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The models folder, empty."""
    return tmp_path / "models"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes all its packages from."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    return folder


@pytest.fixture
def tiny(home: Path, index: Path) -> bytes:
    """An installable model, `tiny`, in two parts; its bytes."""
    weights = gguf()
    write_wheel(index, "tiny-part1", {"tiny/a.part0": weights[:100]})
    write_wheel(index, "tiny-part2", {"tiny/b.part1": weights[100:]})
    write_own_manifest(
        home, weights=weights, packages={"tiny-part1": "tiny/a.part0", "tiny-part2": "tiny/b.part1"}
    )
    return weights


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A bundled manifest with one model, `judge`, that has a support adapter."""
    folder = tmp_path / "bundle"
    (folder / "adapters").mkdir(parents=True)
    adapter = folder / "adapters" / "judge-support.gguf"
    adapter.write_bytes(b"GGUF adapter")
    (folder / "manifest.toml").write_text(
        f"""
        [models.judge]
        title = "A judge"
        file = "judge.gguf"
        sha256 = "{sha256(gguf())}"
        bytes = {len(gguf())}
        license = "Apache-2.0"
        prompts = "smollm2"
        packages = [{{ name = "judge", version = "1.0", member = "judge.gguf" }}]
        [models.judge.adapters.support]
        file = "adapters/judge-support.gguf"
        sha256 = "{sha256(adapter.read_bytes())}"
        prompt = "support/1"
        threshold = 0.25
        """
    )
    monkeypatch.setattr(models, "bundled_folder", lambda: folder)
    return folder


def left_in(home: Path) -> set[str]:
    """What lies in the models folder, without lock files and stamps."""
    return {path.name for path in home.iterdir() if path.suffix != ".lock" and path.name != ".stamps"}


# --- the bundled manifest


def test_the_default_model_is_installable_and_freely_licensed(home: Path) -> None:
    entry = load_manifest(folder=home)[DEFAULT_MODEL]
    assert entry.packages
    assert entry.license == "Apache-2.0"


def test_every_bundled_model_names_a_licence_a_source_and_pinned_packages(home: Path) -> None:
    for entry in load_manifest(folder=home).values():
        assert entry.license, entry.name
        assert entry.source, entry.name
        assert entry.packages, entry.name
        assert entry.origin == "bundled"


def test_every_bundled_adapter_is_there_and_is_the_pinned_file(home: Path) -> None:
    for entry in load_manifest(folder=home).values():
        for adapter in entry.adapters.values():
            data = (bundled_folder() / adapter.file).read_bytes()
            assert sha256(data) == adapter.sha256, adapter.file


def test_no_weights_are_bundled() -> None:
    large = [path for path in bundled_folder().rglob("*") if path.is_file() and path.stat().st_size > 50e6]
    assert large == []


def test_the_models_folder_is_the_one_given_or_the_users_data_folder(tmp_path: Path) -> None:
    assert models_folder(tmp_path) == tmp_path
    assert models_folder("~/weights") == Path.home() / "weights"
    assert models_folder().parts[-2:] == ("anvil-local", "models")
    assert models_folder("") == models_folder()


# --- installing


@needs_pip
def test_install_joins_the_parts_verifies_them_and_a_second_install_downloads_nothing(
    home: Path, index: Path, tiny: bytes
) -> None:
    said: list[str] = []
    path = install_model("tiny", folder=home, say=said.append)
    assert path == home / "tiny.gguf" == model_path(find_model("tiny", folder=home), folder=home)
    assert path.read_bytes() == tiny
    assert left_in(home) == {"tiny.gguf", "models.toml"}
    assert [line for line in said if "downloading" in line] == [
        "tiny: downloading tiny-part1 1.0 with pip, part 1 of 2",
        "tiny: downloading tiny-part2 1.0 with pip, part 2 of 2",
    ]

    shutil.rmtree(index)
    said.clear()
    assert install_model("tiny", folder=home, say=said.append) == path
    assert said == [f"tiny: already installed, checksum verified: {path}"]
    assert resolve_model("tiny", folder=home).path == path
    assert verify_model("tiny", folder=home).path == path


@needs_pip
@pytest.mark.parametrize("served", [gguf(name="Tony"), gguf() + b"more", gguf()[:-1]])
def test_other_bytes_than_the_pinned_ones_are_not_installed(home: Path, index: Path, served: bytes) -> None:
    write_wheel(index, "tiny", {"tiny.gguf": served})
    write_own_manifest(home, weights=gguf(), packages={"tiny": "tiny.gguf"})
    with pytest.raises(ModelFileInvalid, match="nothing was installed") as caught:
        install_model("tiny", folder=home)
    assert caught.value.where == "tiny==1.0"
    assert left_in(home) == {"models.toml"}


@needs_pip
def test_a_wheel_without_the_member_is_refused(home: Path, index: Path) -> None:
    write_wheel(index, "tiny", {"other.gguf": gguf()})
    write_own_manifest(home, weights=gguf(), packages={"tiny": "tiny.gguf"})
    with pytest.raises(ModelFileInvalid, match="does not hold the model file"):
        install_model("tiny", folder=home)
    assert left_in(home) == {"models.toml"}


@needs_pip
def test_a_damaged_wheel_is_refused(home: Path, index: Path) -> None:
    wheel = write_wheel(index, "tiny", {"tiny.gguf": gguf()})
    data = bytearray(wheel.read_bytes())
    data[60:90] = b"\xff" * 30  # inside the compressed member
    wheel.write_bytes(data)
    write_own_manifest(home, weights=gguf(), packages={"tiny": "tiny.gguf"})
    with pytest.raises(ModelFileInvalid, match="damaged"):
        install_model("tiny", folder=home)
    assert left_in(home) == {"models.toml"}


@needs_pip
def test_a_failing_pip_is_quoted_with_the_way_out(home: Path, index: Path) -> None:
    write_own_manifest(home, weights=gguf(), packages={"not-there": "tiny.gguf"})
    with pytest.raises(ModelError, match="could not download not-there") as caught:
        install_model("tiny", folder=home)
    assert "No matching distribution found for not-there==1.0" in str(caught.value)
    assert "PIP_INDEX_URL" in (caught.value.hint or "")
    assert caught.value.exit_code == ExitCode.USAGE
    assert left_in(home) == {"models.toml"}


def test_a_python_without_pip_is_told_what_to_do(
    home: Path, tiny: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match="this Python has none") as caught:
        install_model("tiny", folder=home)
    assert "uv pip install pip" in (caught.value.hint or "")
    assert "tiny-part1==1.0" in (caught.value.hint or "")
    assert left_in(home) == {"models.toml"}


@needs_pip
def test_a_failed_install_leaves_the_old_file_and_a_good_one_replaces_it(
    home: Path, index: Path, tiny: bytes
) -> None:
    (home / "tiny.gguf").write_bytes(b"half of it")
    (home / ".tiny.gguf.install-killed").mkdir()
    away = index.with_name("away")
    index.rename(away)
    with pytest.raises(ModelError):
        install_model("tiny", folder=home)
    assert (home / "tiny.gguf").read_bytes() == b"half of it"

    away.rename(index)
    install_model("tiny", folder=home)
    assert (home / "tiny.gguf").read_bytes() == tiny
    assert left_in(home) == {"tiny.gguf", "models.toml"}


@needs_pip
def test_two_processes_that_install_the_same_model_download_it_once(home: Path, tiny: bytes) -> None:
    code = "import sys, anvil_local.models as m; m.install_model('tiny', folder=sys.argv[1], say=print)"
    root = Path(models.__file__).parents[1]
    command = [sys.executable, "-c", code, str(home)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) for _ in range(2)]
    said = [process.communicate(timeout=120)[0] for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert "".join(said).count("tiny-part1 1.0 with pip") == 1
    assert (home / "tiny.gguf").read_bytes() == tiny


def test_too_little_disk_is_said_before_anything_is_downloaded(
    home: Path, tiny: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(100, 99, 1))
    with pytest.raises(ModelError, match="MB are free") as caught:
        install_model("tiny", folder=home)
    assert "ANVIL_MODELS_DIR" in (caught.value.hint or "")


def test_a_models_folder_that_cannot_be_made_is_an_error_with_a_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="cannot be made") as caught:
        install_model(DEFAULT_MODEL, folder=tmp_path / "file" / "models")
    assert "ANVIL_MODELS_DIR" in (caught.value.hint or "")


def test_a_file_that_was_brought_cannot_be_installed(home: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.gguf").write_bytes(gguf())
    add_model(tmp_path / "mine.gguf", folder=home)
    with pytest.raises(ModelError, match="a file that you brought"):
        install_model("mine", folder=home)


# --- resolving


def test_a_typo_gets_a_suggestion_and_the_list(home: Path) -> None:
    with pytest.raises(ModelNotFound, match="unknown model") as caught:
        resolve_model("smolm2-135m", folder=home)
    assert "did you mean smollm2-135m?" in (caught.value.hint or "")
    assert "gemma-3-270m" in (caught.value.hint or "")
    for call in (find_model, install_model, verify_model):
        with pytest.raises(ModelNotFound, match="unknown model"):
            call("smolm2-135m", folder=home)


def test_a_known_model_that_is_not_installed_gets_the_command(home: Path) -> None:
    for call in (resolve_model, verify_model):
        with pytest.raises(ModelNotFound, match="not installed") as caught:
            call(DEFAULT_MODEL, folder=home)
        assert caught.value.hint == f"anvil-local models install {DEFAULT_MODEL}"
    assert not home.exists()


def test_no_name_is_the_default_model(home: Path) -> None:
    with pytest.raises(ModelNotFound, match=f"{DEFAULT_MODEL} is not installed"):
        resolve_model(folder=home)


@pytest.mark.parametrize("missing", ["missing.gguf", "./missing", "folder/missing"])
def test_a_missing_file_is_not_taken_for_a_name(home: Path, missing: str) -> None:
    with pytest.raises(ModelNotFound, match="no such file"):
        resolve_model(missing, folder=home)


def test_a_folder_is_not_a_model(home: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match="this is a folder"):
        resolve_model(tmp_path, folder=home)


def test_an_unregistered_file_is_described_by_its_header(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "Some Model (v2).Q8_0.gguf"
    path.write_bytes(gguf(name="Some", values={"general.license": "mit"}))
    found = resolve_model(path, folder=home)
    assert found.path == path
    assert found.adapters == {}
    assert found.entry.name == "some-model-v2-.q8_0"
    assert (found.entry.title, found.entry.license, found.entry.window) == ("Some", "mit", 2048)
    assert (found.entry.origin, found.entry.prompts) == ("path", "auto")
    assert found.entry.sha256 == sha256(path.read_bytes())


def test_an_unregistered_file_with_known_bytes_is_the_known_model(
    home: Path, tmp_path: Path, bundle: Path
) -> None:
    path = tmp_path / "renamed.gguf"
    path.write_bytes(gguf())
    found = resolve_model(str(path), folder=home)
    assert (found.entry.name, found.entry.prompts, found.path) == ("judge", "smollm2", path)
    assert found.adapters == {"support": bundle / "adapters" / "judge-support.gguf"}


def test_a_known_file_copied_into_the_models_folder_counts_as_installed(home: Path, bundle: Path) -> None:
    home.mkdir()
    (home / "judge.gguf").write_bytes(gguf())
    found = resolve_model("judge", folder=home)
    assert found.adapters == {"support": bundle / "adapters" / "judge-support.gguf"}
    assert verify_model("judge", folder=home) == found


@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_an_adapter_that_is_not_the_pinned_file_is_refused(home: Path, bundle: Path, damage: str) -> None:
    home.mkdir()
    (home / "judge.gguf").write_bytes(gguf())
    adapter = bundle / "adapters" / "judge-support.gguf"
    if damage == "missing":
        adapter.unlink()
    else:
        adapter.write_bytes(b"GGUF another")
    for call in (resolve_model, verify_model):
        with pytest.raises(AdapterInvalid, match="the support adapter of judge"):
            call("judge", folder=home)


@pytest.mark.parametrize("data", [gguf(name="Tony"), gguf()[:-5]])
def test_changed_weights_are_refused(home: Path, bundle: Path, data: bytes) -> None:
    home.mkdir()
    (home / "judge.gguf").write_bytes(gguf())
    resolve_model("judge", folder=home)
    (home / "judge.gguf").write_bytes(data)
    for call in (resolve_model, verify_model):
        with pytest.raises(ModelFileInvalid, match="not the pinned file") as caught:
            call("judge", folder=home)
        assert "anvil-local models install judge" in (caught.value.hint or "")


# --- stamps


@pytest.fixture
def installed(home: Path, bundle: Path) -> Path:
    home.mkdir()
    path = home / "judge.gguf"
    path.write_bytes(gguf())
    resolve_model("judge", folder=home)
    return path


def no_hashing(*args: object) -> None:
    raise AssertionError("the file was hashed")


def test_an_untouched_file_is_not_hashed_again(
    home: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hashlib, "file_digest", no_hashing)
    assert resolve_model("judge", folder=home).path == installed
    with pytest.raises(AssertionError, match="was hashed"):
        verify_model("judge", folder=home)


def test_a_change_that_keeps_size_and_modification_time_is_noticed(home: Path, installed: Path) -> None:
    before = installed.stat()
    installed.write_bytes(gguf(name="Tony"))
    os.utime(installed, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert installed.stat().st_size == before.st_size
    with pytest.raises(ModelFileInvalid):
        resolve_model("judge", folder=home)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"sha256": 3}', '{"sha256": "zz"}'])
def test_a_broken_stamp_is_ignored(home: Path, installed: Path, text: str) -> None:
    for stamp in (home / ".stamps").iterdir():
        stamp.write_text(text)
    assert resolve_model("judge", folder=home).path == installed


def test_stamps_that_cannot_be_written_only_cost_time(home: Path, installed: Path) -> None:
    shutil.rmtree(home / ".stamps")
    (home / ".stamps").write_text("in the way")
    assert resolve_model("judge", folder=home).path == installed


def test_nothing_is_written_beside_a_file_that_was_brought(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "mine.gguf").write_bytes(gguf())
    resolve_model(folder / "mine.gguf", folder=home)
    add_model(folder / "mine.gguf", folder=home)
    assert os.listdir(folder) == ["mine.gguf"]


# --- adding


def test_add_pins_a_file_and_it_can_be_used_by_name(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "My Model.gguf"
    path.write_bytes(gguf(name='a "quoted" \\ name\n\x7f\x01 \N{GRINNING FACE} Größe'))
    entry = add_model(path, folder=home, prompts="smollm2")
    assert (entry.name, entry.file, entry.prompts) == ("my-model", str(path), "smollm2")
    assert (entry.sha256, entry.bytes) == (sha256(path.read_bytes()), path.stat().st_size)
    assert load_manifest(folder=home)["my-model"] == entry
    assert resolve_model("my-model", folder=home).path == path
    assert verify_model("my-model", folder=home).entry == entry
    assert add_model(path, folder=home) == entry


def test_adding_keeps_the_other_entries(home: Path, tmp_path: Path, tiny: bytes) -> None:
    before = load_manifest(folder=home)["tiny"]
    for name in ("one", "two"):
        (tmp_path / f"{name}.gguf").write_bytes(gguf(name=name))
        add_model(tmp_path / f"{name}.gguf", folder=home)
    after = load_manifest(folder=home)
    assert list(after)[-3:] == ["tiny", "one", "two"]
    assert after["tiny"] == before


def test_an_added_file_that_changes_is_refused_until_it_is_added_again(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.gguf"
    path.write_bytes(gguf())
    add_model(path, folder=home)
    path.write_bytes(gguf(name="Tony"))
    with pytest.raises(ModelFileInvalid) as caught:
        resolve_model("mine", folder=home)
    assert f"anvil-local models add {path} --name mine" in (caught.value.hint or "")
    add_model(path, folder=home)
    assert resolve_model("mine", folder=home).entry.sha256 == sha256(path.read_bytes())


def test_an_added_file_that_is_gone_is_an_error_and_its_name_can_move(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "mine.gguf"
    path.write_bytes(gguf())
    add_model(path, folder=home)
    moved = path.rename(tmp_path / "moved.gguf")
    with pytest.raises(ModelNotFound, match="is gone"):
        resolve_model("mine", folder=home)
    add_model(moved, name="mine", folder=home)
    assert resolve_model("mine", folder=home).path == moved


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("judge", "belongs to an installable model"),
        ("taken", "that name is taken"),
        ("Bad Name", "lower-case letters"),
        ("../up", "lower-case letters"),
    ],
)
def test_names_that_cannot_be_given(
    home: Path, tmp_path: Path, bundle: Path, name: str, message: str
) -> None:
    (tmp_path / "taken.gguf").write_bytes(gguf())
    add_model(tmp_path / "taken.gguf", folder=home)
    (tmp_path / "mine.gguf").write_bytes(gguf(name="Tony"))
    with pytest.raises(ModelError, match=message):
        add_model(tmp_path / "mine.gguf", name=name, folder=home)
    assert list(load_manifest(folder=home)) == ["judge", "taken"]


def test_a_known_file_added_under_another_name_is_the_same_judge(
    home: Path, tmp_path: Path, bundle: Path
) -> None:
    (tmp_path / "mine.gguf").write_bytes(gguf())
    entry = add_model(tmp_path / "mine.gguf", folder=home)
    assert (entry.prompts, entry.license) == ("smollm2", "Apache-2.0")
    found = resolve_model("mine", folder=home)
    assert found.adapters.keys() == found.entry.adapters.keys() == {"support"}
    assert found.entry.adapters["support"].threshold == 0.25
    # An adapter is of no use with other prompts than those it was trained with.
    add_model(tmp_path / "mine.gguf", name="plain", prompts="plain", folder=home)
    assert resolve_model("plain", folder=home).adapters == {}


def test_adding_a_known_file_on_the_command_line_keeps_its_adapters(
    home: Path, tmp_path: Path, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from anvil_local.cli.app import main

    (tmp_path / "mine.gguf").write_bytes(gguf())
    with pytest.raises(SystemExit) as exit_:
        main(["models", "add", str(tmp_path / "mine.gguf"), "--models-dir", str(home)])
    assert exit_.value.code == 0
    assert resolve_model("mine", folder=home).adapters.keys() == {"support"}


def test_the_published_file_of_a_known_model_is_not_added_without_its_adapters(
    home: Path, published: bytes, tmp_path: Path
) -> None:
    with pytest.raises(ModelError, match="this is tiny as it was published") as caught:
        add_model(tmp_path / "q4", folder=home)
    assert "models install tiny" in (caught.value.hint or "")
    assert add_model(tmp_path / "q4", folder=home, prompts="plain").prompts == "plain"


def test_a_file_that_is_not_there_cannot_be_added(home: Path) -> None:
    with pytest.raises(ModelNotFound, match="no such file"):
        add_model("nowhere.gguf", folder=home)
    assert not home.exists()


# --- the user's models.toml


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[models", "cannot be read"),
        ("\0", "cannot be read"),
        ("[model.x]", "unknown key"),
        ("[models.x]\nfile = 'x.gguf'", "models.x: title: Field required"),
        ("[models.x]\ncolour = 'red'", "models.x"),
        ("models.x = 3", "models.x"),
        (f"[models.{DEFAULT_MODEL}]", f"models.{DEFAULT_MODEL}"),
    ],
)
def test_a_broken_models_toml_is_named_with_the_field(home: Path, text: str, message: str) -> None:
    home.mkdir()
    (home / "models.toml").write_text(text)
    with pytest.raises(ModelError, match=message) as caught:
        load_manifest(folder=home)
    assert caught.value.where == str(home / "models.toml")


def test_a_bundled_name_cannot_be_taken_over(home: Path, tiny: bytes) -> None:
    text = (home / "models.toml").read_text().replace("models.tiny", f"models.{DEFAULT_MODEL}")
    (home / "models.toml").write_text(text)
    with pytest.raises(ModelError, match=f"the name {DEFAULT_MODEL} belongs to a bundled model"):
        load_manifest(folder=home)


def test_own_adapters_are_found_relative_to_the_models_folder(home: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.gguf").write_bytes(gguf())
    add_model(tmp_path / "mine.gguf", folder=home)
    (home / "goal.gguf").write_bytes(b"GGUF goal")
    with (home / "models.toml").open("a") as own:
        own.write(f'[models.mine.adapters.goal]\nfile = "goal.gguf"\nsha256 = "{sha256(b"GGUF goal")}"\n')
        own.write('prompt = "goal/1"\n')
    assert resolve_model("mine", folder=home).adapters == {"goal": home / "goal.gguf"}
    (tmp_path / "two.gguf").write_bytes(gguf(name="Tony"))
    add_model(tmp_path / "two.gguf", folder=home)
    assert resolve_model("mine", folder=home).adapters == {"goal": home / "goal.gguf"}


# --- GGUF headers


def test_the_header_of_a_whole_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(gguf())
    header = check_gguf(path)
    assert (header.architecture, header.title, header.context_length) == ("llama", "Tiny", 2048)
    assert header.tensors == 2


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not a GGUF file"),
        (b"PK\3\4", "not a GGUF file"),
        (b"<!DOCTYPE html>", "not a GGUF file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS pointer"),
        (b"GGUF\3\0\0\0", "truncated"),
        (b"GGUF\0\0\0\3" + b"\0" * 16, "big-endian"),
        (b"GGUF\1\0\0\0" + b"\0" * 16, "version 1"),
        (gguf(values={"general.type": "adapter"}), "a LoRA adapter"),
        (gguf(values={"general.type": "mmproj"}), "not a text model"),
        (gguf(values={"general.architecture": "clip"}), "not a text model"),
        (gguf(values={"split.count": 3}), "one of 3 parts"),
        (gguf(tensors=0), "no weights"),
    ],
)
def test_what_is_not_a_whole_text_model_is_refused(
    home: Path, tmp_path: Path, data: bytes, message: str
) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(data)
    for call in (resolve_model, add_model):
        with pytest.raises(ModelFileInvalid, match=message) as caught:
            call(path, folder=home)
        assert caught.value.where == str(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(length=st.integers(0, len(gguf()) - 1))
def test_a_file_cut_anywhere_is_refused(tmp_path: Path, length: int) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(gguf()[:length])
    with pytest.raises(ModelFileInvalid):
        check_gguf(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(place=st.integers(0, len(gguf()) - 1), junk=st.binary(min_size=1, max_size=12))
def test_junk_anywhere_is_read_or_refused_and_never_crashes(tmp_path: Path, place: int, junk: bytes) -> None:
    path = tmp_path / "x.gguf"
    data = gguf()
    path.write_bytes(data[:place] + junk + data[place + len(junk) :])
    with contextlib.suppress(ModelFileInvalid):
        check_gguf(path)


# ---------------------------------------------------------------------------------------------
# Weights in another format


def q4_1(blocks: list[tuple[float, float, list[int]]], *, alignment: int = 32) -> bytes:
    """A GGUF file: an F32 tensor, and a Q4_1 one of these blocks (scale, minimum, 32 values below 16)."""

    def string(text: str) -> bytes:
        return struct.pack("<Q", len(text)) + text.encode()

    weights = b""
    for scale, low, values in blocks:
        weights += struct.pack("<ee", scale, low)
        weights += bytes(a | b << 4 for a, b in zip(values[:16], values[16:], strict=True))
    out = b"GGUF" + struct.pack("<IQQ", 3, 2, 3)
    out += string("general.architecture") + struct.pack("<I", 8) + string("llama")
    out += string("general.file_type") + struct.pack("<II", 4, 3)
    out += string("general.alignment") + struct.pack("<II", 4, alignment)
    out += string("norm") + struct.pack("<IQIQ", 1, 3, 0, 0)
    out += string("weights") + struct.pack("<IQQIQ", 2, 32, len(blocks), 3, alignment)
    out += b"\0" * (-len(out) % alignment)
    return out + struct.pack("<3f", 1.5, -2.5, 3.5).ljust(alignment, b"\0") + weights


def blocks_of(data: bytes, count: int) -> list[tuple[float, list[int]]]:
    """The Q8_0 blocks at the start of `data`."""
    return [
        (struct.unpack_from("<e", data, 34 * n)[0], list(struct.unpack_from("<32b", data, 34 * n + 2)))
        for n in range(count)
    ]


@pytest.mark.parametrize("alignment", [32, 64])
def test_q4_1_weights_become_q8_0_and_the_rest_stays(tmp_path: Path, alignment: int) -> None:
    ramp = [*range(16), *range(15, -1, -1)]
    blocks = [(0.5, -3.0, ramp), (0.0, 0.0, ramp), (0.25, 1.0, [15] * 32)]
    source, target = tmp_path / "a.gguf", tmp_path / "b.gguf"
    source.write_bytes(q4_1(blocks, alignment=alignment))

    requantise(source, target)

    assert check_gguf(target).tensors == 2
    data = target.read_bytes()
    assert len(data) % alignment == 0
    start = source.read_bytes().index(struct.pack("<3f", 1.5, -2.5, 3.5))
    assert data[:start].count(struct.pack("<II", 4, 7)) == 1  # general.file_type is Q8_0
    assert struct.unpack_from("<3f", data, start) == (1.5, -2.5, 3.5)
    found = blocks_of(data[start + alignment :], 3)
    for (scale, low, values), (new_scale, new_values) in zip(blocks, found, strict=True):
        wanted = [scale * value + low for value in values]
        largest = max(map(abs, wanted))
        for weight, value in zip(wanted, new_values, strict=True):
            assert weight == pytest.approx(new_scale * value, abs=largest / 254 + largest / 2000)


def test_halves_are_rounded_away_from_zero_as_llama_cpp_does(tmp_path: Path) -> None:
    # The scale of 127 * 0.0625 is 0.0625, so 0.03125 lies halfway between 0 and 1.
    values = [15, 0, *[8] * 30]
    source, target = tmp_path / "a.gguf", tmp_path / "b.gguf"
    low, scale = -7.9375, 15.875 / 15
    source.write_bytes(q4_1([(scale, low, values)]))

    requantise(source, target)

    half = np.float32(np.float16(scale))
    exact = np.float32(values) * half + np.float32(np.float16(low))
    step = np.abs(exact).max() / np.float32(127)
    scaled = exact * (np.float32(1) / step)
    wanted = np.where(scaled < 0, np.ceil(scaled - np.float32(0.5)), np.floor(scaled + np.float32(0.5)))
    ((_, found),) = blocks_of(target.read_bytes()[-64:], 1)
    assert found == wanted.astype(int).tolist()


def test_the_same_weights_give_the_same_bytes_each_time(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    blocks = [(*rng.normal(size=2), rng.integers(0, 16, 32).tolist()) for _ in range(50)]
    (tmp_path / "a.gguf").write_bytes(q4_1(blocks))

    for name in ("b", "c"):
        requantise(tmp_path / "a.gguf", tmp_path / name)

    assert (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (gguf(), "no Q4_1 weights"),
        (q4_1([(1.0, 0.0, [1] * 32)])[:-9], "truncated"),
        (b"GGML" * 9, "not a GGUF"),
    ],
)
def test_what_has_no_whole_q4_1_weights_is_not_requantised(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "a.gguf").write_bytes(data)

    with pytest.raises(ModelFileInvalid, match=message):
        requantise(tmp_path / "a.gguf", tmp_path / "b.gguf")


@pytest.fixture
def published(home: Path, index: Path, tmp_path: Path) -> bytes:
    """An installable model, `tiny`, whose package holds Q4_1 weights; these bytes."""
    weights = q4_1([(0.5, -3.0, list(range(16)) * 2)])
    (tmp_path / "q4").write_bytes(weights)
    requantise(tmp_path / "q4", tmp_path / "q8")
    write_wheel(index, "tiny-part1", {"tiny/a.gguf": weights})
    write_own_manifest(home, weights=(tmp_path / "q8").read_bytes(), packages={"tiny-part1": "tiny/a.gguf"})
    with (home / "models.toml").open("a") as file:
        file.write(f'[models.tiny.original]\nfile = "q4.gguf"\nsha256 = "{sha256(weights)}"\n')
        file.write(f"bytes = {len(weights)}\n")
    return weights


@needs_pip
def test_install_requantises_the_published_weights(home: Path, published: bytes, tmp_path: Path) -> None:
    said: list[str] = []

    path = install_model("tiny", folder=home, say=said.append)

    assert path.read_bytes() == (tmp_path / "q8").read_bytes()
    assert any("Q8_0" in line for line in said)
    assert verify_model("tiny", folder=home).path == path
    assert sorted(p.name for p in home.glob("*.gguf")) == ["tiny.gguf"]


def test_a_published_file_that_lies_there_is_used_without_a_download(
    home: Path, published: bytes, index: Path, tmp_path: Path
) -> None:
    shutil.rmtree(index)
    (home / "q4.gguf").write_bytes(published)

    assert install_model("tiny", folder=home).read_bytes() == (tmp_path / "q8").read_bytes()
    assert (home / "q4.gguf").read_bytes() == published


@needs_pip
def test_a_damaged_published_file_is_not_used(home: Path, published: bytes, tmp_path: Path) -> None:
    (home / "q4.gguf").write_bytes(published[:-1] + b"x")

    assert install_model("tiny", folder=home).read_bytes() == (tmp_path / "q8").read_bytes()


def test_weights_that_come_out_otherwise_than_pinned_are_not_installed(home: Path, published: bytes) -> None:
    text = (home / "models.toml").read_text()
    (home / "models.toml").write_text(text.replace(find_model("tiny", folder=home).sha256, "0" * 64))
    (home / "q4.gguf").write_bytes(published)

    with pytest.raises(ModelFileInvalid, match="other bytes than the pinned ones"):
        install_model("tiny", folder=home)

    assert [p.name for p in home.glob("*.gguf")] == ["q4.gguf"]


def test_the_published_file_of_a_known_model_gets_its_adapters(
    home: Path, tmp_path: Path, bundle: Path
) -> None:
    path = tmp_path / "published.gguf"
    path.write_bytes(gguf(name="Published"))
    with (bundle / "manifest.toml").open("a") as file:
        file.write(
            f'[models.judge.original]\nfile = "published.gguf"\nsha256 = "{sha256(path.read_bytes())}"\n'
        )
        file.write(f"bytes = {path.stat().st_size}\n")

    found = resolve_model(str(path), folder=home)

    assert found.adapters == {"support": bundle / "adapters" / "judge-support.gguf"}
    assert (found.entry.prompts, found.path) == ("smollm2", path)
