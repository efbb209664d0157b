"""`apply-service undo`: takes the last `apply --write` back, of one file or several."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from apply_service.cli.file_writer import write_result

# Only its owner may read it: it holds the file as it was.
_MODE = 0o600


class UndoError(Exception):
    """Nothing was undone; the message says why."""


@dataclass(frozen=True, slots=True)
class Write:
    """A file before and after it was written."""

    path: Path
    before: bytes
    after: bytes


class KeptWrite(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was written, as it was before, and the SHA-256 of what it became."""

    path: bytes  # as the system has it, text or not
    before: bytes
    after_sha256: str


class LastWrites(msgspec.Struct, frozen=True):
    """All that one command wrote."""

    files: list[KeptWrite]


def remember_writes(writes: Sequence[Write]) -> None:
    """Keep what `undo` needs, in the place of what it had. Raises OSError."""
    last = LastWrites(
        [
            KeptWrite(
                path=os.fsencode(one.path.absolute()),
                before=one.before,
                after_sha256=hashlib.sha256(one.after).hexdigest(),
            )
            for one in writes
        ]
    )
    kept = _kept_at()
    kept.parent.mkdir(parents=True, exist_ok=True)
    unfinished = kept.with_suffix(f".{os.getpid()}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with open(os.open(unfinished, flags, _MODE), "wb") as file:
        file.write(msgspec.json.encode(last))
    unfinished.replace(kept)


def run_undo() -> int:
    """Write the files of the last write as they were before, if nobody has changed one since.

    Returns the exit code. Raises UndoError or FileWriteError.
    """
    kept = _kept_at()
    try:
        last = msgspec.json.decode(kept.read_bytes(), type=LastWrites)
    except FileNotFoundError as error:
        raise UndoError("there is no write to undo; `apply --write` keeps the last one") from error
    except (OSError, msgspec.DecodeError) as error:
        raise UndoError(f"{kept} cannot be read: {error}; remove it") from error
    contents = [_unchanged(one) for one in last.files]
    for one, content in zip(last.files, contents, strict=True):
        path = Path(os.fsdecode(one.path))
        write_result(path, one.before, expected=content)
        print(f"{path} is as it was before the last apply --write")
    kept.unlink(missing_ok=True)
    return 0


def _unchanged(one: KeptWrite) -> bytes:
    """What a file is now. Raises UndoError if that is not what was written."""
    path = Path(os.fsdecode(one.path))
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UndoError(f"cannot read {path}: {error.strerror or error}") from error
    if hashlib.sha256(content).hexdigest() != one.after_sha256:
        raise UndoError(
            f"{path} has changed since it was written; compare it with `git diff` or an editor"
        )
    return content


def _kept_at() -> Path:
    from platformdirs import user_state_path  # most commands do without it

    return user_state_path("apply-service", appauthor=False) / "last-write.json"
