"""Keeps what the last `apply --write` of a program replaced, so that `undo` can take it back."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from apply_client.shown_text import say, shown_line

# Only its owner may read it: it holds the file as it was.
_MODE = 0o600


@dataclass(frozen=True, slots=True)
class Write:
    """A file before and after it was written."""

    path: Path
    before: bytes
    after: bytes


class KeptWrite(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was written, as it was before, and the SHA-256 of what it became."""

    path_bytes: bytes = msgspec.field(name="path")  # as the system has it, text or not
    before: bytes
    after_sha256: str

    @property
    def path(self) -> Path:
        """Where the file is."""
        return Path(os.fsdecode(self.path_bytes))


class _LastWrites(msgspec.Struct, frozen=True):
    files: list[KeptWrite]


class LastWrite:
    """All files that the last command of `program` wrote; it may be there or not."""

    def __init__(self, program: str) -> None:
        from platformdirs import user_state_path  # most commands do without it

        self.program = program
        self.path = user_state_path(program, appauthor=False) / "last-write.json"

    def remember(self, writes: Sequence[Write]) -> None:
        """Keep these in the place of what was kept. Raises OSError."""
        last = _LastWrites(
            [
                KeptWrite(
                    path_bytes=os.fsencode(one.path.absolute()),
                    before=one.before,
                    after_sha256=hashlib.sha256(one.after).hexdigest(),
                )
                for one in writes
            ]
        )
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.path.with_suffix(f".{os.getpid()}.part")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with open(os.open(unfinished, flags, _MODE), "wb") as file:
            file.write(msgspec.json.encode(last))
        unfinished.replace(self.path)

    def remember_and_tell(self, writes: Sequence[Write]) -> None:
        """Keep these; say so to who sits at a terminal, and to everybody where it fails."""
        try:
            self.remember(writes)
        except OSError as error:
            say(f"warning: undo will not know of this: {error}")
        else:
            if sys.stderr.isatty():
                names = ", ".join(shown_line(one.path.name) for one in writes)
                say(f"{names} written; `{self.program} undo` takes it back")

    def read(self) -> list[KeptWrite]:
        """What is kept. Raises OSError or msgspec.DecodeError."""
        return msgspec.json.decode(self.path.read_bytes(), type=_LastWrites).files

    def forget(self) -> None:
        """Keep nothing."""
        self.path.unlink(missing_ok=True)
