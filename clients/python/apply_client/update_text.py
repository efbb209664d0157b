"""Reads updates from files: text in UTF-8, or in UTF-16 or 32 with a mark."""

from __future__ import annotations

import codecs
import errno
import sys

from apply_client.errors import ApplyClientError
from apply_client.regular_file import SizeError, read_regular, read_whole
from apply_client.shown_text import shown_line
from apply_client.workspace.folder import DEFAULT_MAX_FILE_BYTES

# The mark of UTF-32 begins with that of UTF-16, so it is looked for first.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)
# EFBIG is the limit of a process, EDQUOT that of a user, whom Windows does not know.
_DISK_FULL = frozenset({errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)})


class InputError(ApplyClientError):
    """A file with instructions cannot be used."""


class DiskError(ApplyClientError):
    """The disk refused a write, mostly because it is full; the old content is still there."""


def file_error(task: str, error: OSError) -> InputError | DiskError:
    """The error for a file that the caller named: a bad name, or a full disk."""
    message = f"cannot {task}: {error.strerror or error}"
    if error.errno in _DISK_FULL and not isinstance(error, SizeError):
        return DiskError(f"{message}; make room and give the same command again")
    return InputError(f"{message}; name another file")


def read_update(name: str) -> str:
    """The text of a file, or of stdin for `-`. Raises InputError."""
    return decode_text(read_bytes(name), name)


def read_bytes(name: str) -> bytes:
    """The bytes of a file, or of stdin for `-`. Raises InputError."""
    try:
        if name == "-":
            return read_whole(sys.stdin.buffer, max_bytes=DEFAULT_MAX_FILE_BYTES)
        return read_regular(name, max_bytes=DEFAULT_MAX_FILE_BYTES)
    except OSError as error:
        raise file_error(f"read {shown_line(name)}", error) from error


def decode_text(content: bytes, name: str) -> str:
    """Decode text. Raises InputError with the place of bytes that are not text."""
    encoding = next((one for mark, one in _MARKS if content.startswith(mark)), "utf-8")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{shown_line(name)} is no text in {encoding.upper()}: byte {error.start} is"
            f" 0x{content[error.start]:02x}; save it as UTF-8"
        ) from error
