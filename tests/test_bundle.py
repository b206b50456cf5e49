"""The bundle: the same bytes every time, nothing half-written, and nothing installed from a damaged one."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from anvil_local import bundling
from anvil_local.bundling import bundle, collect_wheels
from anvil_local.errors import AnvilError, InputError, ModelNotFound, UsageError
from anvil_local.models import ModelEntry, ResolvedModel


def make_wheel(folder: Path, name: str, licence: str = "MIT") -> Path:
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        text = f"Metadata-Version: 2.4\nName: {name}\nVersion: 1.0\nLicense-Expression: {licence}\n"
        archive.writestr(f"{name}-1.0.dist-info/METADATA", text)
    return path


@pytest.fixture
def wheels(tmp_path: Path) -> list[Path]:
    folder = tmp_path / "wheels"
    folder.mkdir()
    return [make_wheel(folder, name) for name in ("zebra", "anvil_local")]


@pytest.fixture(autouse=True)
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "small.gguf"
    path.write_bytes(b"GGUF weights")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    entry = ModelEntry(
        name="small", title="Small", file=path.name, sha256=digest, bytes=12, license="Apache-2.0"
    )
    monkeypatch.setattr(bundling, "resolve_model", lambda name, **_: ResolvedModel(entry=entry, path=path))
    return path


def members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        found = {}
        for member in tar:
            stream = tar.extractfile(member)
            assert stream is not None
            found[member.name] = stream.read()
    return found


def test_a_bundle_holds_what_an_installation_needs_with_checksums_of_all(
    wheels: list[Path], tmp_path: Path
) -> None:
    made = bundle(tmp_path / "out.tar", wheels=wheels)
    found = {name.removeprefix("anvil-bundle/"): data for name, data in members(made.path).items()}
    assert set(found) == {
        "LICENCES.txt",
        "PLATFORM",
        "SHA256SUMS",
        "bom.json",
        "install.sh",
        "models/small.gguf",
        "requirements.txt",
        "wheels/anvil_local-1.0-py3-none-any.whl",
        "wheels/zebra-1.0-py3-none-any.whl",
    }
    sums = dict(reversed(line.split("  ")) for line in found["SHA256SUMS"].decode().splitlines())
    assert sums == {
        name: hashlib.sha256(data).hexdigest() for name, data in found.items() if name != "SHA256SUMS"
    }
    assert (
        f"zebra==1.0 --hash=sha256:{sums['wheels/zebra-1.0-py3-none-any.whl']}"
        in found["requirements.txt"].decode()
    )
    bill = json.loads(found["bom.json"])
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    assert {part["name"] for part in bill["components"]} == {"anvil_local", "zebra", "small"}
    assert b"Apache-2.0" in found["LICENCES.txt"]


def test_the_same_inputs_give_the_same_bytes(wheels: list[Path], tmp_path: Path) -> None:
    one = bundle(tmp_path / "one.tar", wheels=wheels)
    two = bundle(tmp_path / "two.tar", wheels=wheels[::-1])
    assert one.sha256 == two.sha256
    assert one.path.read_bytes() == two.path.read_bytes()


def test_what_is_there_is_not_written_over(wheels: list[Path], tmp_path: Path) -> None:
    path = tmp_path / "out.tar"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(UsageError, match="there already"):
        bundle(path, wheels=wheels)
    assert path.read_text(encoding="utf-8") == "mine"


def test_a_disk_that_fills_up_leaves_nothing_half_written(
    wheels: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, members: object) -> None:
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bundling, "_write", full)
    (tmp_path / "out").mkdir()
    with pytest.raises(AnvilError, match="No space left"):
        bundle(tmp_path / "out" / "out.tar", wheels=wheels)
    assert list((tmp_path / "out").iterdir()) == []


def test_what_is_no_wheel_and_what_is_not_installed_are_refused(
    wheels: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken-1.0-py3-none-any.whl"
    broken.write_bytes(b"no zip")
    with pytest.raises(InputError, match="not a wheel"):
        bundle(tmp_path / "a.tar", wheels=[*wheels, broken])

    def missing(name: str, **_: object) -> ResolvedModel:
        raise ModelNotFound("not installed", value=name)

    monkeypatch.setattr(bundling, "resolve_model", missing)
    with pytest.raises(ModelNotFound):
        bundle(tmp_path / "a.tar", wheels=wheels, models=["small"])
    assert not (tmp_path / "a.tar").exists()


def test_a_package_that_is_no_checkout_asks_for_its_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundling, "__file__", str(tmp_path / "a" / "b" / "c" / "__init__.py"))
    with pytest.raises(UsageError, match="--package"):
        collect_wheels(tmp_path, places=[])


# install.sh


def unpack(path: Path, into: Path, change: Callable[[str, bytes], bytes] = lambda _, data: data) -> Path:
    into.mkdir()
    for name, data in members(path).items():
        target = into / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(change(name, data))
    return into / "anvil-bundle"


def install(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    home = folder.parent / "home"
    home.mkdir(exist_ok=True)
    return subprocess.run(
        ["sh", folder / "install.sh"],
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_one_changed_byte_anywhere_stops_the_installation_before_it_begins(
    wheels: list[Path], tmp_path: Path
) -> None:
    made = bundle(tmp_path / "out.tar", wheels=wheels)
    names = [name for name in members(made.path) if not name.endswith(("install.sh", "SHA256SUMS"))]
    assert len(names) == 7
    for number, changed in enumerate(names):

        def flip(name: str, data: bytes, changed: str = changed) -> bytes:
            return data[:-1] + bytes([data[-1] ^ 1]) if name == changed else data

        folder = unpack(made.path, tmp_path / str(number), flip)
        done = install(folder)
        assert done.returncode == 2, changed
        assert "nothing was installed" in done.stderr
        assert list((folder.parent / "home").iterdir()) == []


def test_another_python_is_refused_before_anything_is_installed(wheels: list[Path], tmp_path: Path) -> None:
    made = bundle(tmp_path / "out.tar", wheels=wheels)
    folder = unpack(made.path, tmp_path / "here")
    (folder / "python").write_text("#!/bin/sh\necho linux x86_64 cp27\n", encoding="utf-8")
    (folder / "python").chmod(0o755)
    done = install(folder, PYTHON=str(folder / "python"))
    assert done.returncode == 2
    assert "cp27: nothing was installed" in done.stderr
    assert list((folder.parent / "home").iterdir()) == []


def test_members_have_no_time_and_no_owner(wheels: list[Path], tmp_path: Path) -> None:
    made = bundle(tmp_path / "out.tar", wheels=wheels)
    with tarfile.open(fileobj=io.BytesIO(made.path.read_bytes())) as tar:
        assert {(member.mtime, member.uid, member.gid, member.uname) for member in tar} == {(0, 0, 0, "")}
