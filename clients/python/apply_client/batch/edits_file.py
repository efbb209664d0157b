"""EDITS.jsonl: one edit a line, checked whole before the first edit and read again line by line.

Only the positions of the edits are kept in memory, so the file may be larger than the memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import msgspec

from apply_client.errors import ApplyClientError
from apply_client.regular_file import open_regular
from apply_client.shown_text import shortened, shown_line
from apply_client.update_text import InputError, file_error
from apply_client.workspace.folder import Workspace
from apply_client.workspace.patch_split import FileChange, split_patch

_MAX_SHOWN_ERRORS = 10


class EditLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line: the file, the part of it to edit, and the state the file must have."""

    path: str
    update: str
    id: str | None = None
    instruction: str | None = None
    expected_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """One change of one file: a whole line, or one file of a line's patch.

    `key` names the step in the journal: the number of its line, for a patch of several files
    followed by the place of the file. `path` is the file with links resolved.
    """

    key: str
    path: str
    offset: int
    part: int


@dataclass(frozen=True, slots=True)
class StepEdit:
    """The edit of a step; `label` names it for people."""

    change: FileChange
    instruction: str | None
    expected_sha256: str | None
    label: str


class BatchFile:
    """A checked file of edits, open for reading; a `with` block closes it."""

    def __init__(self, path: Path, workspace: Workspace) -> None:
        """Read and check every line. Raises InputError with the first wrong lines."""
        self._workspace = workspace
        self._name = path.name
        self.steps_by_path: dict[str, list[Step]] = {}
        self.num_steps = 0
        try:
            self._stream = open_regular(path)
        except OSError as error:
            raise file_error(f"read {shown_line(path)}", error) from error
        try:
            self.sha256 = self._scan()
        except BaseException:
            self._stream.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._stream.close()

    def read(self, step: Step) -> StepEdit:
        """The edit of a step."""
        self._stream.seek(step.offset)
        line = _decode(self._stream.readline())
        changes = _changes_of(line)
        change = changes[step.part]
        name = f"{self._name}:{step.key}" + (f" ({line.id})" if line.id else "")
        return StepEdit(
            change,
            line.instruction,
            line.expected_sha256 if change.path == line.path else None,
            f"{name} {change.path}",
        )

    def _scan(self) -> str:
        """Note the position of every step; return the hash of the file."""
        digest = hashlib.sha256()
        errors: list[str] = []
        offset = 0
        for number, content in enumerate(self._stream, start=1):
            digest.update(content)
            if content.strip():
                try:
                    for step in self._steps_of(content, number, offset):
                        self.steps_by_path.setdefault(step.path, []).append(step)
                        self.num_steps += 1
                except (ApplyClientError, msgspec.DecodeError, UnicodeDecodeError) as error:
                    errors.append(f"  line {number}: {shortened(str(error), 400)}")
            offset += len(content)
        if errors:
            more = len(errors) - _MAX_SHOWN_ERRORS
            shown = [*errors[:_MAX_SHOWN_ERRORS], *([f"  and {more} more"] if more > 0 else [])]
            raise InputError(
                f"{self._name}: {len(errors)} of its lines can not be used; nothing was done\n"
                + "\n".join(shown)
            )
        return digest.hexdigest()

    def _steps_of(self, content: bytes, number: int, offset: int) -> Iterator[Step]:
        changes = _changes_of(_decode(content))
        paths = [self._workspace.locate(change.path) for change in changes]
        for part, path in enumerate(paths):
            key = str(number) if len(paths) == 1 else f"{number}.{part + 1}"
            yield Step(key, path, offset, part)


def _decode(content: bytes) -> EditLine:
    return msgspec.json.decode(content, type=EditLine)


def _changes_of(line: EditLine) -> tuple[FileChange, ...]:
    """The changes of single files in a line. Raises PatchError."""
    changes = split_patch(line.update)
    if changes is None or (len(changes) == 1 and changes[0].action == "update"):
        # Agents write paths from other roots into patches; the line says which file it is.
        text = line.update if changes is None else changes[0].text
        return (FileChange("update", line.path, text),)
    return changes
