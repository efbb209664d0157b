"""Reads files that somebody names: a pipe, a socket or a device is refused before it is read."""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO

# A pipe is not waited for, and a terminal does not become ours.
_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
# What opening says of sockets and of devices that are not there.
_SPECIAL = frozenset({errno.ENXIO, errno.ENODEV})

PathLike = str | os.PathLike[str]


class SizeError(OSError):
    """A file has more bytes than are read of it."""


def open_regular(path: PathLike) -> BinaryIO:
    """Open a regular file, through links too. Raises OSError for anything else."""
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        raise (_not_regular(path) if error.errno in _SPECIAL else error) from None
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    raise _not_regular(path)


def read_regular(path: PathLike, *, max_bytes: int) -> bytes:
    """The bytes of a regular file. Raises OSError, and SizeError before a larger one is read."""
    with open_regular(path) as stream:
        if os.fstat(stream.fileno()).st_size > max_bytes:
            raise _too_large(max_bytes)
        # Files of the kernel have more bytes than they say, and others may grow.
        return read_whole(stream, max_bytes=max_bytes)


def read_whole(stream: BinaryIO, *, max_bytes: int) -> bytes:
    """The bytes of a stream up to its end. Raises SizeError if there are more."""
    content = stream.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise _too_large(max_bytes)
    return content


def _too_large(max_bytes: int) -> SizeError:
    return SizeError(errno.EFBIG, f"it has more than {max_bytes} bytes")


def _not_regular(path: PathLike) -> OSError:
    return OSError(errno.EINVAL, "it is no regular file", os.fspath(path))
