"""`apply-service undo`: takes the last `apply --write` back."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec

from apply_service.cli.file_writer import write_result

# Only its owner may read it: it holds the file as it was.
_MODE = 0o600


class UndoError(Exception):
    """Nothing was undone; the message says why."""


class LastWrite(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was written, as it was before, and the SHA-256 of what it became."""

    path: bytes  # as the system has it, text or not
    before: bytes
    after_sha256: str


def remember_write(path: Path, *, before: bytes, after: bytes) -> None:
    """Keep what `undo` needs, in the place of what it had. Raises OSError."""
    last = LastWrite(
        path=os.fsencode(path.absolute()),
        before=before,
        after_sha256=hashlib.sha256(after).hexdigest(),
    )
    kept = _kept_at()
    kept.parent.mkdir(parents=True, exist_ok=True)
    unfinished = kept.with_suffix(f".{os.getpid()}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with open(os.open(unfinished, flags, _MODE), "wb") as file:
        file.write(msgspec.json.encode(last))
    unfinished.replace(kept)


def run_undo() -> int:
    """Write the file of the last write as it was before, if nobody has changed it since.

    Returns the exit code. Raises UndoError or FileWriteError.
    """
    kept = _kept_at()
    try:
        last = msgspec.json.decode(kept.read_bytes(), type=LastWrite)
    except FileNotFoundError as error:
        raise UndoError("there is no write to undo; `apply --write` keeps the last one") from error
    except (OSError, msgspec.DecodeError) as error:
        raise UndoError(f"{kept} cannot be read: {error}; remove it") from error
    path = Path(os.fsdecode(last.path))
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UndoError(f"cannot read {path}: {error.strerror or error}") from error
    if hashlib.sha256(content).hexdigest() != last.after_sha256:
        raise UndoError(
            f"{path} has changed since it was written; compare it with `git diff` or an editor"
        )
    write_result(path, last.before, expected=content)
    kept.unlink(missing_ok=True)
    print(f"{path} is as it was before the last apply --write")
    return 0


def _kept_at() -> Path:
    from platformdirs import user_state_path  # most commands do without it

    return user_state_path("apply-service", appauthor=False) / "last-write.json"
