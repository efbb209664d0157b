"""Reads and replaces files of a folder that is held open: the old bytes or the new, never half."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable
from contextlib import suppress

from apply_client.anchored_folder import AnchoredFolder

_NEW_MODE, _PRIVATE_MODE = 0o666, 0o600


def read_file(folder: AnchoredFolder, leaf: str, *, max_bytes: int) -> bytes:
    """The first `max_bytes` of a regular file. Raises OSError."""
    with os.fdopen(folder.open_to_read(leaf), "rb") as stream:
        return stream.read(max_bytes)


def replace_file(
    folder: AnchoredFolder, leaf: str, content: bytes, *, expected: os.stat_result
) -> bool:
    """Write `content` in place of the file that `expected` describes; False if it is another now.

    Mode and, where allowed, owner stay. Raises OSError; then the file is as it was.
    """

    def finish(name: str) -> bool:
        if not _is_same(folder.status(leaf), expected):
            folder.remove(name)
            return False
        folder.rename(name, leaf)
        return True

    return _write_beside(folder, content, owner=expected, finish=finish)


def add_file(folder: AnchoredFolder, leaf: str, content: bytes) -> bool:
    """Write a new file; False if the name is taken. Raises OSError; then there is no file."""

    def finish(name: str) -> bool:
        try:
            folder.link(name, leaf)
        except FileExistsError:
            return False
        finally:
            folder.remove(name)
        return True

    return _write_beside(folder, content, owner=None, finish=finish)


def _write_beside(
    folder: AnchoredFolder,
    content: bytes,
    *,
    owner: os.stat_result | None,
    finish: Callable[[str], bool],
) -> bool:
    """Write to a new file of the same folder and have `finish` put it in its place."""
    name = f".apply-{secrets.token_hex(8)}.tmp"
    descriptor = folder.open_new(name, _NEW_MODE if owner is None else _PRIVATE_MODE)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            if owner is not None:
                _take_over(stream.fileno(), owner)
            os.fsync(stream.fileno())
        is_done = finish(name)
    except BaseException:
        with suppress(FileNotFoundError):
            folder.remove(name)
        raise
    folder.sync()
    return is_done


def _take_over(descriptor: int, owner: os.stat_result) -> None:
    """Give the new file the owner and the mode of the old one, as far as that is allowed."""
    if not hasattr(os, "fchown"):
        return
    mode = stat.S_IMODE(owner.st_mode)
    here = os.fstat(descriptor)
    if (here.st_uid, here.st_gid) != (owner.st_uid, owner.st_gid):
        try:
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        except PermissionError:
            # What runs as its owner must not run as another one.
            mode &= 0o777
    os.fchmod(descriptor, mode)


def _is_same(now: os.stat_result, then: os.stat_result) -> bool:
    return (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns) == (
        then.st_dev,
        then.st_ino,
        then.st_size,
        then.st_mtime_ns,
    )
