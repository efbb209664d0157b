"""Replaces a file atomically: the old content or the new, never half of either."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


class FileWriteError(Exception):
    """The file was not written; it is as it was."""


def replace_file(path: Path, content: bytes, *, expected: bytes) -> None:
    """Write `content` in place of `expected`; mode bits and a symbolic link to the file stay.

    Raises FileWriteError if the file is read-only, has changed since it was read, or its folder
    takes no new file.
    """
    target = Path(os.path.realpath(path))
    try:
        mode = stat.S_IMODE(target.stat().st_mode)
        if not mode & 0o222 or not os.access(target, os.W_OK):
            raise FileWriteError(f"{path} is read-only; make it writable first")
        if target.read_bytes() != expected:
            raise FileWriteError(f"{path} has changed since it was read; run the command again")
        _write_beside(target, content, mode)
    except OSError as error:
        raise FileWriteError(f"cannot write {path}: {error.strerror or error}") from error


def _write_beside(target: Path, content: bytes, mode: int) -> None:
    """Write to a new file in the same folder, then rename it over the target."""
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, mode)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
