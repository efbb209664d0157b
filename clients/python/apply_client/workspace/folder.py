"""The files below one folder, for edits by a model: nothing outside is read, written or named.

A write replaces the file in one step, if the file still is the one that the edit was made for.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from apply_client.careful_files.anchored_folder import PLATFORM, Abilities
from apply_client.careful_files.atomic_file import (
    FileChangedError,
    add_file,
    is_read_only,
    read_file,
    remove_file,
    replace_file,
)
from apply_client.careful_files.file_rights import FileRights
from apply_client.workspace.errors import (
    ContentConflictError,
    FileAccessError,
    FileMissingError,
    FilePresentError,
    FileTooLargeError,
    NotAFileError,
    WorkspaceError,
)
from apply_client.workspace.path_name import relative_parts
from apply_client.workspace.place import MissingFolders, Place, open_place

# What a request of the service may hold by default; more could not be sent.
DEFAULT_MAX_FILE_BYTES = 4_000_000


@dataclass(frozen=True, slots=True)
class WorkspaceFile:
    """A file as it was read; `path` leads to it from the root, links resolved."""

    path: str
    content: bytes

    @property
    def sha256(self) -> str:
        """The hash that a later write expects."""
        return sha256_of(self.content)


class Workspace:
    """The files below `root`, each named by a path from there or an absolute one.

    Names with `..`, links that lead out, files of version control and what is no regular file
    are refused with a WorkspaceError, as is everything else that goes wrong with a file.
    """

    def __init__(
        self,
        root: str | Path,
        *,
        max_file_bytes: int = DEFAULT_MAX_FILE_BYTES,
        abilities: Abilities = PLATFORM,
    ) -> None:
        self.root = Path(os.path.realpath(root))
        if not self.root.is_dir():
            raise NotAFileError(os.fspath(root), "is no folder; name the one with the files")
        if self.root == Path(self.root.anchor):
            raise WorkspaceError(os.fspath(root), "is a whole disk; name the folder of a project")
        self._spellings = (os.fspath(self.root), os.path.abspath(root))
        self._max_file_bytes = max_file_bytes
        self._abilities = abilities

    def locate(self, name: str) -> str:
        """The path from the root that `name` leads to, links resolved; it need not exist."""
        with self._place(name, "name") as place:
            return place.path

    def read(self, name: str, *, expected_sha256: str | None = None) -> WorkspaceFile:
        """The file's bytes; an expected hash is checked."""
        with self._place(name) as place:
            self._check_file(place, name)
            file = WorkspaceFile(place.path, self._content(place, name))
            if expected_sha256 is not None:
                check_expected(name, file.sha256, expected_sha256)
            return file

    def has(self, name: str) -> bool:
        """True if anything exists under this name."""
        try:
            with self._place(name) as place:
                return place.status is not None
        except FileMissingError:
            return False

    def check_replaceable(self, name: str) -> None:
        """Raise the errors of `replace` that can be known before the file is written."""
        with self._place(name) as place:
            self._check_writable(place, name)

    def check_removable(self, name: str) -> None:
        """Raise the errors of `remove` that can be known before the file is removed."""
        with self._place(name) as place:
            self._check_no_link(place, name)

    def replace(self, name: str, content: bytes, *, expected_sha256: str) -> tuple[str, ...]:
        """Replace the bytes with the expected hash by `content`; return losses in words.

        The file's owner, mode and attributes stay where that is allowed, and so do symbolic links
        to it.
        """
        self._check_size(name, len(content))
        with self._place(name) as place:
            self._check_writable(place, name)
            before = self._content(place, name)
            check_expected(name, sha256_of(before), expected_sha256)
            with _telling_change(name):
                return replace_file(place.folder, place.leaf, content, expected=before)

    def add(self, name: str, content: bytes, *, rights: FileRights | None = None) -> None:
        """Add a new file, and the folders that it needs; an existing file is never replaced."""
        self._check_size(name, len(content))
        with self._place(name, "make") as place:
            is_added = place.status is None and add_file(
                place.folder, place.leaf, content, rights=rights
            )
            if not is_added:
                raise FilePresentError(name, "exists already; edit it instead")

    def remove(self, name: str, *, expected_sha256: str) -> FileRights:
        """Remove the file with the expected hash; return its rights, for `add` to undo this.

        One that is reached by a link is refused.
        """
        with self._place(name) as place:
            self._check_no_link(place, name)
            before = self._content(place, name)
            check_expected(name, sha256_of(before), expected_sha256)
            with _telling_change(name):
                return remove_file(place.folder, place.leaf, expected=before)

    @contextmanager
    def _place(self, name: str, missing_folders: MissingFolders = "refuse") -> Iterator[Place]:
        parts = relative_parts(name, self._spellings)
        try:
            with open_place(
                self.root,
                parts,
                name=name,
                missing_folders=missing_folders,
                abilities=self._abilities,
            ) as place:
                yield place
        except OSError as error:
            reason = error.strerror or str(error)
            raise FileAccessError(name, f"cannot be used: {reason}") from error

    def _check_file(self, place: Place, name: str) -> os.stat_result:
        if place.status is None:
            near = _nearest(place.leaf, place.folder.names())
            hint = f"; in its folder there is {', '.join(near)}" if near else ""
            raise FileMissingError(name, f"does not exist{hint}")
        if not stat.S_ISREG(place.status.st_mode):
            raise NotAFileError(name, "is no regular file; name a file")
        return place.status

    def _check_no_link(self, place: Place, name: str) -> None:
        self._check_file(place, name)
        if place.path != "/".join(relative_parts(name, self._spellings)):
            raise NotAFileError(name, f"is a link to {place.path}; remove one of them yourself")

    def _check_writable(self, place: Place, name: str) -> None:
        self._check_file(place, name)
        if is_read_only(place.folder, place.leaf):
            raise FileAccessError(name, "is read-only; make it writable first")

    def _content(self, place: Place, name: str) -> bytes:
        content = read_file(place.folder, place.leaf, max_bytes=self._max_file_bytes + 1)
        self._check_size(name, max(len(content), place.status.st_size if place.status else 0))
        return content

    def _check_size(self, name: str, num_bytes: int) -> None:
        if num_bytes > self._max_file_bytes:
            raise FileTooLargeError(
                name,
                f"has {num_bytes} bytes; at most {self._max_file_bytes} are taken. Edit it with"
                " another tool",
            )


def sha256_of(content: bytes) -> str:
    """The hash of a file's content, in lower-case hex digits."""
    return hashlib.sha256(content).hexdigest()


def check_expected(name: str, found: str, expected: str) -> None:
    """Raise ContentConflictError unless both are the same SHA-256."""
    if found != expected.strip().lower():
        raise ContentConflictError(
            name,
            f"has changed: its SHA-256 is {found}, {expected.strip()!a:.80} was expected; read it"
            " again and make the edit for what it is now",
        )


@contextmanager
def _telling_change(name: str) -> Iterator[None]:
    try:
        yield
    except FileChangedError as error:
        problem = f"changed while it was written{error.note}; read it again"
        raise ContentConflictError(name, problem) from error


def _nearest(leaf: str, names: Sequence[str]) -> list[str]:
    return difflib.get_close_matches(leaf, names, n=3)
