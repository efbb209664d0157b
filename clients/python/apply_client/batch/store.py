"""Where a batch finds its files and leaves its results: the files themselves, or a journal.

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
    """Reads files as the steps before have left them, and takes what a step makes of them."""

    def read(self, path: str) -> bytes | None:
        """The file, None if there is none. Raises WorkspaceError."""
        ...

    def change(self, step: Step, outcome: StepOutcome, content: bytes | None) -> StepOutcome:
        """Record the step and change its file, None removes it; the outcome, with what was lost.

        Raises WorkspaceError.
        """
        ...

    def try_recover(self, step: Step) -> StepOutcome | None:
        """The outcome of a step that was interrupted and turns out to be over."""
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
        """Begin, write in one step, end."""
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
        """See by the file whether an interrupted step has written it.

        As it was `before`, the step is to be done again; as it was to be `after`, it is done.
        Anything else is the work of somebody else, on top of which nothing may be written.
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
    """Leaves the files alone: what steps make of them is kept in the journal."""

    def __init__(self, workspace: Workspace, journal: Journal) -> None:
        self._workspace = workspace
        self._journal = journal

    def read(self, path: str) -> bytes | None:
        """The file as the steps before would leave it."""
        if self._journal.history(path).is_changed:
            return self._journal.content(path)
        return read_if_there(self._workspace, path)

    def change(self, step: Step, outcome: StepOutcome, content: bytes | None) -> StepOutcome:
        """Record the file as the step makes it."""
        self._journal.end(step.key, step.path, outcome, content=content)
        return outcome

    def try_recover(self, step: Step) -> StepOutcome | None:
        """Nothing is ever half done here."""
        return None


def read_if_there(workspace: Workspace, path: str) -> bytes | None:
    """A file of the workspace, None if there is none. Raises WorkspaceError."""
    try:
        return workspace.read(path).content
    except FileMissingError:
        return None
