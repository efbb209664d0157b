"""The place where a batch reads its files and leaves its results: the disk, or a journal.

Both change a file once for each step, whenever the process is killed.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from apply_client.batch.edits_file import Step
from apply_client.batch.journal import Journal, StepOutcome
from apply_client.workspace.errors import FileMissingError
from apply_client.workspace.folder import Workspace, sha256_of


class BatchStore(Protocol):
    """Reads files as the earlier steps have left them, and stores the results of steps."""

    def read(self, path: str) -> bytes | None:
        """The file's bytes, None if there is no file. Raises WorkspaceError."""
        ...

    def change(self, step: Step, outcome: StepOutcome, content: bytes | None) -> StepOutcome:
        """Record the step and change its file, None removes it; return the outcome with losses.

        Raises WorkspaceError.
        """
        ...

    def try_recover(self, step: Step) -> StepOutcome | None:
        """The outcome of a step that was interrupted and turns out to be done."""
        ...


class DiskStore:
    """Writes files in place, each after the journal says that it will be written."""

    def __init__(self, workspace: Workspace, journal: Journal) -> None:
        self._workspace = workspace
        self._journal = journal

    def read(self, path: str) -> bytes | None:
        """The file as it is on the disk."""
        return read_if_there(self._workspace, path)

    def change(self, step: Step, outcome: StepOutcome, content: bytes | None) -> StepOutcome:
        """Record the beginning, write in one step, record the end."""
        self._journal.begin(step.key, step.path, outcome)
        if content is None:
            assert outcome.before is not None, "what is removed was there"
            self._workspace.remove(step.path, expected_sha256=outcome.before)
        elif outcome.before is None:
            self._workspace.add(step.path, content)
        else:
            losses = self._workspace.replace(step.path, content, expected_sha256=outcome.before)
            if losses:
                outcome = msgspec.structs.replace(outcome, message="; ".join(losses))
        self._journal.end(step.key, step.path, outcome)
        return outcome

    def try_recover(self, step: Step) -> StepOutcome | None:
        """Tell from the file if an interrupted step has written it.

        If the file is as `before`, the step is to be done again; if as `after`, it is done.
        Anything else is the work of another program, which must not be overwritten.
        """
        begun = self._journal.begun(step.key)
        if begun is None:
            return None
        content = self.read(step.path)
        found = None if content is None else sha256_of(content)
        if found == begun.before:
            return None
        if found != begun.after:
            begun = StepOutcome(
                status="content_conflict",
                before=found,
                message="the work was interrupted while the file was written, and it is now"
                " neither as before nor as after the edit",
            )
        self._journal.end(step.key, step.path, begun)
        return begun


class PatchStore:
    """Leaves the files alone and keeps the results in the journal."""

    def __init__(self, workspace: Workspace, journal: Journal) -> None:
        self._workspace = workspace
        self._journal = journal

    def read(self, path: str) -> bytes | None:
        """The file as the earlier steps would leave it."""
        if self._journal.history(path).is_changed:
            return self._journal.content(path)
        return read_if_there(self._workspace, path)

    def change(self, step: Step, outcome: StepOutcome, content: bytes | None) -> StepOutcome:
        """Record the file as the step leaves it."""
        self._journal.end(step.key, step.path, outcome, content=content)
        return outcome

    def try_recover(self, step: Step) -> StepOutcome | None:
        """Return None: a step is never left half done here."""
        return None


def read_if_there(workspace: Workspace, path: str) -> bytes | None:
    """The bytes of a workspace file, None if there is no file. Raises WorkspaceError."""
    try:
        return workspace.read(path).content
    except FileMissingError:
        return None
