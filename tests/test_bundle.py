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
from anvil_local.cli import main
from anvil_local.errors import AnvilError, InputError, ModelNotFound, UsageError
from anvil_local.models import DEFAULT_MODEL, ModelEntry, ResolvedModel


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
        name=DEFAULT_MODEL, title="Small", file=path.name, sha256=digest, bytes=12, license="Apache-2.0"
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
        "MODELS",
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
    assert {part["name"] for part in bill["components"]} == {"anvil_local", "zebra", DEFAULT_MODEL}
    assert bill["components"][0]["purl"] == "pkg:pypi/anvil-local@1.0"
    assert found["MODELS"].decode() == f"{DEFAULT_MODEL}\n"
    assert b"Apache-2.0" in found["LICENCES.txt"]


def test_the_same_inputs_give_the_same_bytes(wheels: list[Path], tmp_path: Path) -> None:
    one = bundle(tmp_path / "one.tar", wheels=wheels)
    two = bundle(tmp_path / "two.tar", wheels=wheels[::-1])
    assert one.sha256 == two.sha256
    assert one.path.read_bytes() == two.path.read_bytes()


def test_a_model_named_twice_is_bundled_once(wheels: list[Path], tmp_path: Path) -> None:
    made = bundle(tmp_path / "out.tar", wheels=wheels, models=[DEFAULT_MODEL, DEFAULT_MODEL])
    bill = json.loads(members(made.path)["anvil-bundle/bom.json"])
    assert len({part["bom-ref"] for part in bill["components"]}) == len(bill["components"]) == 3


def test_a_path_with_a_known_models_bytes_is_not_bundled_under_its_own_name(
    wheels: list[Path], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="by their names"):
        bundle(tmp_path / "out.tar", wheels=wheels, models=["renamed.gguf"])
    assert not (tmp_path / "out.tar").exists()


def test_two_builds_of_one_wheel_are_not_chosen_between(tmp_path: Path) -> None:
    for build in ("native", "portable"):
        (tmp_path / build).mkdir()
        make_wheel(tmp_path / build, "llama_cpp_python", licence=build)
    into = tmp_path / "into"
    into.mkdir()
    with pytest.raises(UsageError, match="two builds") as caught:
        collect_wheels(into, places=[tmp_path], source=tmp_path)
    assert f"--wheels {tmp_path / 'portable'}" in (caught.value.hint or "")
    assert list(into.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_an_error_and_no_traceback(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["bundle", str(tmp_path / "nowhere" / "out.tar")])
    assert ended.value.code == 3
    said = capsys.readouterr().err
    assert "the bundle cannot be made: No such file or directory" in said
    assert "Traceback" not in said


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
        cwd=folder.parent,
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
    assert len(names) == 8
    for number, changed in enumerate(names):

        def flip(name: str, data: bytes, changed: str = changed) -> bytes:
            return data[:-1] + bytes([data[-1] ^ 1]) if name == changed else data

        folder = unpack(made.path, tmp_path / str(number), flip)
        done = install(folder)
        assert done.returncode == 2, changed
        assert "nothing was installed" in done.stderr
        assert list((folder.parent / "home").iterdir()) == []


@pytest.mark.parametrize("place", ["models/other.gguf", "wheels/other-1.0-py3-none-any.whl"])
def test_a_file_that_was_put_into_the_bundle_stops_the_installation(
    wheels: list[Path], tmp_path: Path, place: str
) -> None:
    folder = unpack(bundle(tmp_path / "out.tar", wheels=wheels).path, tmp_path / "here")
    (folder / place).write_bytes(b"not listed")
    done = install(folder)
    assert done.returncode == 2
    assert f"{place} is not of this bundle: nothing was installed" in done.stderr
    assert list((folder.parent / "home").iterdir()) == []


FAKE_PYTHON = """#!/bin/sh
if [ "$1" = -c ]; then cat "$(dirname "$0")/PLATFORM"; exit; fi
mkdir -p "$3/bin"
printf '#!/bin/sh\\n' >"$3/bin/python"
printf '#!/bin/sh\\necho "$@" >>"$HOME/asked"\\n[ "$1" != judge ] || exit %s\\n' "$VERDICT" >"$3/bin/it"
mv "$3/bin/it" "$3/bin/anvil-local"
chmod +x "$3/bin/python" "$3/bin/anvil-local"
"""


@pytest.mark.parametrize(("judged", "code"), [(0, 0), (1, 0), (3, 2), (132, 2)])
def test_an_installation_is_done_when_each_model_has_given_a_verdict(
    wheels: list[Path], tmp_path: Path, judged: int, code: int
) -> None:
    folder = unpack(bundle(tmp_path / "out.tar", wheels=wheels).path, tmp_path / "here")
    (folder / "python").write_text(FAKE_PYTHON, encoding="utf-8")
    (folder / "python").chmod(0o755)
    done = install(folder, PYTHON="anvil-bundle/python", ANVIL_MODELS_DIR="weights", VERDICT=str(judged))
    assert done.returncode == code, done.stderr
    # Relative folders are those of who asks, not of the bundle.
    assert [path.name for path in (folder.parent / "weights").iterdir()] == ["small.gguf"]
    asked = (folder.parent / "home" / "asked").read_text(encoding="utf-8")
    assert f"models verify {DEFAULT_MODEL}\njudge -m {DEFAULT_MODEL} " in asked
    assert ("cannot judge here" in done.stderr) == (code == 2)


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
