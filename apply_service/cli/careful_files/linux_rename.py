"""Renames of Linux that Python has no functions for: swap two files, or never replace one."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from functools import cache

_NO_REPLACE, _EXCHANGE = 1, 2
_CURRENT_FOLDER = -100  # AT_FDCWD
# The kernel, the C library or the file system (NFS, FAT, some FUSE) does not know the flag.
_UNSUPPORTED = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})

# Folder and name twice, and the flags.
_Function = Callable[[int, bytes, int, bytes, int], int]


def try_exchange(one: str, other: str, *, folder: int | None) -> bool:
    """Swap the files of two names in one step; False where that cannot be done.

    Names are relative to the descriptor `folder` if there is one. Raises OSError.
    """
    return _try_rename(one, other, _EXCHANGE, folder)


def try_rename_new(old: str, new: str, *, folder: int | None) -> bool:
    """Rename to a name that is free, in one step; False where that cannot be done.

    Raises FileExistsError if the name is taken, OSError.
    """
    return _try_rename(old, new, _NO_REPLACE, folder)


def _try_rename(old: str, new: str, flags: int, folder: int | None) -> bool:
    function = _function()
    if function is None:
        return False
    place = _CURRENT_FOLDER if folder is None else folder
    if function(place, os.fsencode(old), place, os.fsencode(new), flags) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        return False
    raise OSError(number, os.strerror(number), old, None, new)


@cache
def _function() -> _Function | None:
    if sys.platform != "linux":
        return None
    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return None
    name, folder = ctypes.c_char_p, ctypes.c_int
    function.argtypes = (folder, name, folder, name, ctypes.c_uint)
    found: _Function = function
    return found
