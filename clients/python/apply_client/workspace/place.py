"""Resolves a name into an open folder and the last part in it; links are resolved here.

The system is never asked to follow a link, so each is judged before it is taken.
"""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from apply_client.careful_files.anchored_folder import PLATFORM, Abilities, AnchoredFolder
from apply_client.workspace.errors import FileMissingError, NotAFileError, PathRefusedError
from apply_client.workspace.path_name import check_part

MissingFolders = Literal["refuse", "make", "name"]

MAX_LINKS = 40


@dataclass(frozen=True, slots=True)
class Place:
    """`leaf` in `folder`, valid while the walk is open; `path` leads there without a link.

    `status` is None if there is nothing; if folders are missing too, `leaf` begins with them.
    """

    folder: AnchoredFolder
    leaf: str
    path: str
    status: os.stat_result | None


@contextmanager
def open_place(
    root: Path,
    parts: Sequence[str],
    *,
    name: str,
    missing_folders: MissingFolders = "refuse",
    abilities: Abilities = PLATFORM,
) -> Iterator[Place]:
    """Walk from `root` along `parts`; `name` is the caller's name of the file.

    Folders that are missing are refused, made, or only named. Raises PathRefusedError for a link
    that leads out, FileMissingError, NotAFileError, OSError.
    """
    walk = _Walk(root, name, abilities)
    try:
        yield walk.follow(parts, missing_folders)
    finally:
        walk.close()


class _Walk:
    """The folders from the root to here, all held open."""

    def __init__(self, root: Path, name: str, abilities: Abilities) -> None:
        self._root = root
        self._name = name
        self._folders = [AnchoredFolder.open_root(root, abilities=abilities)]
        self._path: list[str] = []
        self._num_links = 0

    def close(self) -> None:
        while self._folders:
            self._folders.pop().close()

    def follow(self, parts: Sequence[str], missing_folders: MissingFolders) -> Place:
        waiting = deque(parts)
        while waiting:
            part = waiting.popleft()
            if part in ("", "."):
                continue
            if part == "..":
                self._leave()
                continue
            check_part(part, self._name)
            status = self._status(part)
            if status is not None and stat.S_ISLNK(status.st_mode):
                waiting.extendleft(reversed(self._parts_of_link(part)))
            elif not any(one not in ("", ".") for one in waiting):
                return self._place(part, status)
            elif status is None and missing_folders == "name" and ".." not in waiting:
                rest = [one for one in waiting if one not in ("", ".")]
                return self._place("/".join([part, *rest]), None)
            else:
                self._enter(part, status, makes_folders=missing_folders == "make")
        raise PathRefusedError(self._name, "leads to a folder; name a file")

    def _status(self, part: str) -> os.stat_result | None:
        try:
            return self._folders[-1].status(part)
        except FileNotFoundError:
            return None

    def _place(self, part: str, status: os.stat_result | None) -> Place:
        return Place(self._folders[-1], part, "/".join([*self._path, part]), status)

    def _enter(self, part: str, status: os.stat_result | None, *, makes_folders: bool) -> None:
        if status is None:
            if not makes_folders:
                folder = "/".join([*self._path, part])
                raise FileMissingError(self._name, f"does not exist: there is no folder {folder}")
            self._folders[-1].make_folder(part)
        elif not stat.S_ISDIR(status.st_mode):
            raise NotAFileError(self._name, f"leads through {part}, which is no folder")
        self._folders.append(self._folders[-1].enter(part))
        self._path.append(part)

    def _leave(self) -> None:
        if not self._path:
            raise PathRefusedError(self._name, "leads out of the workspace by a link")
        self._folders.pop().close()
        self._path.pop()

    def _parts_of_link(self, part: str) -> list[str]:
        self._num_links += 1
        if self._num_links > MAX_LINKS:
            raise PathRefusedError(self._name, f"leads through more than {MAX_LINKS} links")
        target = self._folders[-1].link_target(part)
        if not os.path.isabs(target):
            return target.replace(os.sep, "/").split("/")
        if not Path(target).is_relative_to(self._root):
            raise PathRefusedError(self._name, "leads out of the workspace by a link")
        while self._path:
            self._leave()
        return list(Path(target).relative_to(self._root).parts)
