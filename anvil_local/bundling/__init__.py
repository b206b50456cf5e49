"""One file with everything for a machine without a network.

    wheels + models -> OUT.tar: wheels/, models/, requirements.txt (with hashes), SHA256SUMS, PLATFORM,
                       MODELS, bom.json (CycloneDX 1.5), LICENCES.txt, install.sh

The same inputs give the same bytes: members are sorted and have no owner and no time.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Sequence
from email.parser import HeaderParser
from importlib.resources import files
from pathlib import Path
from typing import Any

from anvil_local.errors import AnvilError, InputError, UsageError
from anvil_local.models import DEFAULT_MODEL, ModelEntry, resolve_model
from anvil_local.packages import require_pip, run_pip
from anvil_local.records import Record

__all__ = ["Bundle", "bundle", "collect_wheels"]

_FOLDER = "anvil-bundle"


class Bundle(Record):
    """What was written."""

    path: Path
    """The tar file."""
    sha256: str
    """Of its bytes."""
    bytes: int
    """Its size."""
    wheels: tuple[str, ...]
    """The wheels in it."""
    models: tuple[str, ...]
    """The model files in it."""


def bundle(
    output: Path,
    *,
    wheels: Sequence[Path],
    models: Sequence[str] = (),
    models_dir: str | Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Bundle:
    """Write the bundle.

    Args:
        output: the tar file; must not be there.
        wheels: every wheel that the other machine needs, see `collect_wheels`.
        models: names of installed models, each taken once; the default model without any.
        models_dir: the folder of installed models.
        say: told what is being done.

    Raises:
        UsageError: the output exists, or a model is not named as the registry names it.
        ModelError: a model is not installed or not its pinned bytes.
        InputError: a wheel that cannot be read.
        AnvilError: the file cannot be written; nothing is left of it.
    """
    if output.exists():
        raise UsageError("this file is there already", value=str(output), hint="name another, or remove it")
    resolved = []
    for name in dict.fromkeys(models or (DEFAULT_MODEL,)):
        model = resolve_model(name, folder=models_dir, say=say)
        # A path with a known model's bytes may have another file name, under which nobody would find it.
        if model.entry.origin != "bundled" or model.entry.name != name:
            raise UsageError(
                "only models of the registry can be bundled, by their names",
                value=name,
                hint="copy your own file beside the bundle and name it with `models add` over there",
            )
        resolved.append(model)
    found = sorted(wheels, key=lambda path: path.name)
    described = [_describe(path) for path in found]
    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder)
        members: dict[str, Path] = {f"wheels/{path.name}": path for path in found}
        members |= {f"models/{model.path.name}": model.path for model in resolved}
        entries = [model.entry for model in resolved]
        for name, text in (
            ("requirements.txt", _requirements(described)),
            (
                "PLATFORM",
                f"{sys.platform} {platform.machine()} cp{sys.version_info[0]}{sys.version_info[1]}\n",
            ),
            ("MODELS", "".join(f"{entry.name}\n" for entry in entries)),
            ("bom.json", _bill(described, entries)),
            ("LICENCES.txt", _licences(described, entries)),
            ("install.sh", files(__package__).joinpath("install.sh").read_text(encoding="utf-8")),
        ):
            (texts / name).write_text(text, encoding="utf-8")
            members[name] = texts / name
        say(f"checksums of {len(members)} files")
        sums = "".join(f"{_sha256(path)}  {name}\n" for name, path in sorted(members.items()))
        (texts / "SHA256SUMS").write_text(sums, encoding="utf-8")
        members["SHA256SUMS"] = texts / "SHA256SUMS"
        say(f"writing {output}")
        part = output.with_name(f".{output.name}.part")
        try:
            _write(part, members)
            os.replace(part, output)
        except OSError as error:
            raise AnvilError(f"cannot be written: {error.strerror}", where=str(output)) from error
        finally:
            part.unlink(missing_ok=True)
    return Bundle(
        path=output,
        sha256=_sha256(output),
        bytes=output.stat().st_size,
        wheels=tuple(path.name for path in found),
        models=tuple(model.path.name for model in resolved),
    )


def collect_wheels(into: Path, *, places: Iterable[Path], source: Path | None = None) -> list[Path]:
    """Have pip bring together the wheels of this package and of all that it needs, for this Python.

    Args:
        into: an empty folder.
        places: folders with wheels that are taken before the package index, such as the compiled
            llama-cpp-python; subfolders count.
        source: the checkout, or a wheel of anvil_local; by default the checkout that this package runs from.

    Raises:
        UsageError: no checkout and no wheel to make the package from, or two builds of one wheel.
        ModelError: pip failed; its last lines are in the message.
    """
    if source is None:
        source = Path(__file__).resolve().parents[2]
        if not (source / "pyproject.toml").is_file():
            raise UsageError(
                "this anvil_local does not run from a checkout, so there is nothing to make its wheel from",
                hint="--package anvil_local-VERSION-py3-none-any.whl",
            )
    require_pip()
    # Compiling here would give this machine's own build, not the one that was measured.
    command = ["wheel", "--wheel-dir", str(into), "--only-binary", ":all:"]
    for folder in _folders(places):
        command += ["--find-links", str(folder)]
    run_pip(
        [*command, str(source)],
        work=into,
        failure="pip could not bring the wheels together",
        hint="the index must be within reach; a compiled llama-cpp-python is found with --wheels FOLDER "
        "(scripts/demo keeps it in ~/.cache/anvil-local/wheels)",
    )
    return sorted(into.glob("*.whl"))


def _folders(places: Iterable[Path]) -> list[Path]:
    """The folders with wheels in them. Two builds of llama.cpp have one file name: pip would take any."""
    found: dict[str, Path] = {}
    for wheel in sorted(path for place in places for path in place.rglob("*.whl")):
        other = found.setdefault(wheel.name, wheel)
        if other.parent != wheel.parent and _sha256(other) != _sha256(wheel):
            raise UsageError(
                "there are two builds of this wheel",
                value=wheel.name,
                hint=f"choose one: --wheels {other.parent} or --wheels {wheel.parent}",
            )
    return sorted({wheel.parent for wheel in found.values()})


def _write(path: Path, members: dict[str, Path]) -> None:
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for name, source in sorted(members.items()):
            info = tarfile.TarInfo(f"{_FOLDER}/{name}")
            info.size = source.stat().st_size
            info.mode = 0o755 if name.endswith(".sh") else 0o644
            with source.open("rb") as stream:
                tar.addfile(info, stream)


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _describe(wheel: Path) -> dict[str, str]:
    """Name, version, licence and digest of a wheel."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            member = next(n for n in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", n))
            found = HeaderParser().parsestr(archive.read(member).decode("utf-8"))
    except (OSError, StopIteration, UnicodeDecodeError, zipfile.BadZipFile) as error:
        raise InputError("this is not a wheel", where=str(wheel)) from error
    licence = (
        found["License-Expression"] or _classified(found.get_all("Classifier") or ()) or found["License"]
    )
    return {
        "name": str(found["Name"]),
        "version": str(found["Version"]),
        "licence": " ".join(str(licence or "not stated").split())[:80],
        "sha256": _sha256(wheel),
    }


