"""The progress of a batch on disk: after a kill the next run continues where the journal ends.

The file has one JSON object a line, each flushed to the disk before the work goes on. The first
says which batch it is. A step that writes a file has two lines: `begin`, before the file is
replaced, with the hash of the file `before` and `after`, and `end`, when the file is replaced.
After a kill between the two the file itself shows which of them holds. All other steps have `end`
alone, in a batch for a patch with the `content` of the file. A step in doubt that is answered later
has one more `end`, which counts. A last line that a kill cut off does not.
"""

from __future__ import annotations

import os
import stat
import threading
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Literal, Self

import msgspec

from apply_client.careful_files.file_lock import try_lock
from apply_client.errors import ApplyClientError
from apply_client.protocol.wire import Choice, Finding
from apply_client.update_text import DiskError, InputError, file_error

FORMAT = "apply-client batch journal 1"

_MAX_HEAD_BYTES = 65_536
_REMEDY = "name another one by --journal, or remove it to begin again"
_FLAGS = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)

StepStatus = Literal[
    "applied",
    "unchanged",
    "needs_review",
    "rejected",
    "added",
    "removed",
    "content_conflict",
    "failed",
]


class JournalHead(msgspec.Struct, frozen=True, kw_only=True):
    """The batch that a journal belongs to; another batch must not continue it."""

    edits_sha256: str
    root: str
    mode: Literal["write", "patch"]
    accepts_review: bool
    format: str = FORMAT


class StepOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of a finished step.

    `before` and `after` are hashes of the file, null where there was or is none. `choices` are what
    a doubtful update may mean.
    """

    status: StepStatus
    before: str | None = None
    after: str | None = None
    is_written: bool = False
    message: str | None = None
    findings: tuple[Finding, ...] = ()
    choices: tuple[Choice, ...] = ()

    def is_answered_by(self, choice_id: str | None) -> bool:
        """True if the step was left in doubt, and this is one of its choices."""
        return not self.is_written and choice_id in {choice.id for choice in self.choices}


class JournalLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The beginning of a step's write, or its end; `content` is for a patch, in Base64."""

    event: Literal["begin", "end"]
    step: str
    path: str
    outcome: StepOutcome
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class _Extent:
    """The position of a line in the journal, in bytes."""

    offset: int
    size: int


class FileHistory:
    """One file's history in a batch: its hash at the start and as the batch left it.

    `content_line` is the journal line with the file's content, as steps for a patch have left it.
    """

    def __init__(self) -> None:
        self.is_known = False
        self.is_changed = False
        self.start: str | None = None
        self.left: str | None = None
        self.content_line: _Extent | None = None

    def note(self, outcome: StepOutcome, *, content_line: _Extent | None) -> None:
        """Record the end of a step of this file."""
        if not self.is_known:
            self.is_known, self.start = True, outcome.before
        if outcome.is_written:
            self.is_changed, self.content_line = True, content_line
        self.left = outcome.after if outcome.is_written else outcome.before


