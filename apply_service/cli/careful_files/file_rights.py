"""The properties of a file apart from its bytes, for the file that replaces it."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

HAS_ATTRIBUTES = hasattr(os, "listxattr")

_ACCESS_LIST = "system.posix_acl_access"
# What a program may do beyond who starts it.
_CAPABILITIES = "security.capability"
# Signatures of the old content, which the kernel makes anew.
_SIGNATURES = frozenset({"security.evm", "security.ima"})


@dataclass(frozen=True, slots=True)
class FileRights:
    """Owner, mode and extended attributes, access lists among them; macOS and Windows tell less."""

    mode: int
    uid: int
    gid: int
    num_names: int
    attributes: Mapping[str, bytes]

    @classmethod
    def of(cls, descriptor: int) -> Self:
        """The rights of an open file."""
        status = os.fstat(descriptor)
        return cls(
            stat.S_IMODE(status.st_mode),
            status.st_uid,
            status.st_gid,
            status.st_nlink,
            _attributes(descriptor),
        )

    def give_to(self, descriptor: int) -> tuple[str, ...]:
        """Give these rights to an open file; return in words what could not be kept.

        What the system does not allow narrows the rights of the file and never widens them.
        """
        if not hasattr(os, "fchown"):
            return ()
        losses: list[str] = []
        # A change of owner clears bits of the mode, so the mode comes last.
        has_owner, has_group = self._give_owner(descriptor)
        if not has_owner:
            losses.append(f"its owner (user {self.uid}) could not be kept")
        if not has_group:
            losses.append(f"its group ({self.gid}) could not be kept")
        lost = self._give_attributes(descriptor, has_owner=has_owner)
        losses += [f"its extended attribute {name} could not be kept" for name in lost]
        mode = self.mode
        if not (has_owner and has_group):
            if mode & 0o7000:
                losses.append(f"its mode was {mode:04o} and is without the special bits now")
            mode &= 0o777
        if not has_group or _ACCESS_LIST in lost:
            # Another group has no more rights than everybody; with a list the bits are its limit.
            mode &= ~0o070 | (mode & 0o007) << 3
        os.fchmod(descriptor, mode)
        return tuple(losses)

    def _give_owner(self, descriptor: int) -> tuple[bool, bool]:
        """Two flags: the file has the user afterwards, and the group."""
        here = os.fstat(descriptor)
        if (here.st_uid, here.st_gid) == (self.uid, self.gid):
            return True, True
        for uid in (self.uid, -1):
            try:
                os.fchown(descriptor, uid, self.gid)
            except OSError:
                continue
            return uid == self.uid or here.st_uid == self.uid, True
        return here.st_uid == self.uid, here.st_gid == self.gid

    def _give_attributes(self, descriptor: int, *, has_owner: bool) -> list[str]:
        """Set the attributes; return the names of those that could not be set."""
        here = _attributes(descriptor)
        lost = []
        if _ACCESS_LIST in here and _ACCESS_LIST not in self.attributes:
            # The folder gives new files a list that the old file did not have.
            os.removexattr(descriptor, _ACCESS_LIST)
        for name, value in self.attributes.items():
            if here.get(name) == value or name in _SIGNATURES:
                continue
            try:
                if name == _CAPABILITIES and not has_owner:
                    raise PermissionError
                os.setxattr(descriptor, name, value)
            except OSError:
                lost.append(name)
        return lost


def _attributes(descriptor: int) -> dict[str, bytes]:
    if not HAS_ATTRIBUTES:
        return {}
    try:
        names = os.listxattr(descriptor)
    except OSError:  # the file system has none
        return {}
    found = {}
    for name in names:
        try:
            found[name] = os.getxattr(descriptor, name)
        except OSError:
            continue  # gone meanwhile, or not for us
    return found
