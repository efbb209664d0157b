"""A folder held open: a link put in its way cannot redirect the work inside it.

Where a platform cannot work relative to an open folder (Windows), paths are used and checked again.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from apply_service.cli.careful_files.file_lock import HAS_LOCKS, try_lock, unlock
from apply_service.cli.careful_files.linux_rename import try_exchange, try_rename_new

LOCK_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Abilities:
    """The platform's abilities for folders; fewer of them are less safe, never wrong."""

    has_descriptors: bool
    has_locks: bool
    has_exchange: bool


PLATFORM = Abilities(
    has_descriptors={os.open, os.stat, os.rename, os.unlink, os.mkdir} <= os.supports_dir_fd,
    has_locks=HAS_LOCKS,
    has_exchange=sys.platform == "linux",
)

_FLAGS = (
    getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_BINARY", 0)
)
# A pipe would wait for its other end.
_READ = os.O_RDONLY | _FLAGS | getattr(os, "O_NONBLOCK", 0)
# What `link` says where there are no links.
_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
_LOCK_POLL_S = 0.0005
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS


class AnchoredFolder:
    """One folder below (or at) a root. Names given to its methods are single parts, no paths.

    Every method raises OSError as the system does. Owns its descriptor until `close`.
    """

    def __init__(self, path: str, abilities: Abilities, *, descriptor: int | None) -> None:
        self._path = path
        self._abilities = abilities
        self._descriptor = descriptor

    @classmethod
    def open_root(cls, root: Path, *, abilities: Abilities = PLATFORM) -> AnchoredFolder:
        """Open the root itself; links to it must be resolved already."""
        path = os.fspath(root)
        descriptor = os.open(path, _READ | os.O_DIRECTORY) if abilities.has_descriptors else None
        return cls(path, abilities, descriptor=descriptor)

    def enter(self, part: str) -> AnchoredFolder:
        """Open the folder `part` in this one; a link is not followed."""
        path = os.path.join(self._path, part)
        if self._descriptor is not None:
            descriptor = os.open(part, _READ | os.O_DIRECTORY, dir_fd=self._descriptor)
            return AnchoredFolder(path, self._abilities, descriptor=descriptor)
        real = os.path.normcase(os.path.realpath(path))
        if real != os.path.normcase(path) or not os.path.isdir(path):
            raise NotADirectoryError(20, "it is no folder of its own", path)
        return AnchoredFolder(path, self._abilities, descriptor=None)

    def close(self) -> None:
        """Close the descriptor."""
        if self._descriptor is not None:
            os.close(self._descriptor)

    def status(self, part: str) -> os.stat_result:
        """The status of `part`; a link is not followed."""
        return os.stat(self._at(part), dir_fd=self._descriptor, follow_symlinks=False)

    def link_target(self, part: str) -> str:
        """The target of the link `part`."""
        return os.readlink(self._at(part), dir_fd=self._descriptor)

    def names(self) -> list[str]:
        """The names in the folder."""
        return os.listdir(self._path if self._descriptor is None else self._descriptor)

    def open_to_read(self, part: str) -> int:
        """A descriptor of the regular file `part`; a link is not followed."""
        descriptor = os.open(self._at(part), _READ, dir_fd=self._descriptor)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(22, "it is no regular file", part)
        return descriptor

    def open_new(self, part: str, mode: int) -> int:
        """A descriptor of the new file `part`; the process's mask is taken from `mode`."""
        return os.open(self._at(part), _CREATE, mode, dir_fd=self._descriptor)

    def is_writable(self, part: str) -> bool:
        """True if the user of this process may write the file `part`."""
        return os.access(self._at(part), os.W_OK, dir_fd=self._descriptor)

    def rename(self, old: str, new: str) -> None:
        """Rename `old` to `new` in one step; an existing `new` is replaced."""
        os.replace(
            self._at(old),
            self._at(new),
            src_dir_fd=self._descriptor,
            dst_dir_fd=self._descriptor,
        )

    def rename_new(self, old: str, new: str) -> None:
        """Rename `old` to `new`; raise FileExistsError if `new` exists.

        Where the file system has neither such a rename nor links (FAT), a file that is created at
        the same moment is replaced.
        """
        names = (self._at(old), self._at(new))
        if self._abilities.has_exchange and try_rename_new(*names, folder=self._descriptor):
            return
        try:
            os.link(*names, src_dir_fd=self._descriptor, dst_dir_fd=self._descriptor)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            if new in self.names():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new) from error
            self.rename(old, new)
        else:
            self.remove(old)

    def try_exchange(self, one: str, other: str) -> bool:
        """Swap `one` and `other` in one step; False where that cannot be done."""
        return self._abilities.has_exchange and try_exchange(
            self._at(one), self._at(other), folder=self._descriptor
        )

    @contextmanager
    def locked(self, *, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[bool]:
        """Keep out all others who lock this folder, threads too; False if there are no locks.

        Leaves nothing in the folder. Raises TimeoutError.
        """
        is_locked = self._try_lock(timeout_s)
        try:
            yield is_locked
        finally:
            if is_locked:
                assert self._descriptor is not None, "only descriptors are locked"
                unlock(self._descriptor)

    def remove(self, part: str) -> None:
        """Remove the file `part`; of a link the link itself, not its target."""
        os.unlink(self._at(part), dir_fd=self._descriptor)

    def make_folder(self, part: str) -> None:
        """Make a new folder `part`."""
        os.mkdir(self._at(part), dir_fd=self._descriptor)

    def sync(self) -> None:
        """Wait until the names in the folder are on the disk, where the platform can."""
        if self._descriptor is not None:
            os.fsync(self._descriptor)

    def _try_lock(self, timeout_s: float) -> bool:
        if self._descriptor is None or not self._abilities.has_locks:
            return False
        deadline = time.monotonic() + timeout_s
        try:
            while not try_lock(self._descriptor):
                if time.monotonic() > deadline:
                    message = f"its folder is locked by another program for {timeout_s:g} s"
                    raise TimeoutError(errno.ETIMEDOUT, message)
                time.sleep(_LOCK_POLL_S)
        except TimeoutError:
            raise
        except OSError:  # NFS and some others lock no folders
            return False
        return True

    def _at(self, part: str) -> str:
        return part if self._descriptor is not None else os.path.join(self._path, part)
