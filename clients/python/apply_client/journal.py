"""What a batch has done so far, on disk: whoever is killed goes on where the journal ends.

The file has one JSON object a line, each flushed to the disk before the work goes on. The first
says which batch it is. A step that writes a file has two lines: `begin`, before the file is
replaced, with the hash of the file `before` and `after`, and `end`, when that is done. After a kill
between the two the file itself says which of them it is. All other steps have `end` alone, in a
batch for a patch with the `content` of the file. A last line that was cut off by a kill is none.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

import msgspec

from apply_client.careful_files.file_lock import try_lock
from apply_client.update_text import InputError
from apply_client.wire import Finding

FORMAT = "apply-client batch journal 1"

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
    """Which batch a journal is of; another one must not go on with it."""

    edits_sha256: str
    root: str
    mode: Literal["write", "patch"]
    accepts_review: bool
    format: str = FORMAT


class StepOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of a step that is over.

    `before` and `after` are hashes of the file, null where there was or is none.
    """

    status: StepStatus
    before: str | None = None
    after: str | None = None
    is_written: bool = False
    message: str | None = None
    findings: tuple[Finding, ...] = ()


class JournalLine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step that begins to write its file, or has ended; `content` is for a patch, in Base64."""

    event: Literal["begin", "end"]
    step: str
    path: str
    outcome: StepOutcome
    content: bytes | None = None


class FileHistory:
    """What a batch knows of one file: its hash at the start and as the batch left it.

    `content_offset` is where the journal has the file, as steps for a patch have left it.
    """

    def __init__(self) -> None:
        self.is_known = False
        self.is_changed = False
        self.start: str | None = None
        self.left: str | None = None
        self.content_offset: int | None = None

    def note(self, outcome: StepOutcome, *, content_offset: int | None) -> None:
        """A step of this file has ended."""
        if not self.is_known:
            self.is_known, self.start = True, outcome.before
        if outcome.is_written:
            self.is_changed, self.content_offset = True, content_offset
        self.left = outcome.after if outcome.is_written else outcome.before


class Journal:
    """An open journal, locked for this process. Safe to be used by several threads."""

    def __init__(self, path: Path, head: JournalHead) -> None:
        """Open or begin a journal. Raises InputError if it is that of another batch, or in use."""
        self._lock = threading.Lock()
        self._outcomes: dict[str, StepOutcome] = {}
        self._begun: dict[str, StepOutcome] = {}
        self._histories: dict[str, FileHistory] = {}
        try:
            self._stream = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+b")
        except OSError as error:
            raise InputError(f"cannot open {path}: {error.strerror or error}") from error
        try:
            if not try_lock(self._stream.fileno()):
                raise InputError(f"{path} is in use by another run; wait for it to end")
            self._load(path, head)
        except BaseException:
            self._stream.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stream.close()

    @property
    def outcomes(self) -> dict[str, StepOutcome]:
        """The steps that are over, by key."""
        return self._outcomes

    def begun(self, key: str) -> StepOutcome | None:
        """What a step was about to come to when the work was interrupted."""
        return self._begun.get(key)

    def history(self, path: str) -> FileHistory:
        """What is known of a file; one that no step has touched knows nothing."""
        return self._histories.setdefault(path, FileHistory())

    def begin(self, key: str, path: str, outcome: StepOutcome) -> None:
        """A file is about to be written; on the disk before this returns."""
        self._append(JournalLine(event="begin", step=key, path=path, outcome=outcome))
        self._begun[key] = outcome

    def end(
        self, key: str, path: str, outcome: StepOutcome, *, content: bytes | None = None
    ) -> None:
        """A step is over; on the disk before this returns."""
        line = JournalLine(event="end", step=key, path=path, outcome=outcome, content=content)
        self._take_end(line, self._append(line))

    def content(self, path: str) -> bytes | None:
        """The file as steps for a patch have left it, None if they have not, or it is gone."""
        offset = self.history(path).content_offset
        if offset is None:
            return None
        with self._lock:
            self._stream.seek(offset)
            line = msgspec.json.decode(self._stream.readline(), type=JournalLine)
        return line.content

    def _take_end(self, line: JournalLine, offset: int) -> None:
        self._outcomes[line.step] = line.outcome
        self._begun.pop(line.step, None)
        content_offset = None if line.content is None else offset
        self.history(line.path).note(line.outcome, content_offset=content_offset)

    def _append(self, line: JournalLine | JournalHead) -> int:
        """Where the line begins, which is on the disk now."""
        content = msgspec.json.encode(line) + b"\n"
        with self._lock:
            offset = self._stream.seek(0, os.SEEK_END)
            self._stream.write(content)
            self._stream.flush()
            os.fsync(self._stream.fileno())
        return offset

    def _load(self, path: Path, head: JournalHead) -> None:
        """Take in what is there, and cut off a last line that is not whole."""
        first = self._stream.readline()
        if not first.endswith(b"\n"):
            self._stream.truncate(0)
            self._append(head)
            _sync_folder(path)
            return
        _check_head(path, first, head)
        offset = len(first)
        for content in self._stream:
            if not content.endswith(b"\n"):
                break
            self._take(path, content, offset)
            offset += len(content)
        self._stream.truncate(offset)

    def _take(self, path: Path, content: bytes, offset: int) -> None:
        try:
            line = msgspec.json.decode(content, type=JournalLine)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(
                f"{path} is damaged at byte {offset}: {error}; see which edits are done, and name"
                " another journal"
            ) from error
        if line.event == "end":
            self._take_end(line, offset)
        else:
            self._begun[line.step] = line.outcome


def _check_head(path: Path, content: bytes, head: JournalHead) -> None:
    remedy = "name another one by --journal, or remove it to begin again"
    try:
        found = msgspec.json.decode(content, type=JournalHead)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is no journal of a batch; {remedy}") from error
    for name in ("format", "edits_sha256", "root", "mode", "accepts_review"):
        there, here = getattr(found, name), getattr(head, name)
        if there != here:
            raise InputError(
                f"{path} is the journal of another batch: its {name} is {there!r}, not {here!r};"
                f" {remedy}"
            )


def _sync_folder(path: Path) -> None:
    """Make a new file's name outlive a loss of power, where folders can be synced."""
    if os.name == "nt":
        return
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
