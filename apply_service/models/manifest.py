"""The manifest of a prepared model folder: size and hash of every file, and what was checked.

ModelStoreError ← ModelNotPreparedError, ModelDamagedError, ModelNotFoundError, ModelSourceError,
                  AdapterMismatchError
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import msgspec

MANIFEST_NAME = "manifest.json"
FORMAT_VERSION = 1
# What files looked like when their hashes were found right.
CHECKED_NAME = "checked.json"


class ModelStoreError(Exception):
    """Base of the errors of finding or preparing a model."""


class ModelNotPreparedError(ModelStoreError):
    """The model is known but not prepared yet."""


class ModelDamagedError(ModelStoreError):
    """A prepared model is not what its manifest says."""


class ModelNotFoundError(ModelStoreError):
    """No model has this name or path, or it lacks a file."""


class ModelSourceError(ModelStoreError):
    """What the model is made of cannot be fetched, or is not the pinned file."""


class AdapterMismatchError(ModelStoreError):
    """The adapter was trained on other base weights."""


class FileRecord(msgspec.Struct, frozen=True):
    """One file of a prepared model; `sha256` in hexadecimal."""

    size: int
    sha256: str


class _CheckedFile(msgspec.Struct, frozen=True):
    """A file that had this hash; another one, or a changed one, looks otherwise."""

    size: int
    mtime_ns: int
    inode: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """`source_sha256` is the hash of the file that the weights come from."""

    format_version: int
    name: str
    profile: str
    licence: str
    source: str
    source_sha256: str
    dtype: str
    adapter_sha256: str | None
    files: dict[str, FileRecord]

    @property
    def size_bytes(self) -> int:
        """Bytes of all files together."""
        return sum(record.size for record in self.files.values())

    @property
    def revision(self) -> str:
        """One hash over the contents of all files."""
        hashes = "".join(f"{name}\0{self.files[name].sha256}\n" for name in sorted(self.files))
        return hashlib.sha256(hashes.encode()).hexdigest()


def file_sha256(path: Path) -> str:
    """The hash of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def record_files(model_dir: Path) -> dict[str, FileRecord]:
    """Size and hash of every file in a folder except its manifest and what was checked."""
    return {
        path.name: FileRecord(size=path.stat().st_size, sha256=file_sha256(path))
        for path in sorted(model_dir.iterdir())
        if path.is_file() and path.name != MANIFEST_NAME and CHECKED_NAME not in path.name
    }


def write_manifest(model_dir: Path, manifest: Manifest) -> None:
    """Write the manifest into a folder that nobody reads yet."""
    content = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
    (model_dir / MANIFEST_NAME).write_bytes(content + b"\n")


def read_manifest(model_dir: Path) -> Manifest:
    """The manifest of a prepared folder. Raises `ModelDamagedError`."""
    path = model_dir / MANIFEST_NAME
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (OSError, msgspec.MsgspecError) as error:
        raise _damaged(path, str(error)) from error
    if manifest.format_version != FORMAT_VERSION:
        raise _damaged(path, f"format version {manifest.format_version}, not {FORMAT_VERSION}")
    return manifest


def verify_files(model_dir: Path, manifest: Manifest) -> None:
    """Hash every file, whatever is known of it. Raises `ModelDamagedError`."""
    with suppress(OSError):
        (model_dir / CHECKED_NAME).unlink()
    check_files(model_dir, manifest)


def check_files(model_dir: Path, manifest: Manifest) -> None:
    """Raise `ModelDamagedError` unless every file has its size and its hash.

    A file is hashed once: what it looked like is kept beside it, where the folder can be written.
    """
    known = _read_checked(model_dir)
    found = {
        name: _checked(model_dir / name, known.get(name), record)
        for name, record in manifest.files.items()
    }
    if found != known:
        _write_checked(model_dir, found)


def _checked(path: Path, known: _CheckedFile | None, record: FileRecord) -> _CheckedFile:
    """What a file looks like whose size and hash are right. Raises `ModelDamagedError`."""
    try:
        status = path.stat()
        if status.st_size != record.size:
            raise _damaged(path, f"{status.st_size} bytes, not {record.size}")
        # Taken before the content is read, so that a later change shows.
        found = _CheckedFile(status.st_size, status.st_mtime_ns, status.st_ino, record.sha256)
        if found != known and file_sha256(path) != record.sha256:
            raise _damaged(path, "its content has changed")
    except OSError as error:
        raise _damaged(path, error.strerror or "unreadable") from error
    return found


def _read_checked(model_dir: Path) -> dict[str, _CheckedFile]:
    try:
        content = (model_dir / CHECKED_NAME).read_bytes()
        return msgspec.json.decode(content, type=dict[str, _CheckedFile])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}


def _write_checked(model_dir: Path, files: dict[str, _CheckedFile]) -> None:
    unfinished = model_dir / f".{CHECKED_NAME}.{os.getpid()}"
    with suppress(OSError):
        unfinished.write_bytes(msgspec.json.encode(files))
        unfinished.replace(model_dir / CHECKED_NAME)
    with suppress(OSError):
        unfinished.unlink()


def _damaged(path: Path, reason: str) -> ModelDamagedError:
    return ModelDamagedError(
        f"{path} is damaged ({reason}); run `apply-service model prepare` to make it anew"
    )