class Journal:
    """An open journal, locked for this process. Several threads may use it.

    Once a line cannot be written, because the disk is full, no more lines are taken.
    """

    def __init__(self, path: Path, head: JournalHead) -> None:
        """Open or begin a journal; any other file is left alone.

        Raises InputError if the file is another batch's journal, in use, or not a journal, and
        DiskError.
        """
        self._path = path
        self._lock = threading.Lock()
        self._size = 0
        self._failure: ApplyClientError | None = None
        self._outcomes: dict[str, StepOutcome] = {}
        self._begun: dict[str, StepOutcome] = {}
        self._histories: dict[str, FileHistory] = {}
        try:
            # Without a buffer, so that what could not be written is not tried again later.
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o600)
            self._stream = FileIO(descriptor, "r+")
        except OSError as error:
            raise file_error(f"open {path}", error) from error
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise InputError(f"{path} is no regular file; name another one by --journal")
            if not _is_free(descriptor):
                raise InputError(f"{path} is in use by another run; wait for it to end")
            self._load(path, head)
        except OSError as error:
            self._stream.close()
            raise file_error(f"use {path}", error) from error
        except BaseException:
            self._stream.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._stream.close()

    @property
    def outcomes(self) -> dict[str, StepOutcome]:
        """The finished steps, by key."""
        return self._outcomes

    def begun(self, key: str) -> StepOutcome | None:
        """The intended outcome of a step that was interrupted."""
        return self._begun.get(key)

    def history(self, path: str) -> FileHistory:
        """The history of a file; empty if no step has touched the file."""
        return self._histories.setdefault(path, FileHistory())

    def begin(self, key: str, path: str, outcome: StepOutcome) -> None:
        """Record that a file is about to be written; on the disk before this returns."""
        self._append(JournalLine(event="begin", step=key, path=path, outcome=outcome))
        self._begun[key] = outcome

    def end(
        self, key: str, path: str, outcome: StepOutcome, *, content: bytes | None = None
    ) -> None:
        """Record that a step has ended; on the disk before this returns."""
        line = JournalLine(event="end", step=key, path=path, outcome=outcome, content=content)
        self._take_end(line, self._append(line))

    def content(self, path: str) -> bytes | None:
        """The file as steps for a patch have left it; None if they have not, or it is removed."""
        place = self.history(path).content_line
        if place is None:
            return None
        with self._lock:
            self._stream.seek(place.offset)
            parts = []
            num_left = place.size
            while num_left and (part := self._stream.read(num_left)):
                parts.append(part)
                num_left -= len(part)
        return msgspec.json.decode(b"".join(parts), type=JournalLine).content

    def _take_end(self, line: JournalLine, place: _Extent) -> None:
        self._outcomes[line.step] = line.outcome
        self._begun.pop(line.step, None)
        content_line = None if line.content is None else place
        self.history(line.path).note(line.outcome, content_line=content_line)

    def _append(self, line: JournalLine | JournalHead) -> _Extent:
        """Write a line to the disk and return its position. Raises DiskError."""
        content = _encoded(line)
        with self._lock:
            if self._failure is not None:
                raise self._failure
            try:
                self._stream.seek(self._size)
                rest = memoryview(content)
                while rest:
                    rest = rest[self._stream.write(rest) :]
                os.fsync(self._stream.fileno())
            except OSError as error:
                with suppress(OSError):
                    self._stream.truncate(self._size)
                self._failure = DiskError(
                    f"cannot write {self._path}: {error.strerror or error}; it has what is done so"
                    " far: make room and give the same command again"
                )
                raise self._failure from error
            place = _Extent(self._size, len(content))
            self._size += len(content)
        return place

    def _load(self, path: Path, head: JournalHead) -> None:
        """Read the existing lines, and cut off a last line that is incomplete."""
        reader = BufferedReader(self._stream)
        try:
            first = reader.readline(_MAX_HEAD_BYTES)
            if not first.endswith(b"\n"):
                # Nothing, or what a kill has left of this very head: nobody else's file begins so.
                if not _encoded(head).startswith(first):
                    raise InputError(f"{path} is no journal of a batch; {_REMEDY}")
                self._stream.truncate(0)
                self._append(head)
                _sync_folder(path)
                return
            _check_head(path, first, head)
            self._size = len(first)
            for content in reader:
                if not content.endswith(b"\n"):
                    break
                self._take(path, content)
            self._stream.truncate(self._size)
        finally:
            reader.detach()

    def _take(self, path: Path, content: bytes) -> None:
        try:
            line = msgspec.json.decode(content, type=JournalLine)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(
                f"{path} is damaged at byte {self._size}: {error}; see which edits are done, and"
                " name another journal"
            ) from error
        if line.event == "end":
            self._take_end(line, _Extent(self._size, len(content)))
        else:
            self._begun[line.step] = line.outcome
        self._size += len(content)


def _is_free(descriptor: int) -> bool:
    """True if no other run has the journal, as far as the file system can tell."""
    try:
        return try_lock(descriptor)
    except OSError:  # some network file systems have no locks
        return True


def _encoded(line: JournalLine | JournalHead) -> bytes:
    return msgspec.json.encode(line) + b"\n"


def _check_head(path: Path, content: bytes, head: JournalHead) -> None:
    try:
        found = msgspec.json.decode(content, type=JournalHead)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is no journal of a batch; {_REMEDY}") from error
    for name in ("format", "edits_sha256", "root", "mode", "accepts_review"):
        there, here = getattr(found, name), getattr(head, name)
        if there != here:
            raise InputError(
                f"{path} is the journal of another batch: its {name} is {there!r}, not {here!r};"
                f" {_REMEDY}"
            )


def _sync_folder(path: Path) -> None:
    """Make a new file's name survive a loss of power, where folders can be synced."""
    if os.name == "nt":
        return
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
