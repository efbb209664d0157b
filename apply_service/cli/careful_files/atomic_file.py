"""Replaces, adds and removes files of an open folder in one step: the old bytes or the new.

A file is never half written, and never replaces what somebody else has written meanwhile.

All who use this module keep each other out by a lock on the folder. A program that takes no lock is
noticed when the new file and the old one change places: if the file that comes out is not the
expected one, they change back. Where files cannot change places (macOS, Windows, NFS, FAT), the old
one is looked at once more right before it is replaced, and only what such a program writes in the
moment between is lost.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass

from apply_service.cli.careful_files.anchored_folder import AnchoredFolder
from apply_service.cli.careful_files.file_rights import FileRights

_NEW_MODE, _PRIVATE_MODE = 0o666, 0o600


class FileChangedError(Exception):
    """The file is not the expected one, and stays as it is.

    `kept_as` is a name in its folder, if the work of another program could only be kept there.
    """

    def __init__(self, kept_as: str | None = None) -> None:
        super().__init__("the file has changed")
        self.kept_as = kept_as

    @property
    def note(self) -> str:
        """A sentence about a file that could only be kept under another name, or nothing."""
        if self.kept_as is None:
            return ""
        return f"; what another program wrote at the same moment is kept beside it, {self.kept_as}"


def read_file(folder: AnchoredFolder, leaf: str, *, max_bytes: int) -> bytes:
    """The first `max_bytes` of a regular file. Raises OSError."""
    with os.fdopen(folder.open_to_read(leaf), "rb") as stream:
        return stream.read(max_bytes)


def is_read_only(folder: AnchoredFolder, leaf: str) -> bool:
    """True if nobody may write the file, or not the user of this process. Raises OSError."""
    return not folder.status(leaf).st_mode & 0o222 or not folder.is_writable(leaf)


def replace_file(
    folder: AnchoredFolder, leaf: str, content: bytes, *, expected: bytes
) -> tuple[str, ...]:
    """Write `content` in place of `expected`; return in words what of the file was lost.

    Owner, mode and extended attributes stay where the system allows it; other names of the file
    (hard links) keep the old bytes. Raises FileChangedError, OSError; then the file is as it was.
    """
    with folder.locked() as is_locked:
        old = _expected_file(folder, leaf, expected)
        name = _free_name(folder, leaf, is_locked=is_locked)
        losses = _write(folder, name, content, rights=old.rights)
        try:
            new = _look_at(folder, name, max_bytes=len(content) + 1)
            if _try_look_at(folder, leaf, old) != old:
                raise FileChangedError
            is_exchanged = folder.try_exchange(name, leaf)
            if not is_exchanged:
                folder.rename(name, leaf)
        except (OSError, FileChangedError):
            _discard(folder, name)
            raise
        if is_exchanged:
            _check_came_out(folder, leaf, name, old=old, new=new)
    folder.sync()
    if (num_others := old.rights.num_names - 1) > 0:
        losses = (*losses, f"{num_others} more of its names (hard links) keep the old content")
    return losses


def add_file(
    folder: AnchoredFolder, leaf: str, content: bytes, *, rights: FileRights | None = None
) -> bool:
    """Write a new file; False if the name is taken. Raises OSError; then there is no file."""
    with folder.locked() as is_locked:
        name = _free_name(folder, leaf, is_locked=is_locked)
        _write(folder, name, content, rights=rights)
        try:
            folder.rename_new(name, leaf)
        except FileExistsError:
            _discard(folder, name)
            return False
        except OSError:
            _discard(folder, name)
            raise
    folder.sync()
    return True


def remove_file(folder: AnchoredFolder, leaf: str, *, expected: bytes) -> FileRights:
    """Remove a file that is as expected; return its rights, to add it again with them.

    Raises FileChangedError, OSError; then the file is as it was.
    """
    with folder.locked() as is_locked:
        old = _expected_file(folder, leaf, expected)
        name = _free_name(folder, leaf, is_locked=is_locked)
        folder.rename(leaf, name)
        if _try_look_at(folder, name, old) != old:
            raise FileChangedError(_put_back(folder, leaf, name))
        folder.remove(name)
    folder.sync()
    return old.rights


@dataclass(frozen=True, slots=True)
class _SeenFile:
    """A file as it was found; two equal ones are the same file, unchanged."""

    content: bytes
    identity: tuple[int, int]
    rights: FileRights


def _look_at(folder: AnchoredFolder, name: str, *, max_bytes: int) -> _SeenFile:
    with os.fdopen(folder.open_to_read(name), "rb") as stream:
        status = os.fstat(stream.fileno())
        content = stream.read(max_bytes)
        identity = (status.st_dev, status.st_ino)
        return _SeenFile(content, identity, FileRights.of(stream.fileno()))


def _try_look_at(folder: AnchoredFolder, name: str, seen: _SeenFile) -> _SeenFile | None:
    """A file as found, None if absent or not regular; `seen` says how much to read."""
    try:
        return _look_at(folder, name, max_bytes=len(seen.content) + 1)
    except OSError:
        return None


def _expected_file(folder: AnchoredFolder, leaf: str, expected: bytes) -> _SeenFile:
    file = _look_at(folder, leaf, max_bytes=len(expected) + 1)
    if file.content != expected:
        raise FileChangedError
    return file


def _free_name(folder: AnchoredFolder, leaf: str, *, is_locked: bool) -> str:
    """A name for a file beside `leaf`.

    Under the lock it is always the same one, so a file that a killed run left there is replaced.
    """
    name = f".apply-{hashlib.sha256(os.fsencode(leaf)).hexdigest()[:16]}.tmp"
    if is_locked:
        try:
            folder.remove(name)
        except FileNotFoundError:
            return name
        except OSError:  # somebody else's, in a folder where only they may remove it
            pass
        else:
            return name
    return f".apply-{secrets.token_hex(8)}.tmp"


def _write(
    folder: AnchoredFolder, name: str, content: bytes, *, rights: FileRights | None
) -> tuple[str, ...]:
    """Write a file whole, to the disk; return the rights that it could not be given."""
    descriptor = folder.open_new(name, _NEW_MODE if rights is None else _PRIVATE_MODE)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            losses = () if rights is None else rights.give_to(stream.fileno())
            os.fsync(stream.fileno())
    except BaseException:
        _discard(folder, name)
        raise
    return losses


def _discard(folder: AnchoredFolder, name: str) -> None:
    """Remove a file of ours; a failure must not hide the error that made it useless."""
    with suppress(OSError):
        folder.remove(name)


def _check_came_out(
    folder: AnchoredFolder, leaf: str, name: str, *, old: _SeenFile, new: _SeenFile
) -> None:
    """Check the file that an exchange gave: removed if it is the old one, else put back."""
    if _try_look_at(folder, name, old) == old:
        folder.remove(name)
        return
    try:
        folder.try_exchange(name, leaf)
    except FileNotFoundError:  # the new file has been removed meanwhile
        raise FileChangedError(_put_back(folder, leaf, name)) from None
    if _try_look_at(folder, name, new) != new:  # and was replaced meanwhile
        raise FileChangedError(_keep(folder, name))
    folder.remove(name)
    raise FileChangedError


def _put_back(folder: AnchoredFolder, leaf: str, name: str) -> str | None:
    """Give a file its name back; return its place if the name is taken."""
    try:
        folder.rename_new(name, leaf)
    except FileExistsError:
        return _keep(folder, name)
    return None


def _keep(folder: AnchoredFolder, name: str) -> str:
    """Move a file to a place where no later run removes it."""
    kept_as = f"apply-{secrets.token_hex(8)}.kept"
    folder.rename(name, kept_as)
    return kept_as
