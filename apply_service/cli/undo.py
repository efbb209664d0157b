"""`apply-service undo`: takes the last `apply --write` back, of one file or several."""

from __future__ import annotations

import hashlib

import msgspec

from apply_service.cli.file_writer import write_result
from apply_service.cli.last_write import KeptWrite, LastWrite
from apply_service.regular_file import open_regular
from apply_service.shown_text import shown_line

PROGRAM = "apply-service"


class UndoError(Exception):
    """Nothing was undone; the message says why."""


def run_undo() -> int:
    """Write the files of the last write as they were before, if nobody has changed one since.

    Returns the exit code. Raises UndoError or FileWriteError.
    """
    last = LastWrite(PROGRAM)
    try:
        kept = last.read()
    except FileNotFoundError as error:
        raise UndoError("there is no write to undo; `apply --write` keeps the last one") from error
    except (OSError, msgspec.DecodeError) as error:
        raise UndoError(f"{last.path} cannot be read: {error}; remove it") from error
    contents = [_unchanged(one) for one in kept]
    for one, content in zip(kept, contents, strict=True):
        write_result(one.path, one.before, expected=content)
        print(f"{shown_line(one.path)} is as it was before the last apply --write")
    last.forget()
    return 0


def _unchanged(one: KeptWrite) -> bytes:
    """What a file is now. Raises UndoError if that is not what was written."""
    try:
        with open_regular(one.path) as stream:
            content = stream.read()
    except OSError as error:
        raise UndoError(f"cannot read {shown_line(one.path)}: {error.strerror or error}") from error
    if hashlib.sha256(content).hexdigest() != one.after_sha256:
        raise UndoError(
            f"{shown_line(one.path)} has changed since it was written; compare it with `git diff`"
            " or an editor"
        )
    return content