def _classified(classifiers: Iterable[str]) -> str:
    found = [line.rpartition(" :: ")[2] for line in classifiers if line.startswith("License :: ")]
    return ", ".join(name for name in found if name != "OSI Approved")


def _requirements(wheels: Iterable[dict[str, str]]) -> str:
    lines = [f"{wheel['name']}=={wheel['version']} --hash=sha256:{wheel['sha256']}\n" for wheel in wheels]
    return "# pip install --no-index --find-links wheels --require-hashes -r requirements.txt\n" + "".join(
        lines
    )


def _licences(wheels: Iterable[dict[str, str]], models: Iterable[ModelEntry]) -> str:
    rows = [(wheel["name"], wheel["version"], wheel["licence"]) for wheel in wheels]
    rows += [(model.name, "weights", model.license or "not stated") for model in models]
    return "".join(f"{name:<28} {version:<16} {licence}\n" for name, version, licence in rows)


def _purl(wheel: dict[str, str]) -> str:
    """The package URL, by which scanners know a package: `_` and `.` in names are written `-`."""
    return f"pkg:pypi/{re.sub(r'[-_.]+', '-', wheel['name']).lower()}@{wheel['version']}"


def _bill(wheels: Iterable[dict[str, str]], models: Iterable[ModelEntry]) -> str:
    """A CycloneDX 1.5 bill of materials."""
    components: list[dict[str, Any]] = [
        {
            "type": "library",
            "bom-ref": _purl(wheel),
            "name": wheel["name"],
            "version": wheel["version"],
            "purl": _purl(wheel),
            "hashes": [{"alg": "SHA-256", "content": wheel["sha256"]}],
            "licenses": [{"license": {"name": wheel["licence"]}}],
        }
        for wheel in wheels
    ]
    components += [
        {
            "type": "machine-learning-model",
            "bom-ref": f"model:{model.name}",
            "name": model.name,
            "hashes": [{"alg": "SHA-256", "content": model.sha256}],
            "licenses": [{"license": {"name": model.license or "not stated"}}],
        }
        for model in models
    ]
    document = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1, "components": components}
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
