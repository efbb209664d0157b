"""A batch in progress: files side by side, the steps of each file one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from apply_client.async_client import AsyncApplyClient
from apply_client.batch.edits_file import BatchFile, Step, StepEdit
from apply_client.batch.journal import Journal, StepOutcome
from apply_client.batch.store import BatchStore
from apply_client.edit import ApplyOptions
from apply_client.errors import (
    APIConnectionError,
    ApplyClientError,
    BadRequestError,
    EditRejectedError,
    RateLimitError,
    ServerError,
    TooLargeError,
    UnprocessableEditError,
)
from apply_client.workspace.errors import ContentConflictError, FileAccessError, WorkspaceError
from apply_client.workspace.folder import sha256_of
from apply_client.workspace.write_policy import WritePolicy

# Errors that another run may not meet again; the step is left as it was.
UNFINISHED_ERRORS = (APIConnectionError, ServerError, RateLimitError, FileAccessError)

Report = Callable[[StepEdit, StepOutcome | ApplyClientError], None]


class BatchWork:
    """Does the steps that the journal lacks; `report` hears of each, in any order."""

    def __init__(
        self,
        client: AsyncApplyClient,
        batch: BatchFile,
        journal: Journal,
        store: BatchStore,
        *,
        policy: WritePolicy,
        options: ApplyOptions,
        report: Report,
    ) -> None:
        self._client = client
        self._batch = batch
        self._journal = journal
        self._store = store
        self._policy = policy
        self._options = options
        self._report = report
        self._is_stopped = False
        self._stop_error: ApplyClientError | None = None

    async def run(self, *, max_concurrency: int) -> None:
        """Do all steps that are left, several files at once.

        A step that has to be left unfinished holds back the later steps of its file, and if the
        service is not reachable nothing more is begun. Raises ApplyClientError for faults that
        would meet every step: a wrong key, a wrong model, an address of something else.
        """
        files = iter(self._batch.steps_by_path.values())
        async with asyncio.TaskGroup() as group:
            for _ in range(max_concurrency):
                group.create_task(self._work_through(files))
        if self._stop_error is not None:
            raise self._stop_error

    async def _work_through(self, files: Iterator[Sequence[Step]]) -> None:
        try:
            for steps in files:
                for step in steps:
                    if self._is_stopped or not await self._is_over(step):
                        break
        except ApplyClientError as error:
            self._is_stopped, self._stop_error = True, error

    async def _is_over(self, step: Step) -> bool:
        """Do a step unless it is done; true if the next one of its file may begin."""
        if step.key in self._journal.outcomes:
            return True
        edit = self._batch.read(step)
        try:
            outcome = await asyncio.to_thread(self._store.try_recover, step)
            if outcome is None:
                outcome = await self._outcome(step, edit)
        except UNFINISHED_ERRORS as error:
            self._is_stopped = self._is_stopped or isinstance(error, APIConnectionError)
            self._report(edit, error)
            return False
        self._report(edit, outcome)
        return True

    async def _outcome(self, step: Step, edit: StepEdit) -> StepOutcome:
        """The outcome of a step, recorded in the journal and in its file."""
        before = None
        try:
            before = await asyncio.to_thread(self._store.read, step.path)
            self._check_expected(step, edit, before)
            outcome, content = await self._result(edit, before)
            if outcome.is_written:
                return await asyncio.to_thread(self._store.change, step, outcome, content)
        except UNFINISHED_ERRORS:
            raise
        except (BadRequestError, TooLargeError, UnprocessableEditError, WorkspaceError) as error:
            outcome = _failure(error, before)
        await asyncio.to_thread(self._journal.end, step.key, step.path, outcome)
        return outcome

    async def _result(
        self, edit: StepEdit, before: bytes | None
    ) -> tuple[StepOutcome, bytes | None]:
        """The outcome of a change, and the changed file. Raises ApplyClientError."""
        change = edit.change
        if change.action == "add":
            if before is not None:
                raise _refused(edit, "exists already; edit it instead")
            content = change.text.encode()
            return StepOutcome(status="added", after=sha256_of(content), is_written=True), content
        if before is None:
            raise _refused(edit, "does not exist; see --root, or add it by a patch")
        before_sha256 = sha256_of(before)
        if change.action == "delete":
            return StepOutcome(status="removed", before=before_sha256, is_written=True), None
        result = await self._client.apply(
            before,
            change.text,
            path=change.path,
            instruction=edit.instruction,
            options=self._options,
        )
        is_written = self._policy.would_write(result.status)
        outcome = StepOutcome(
            status=result.status,
            before=before_sha256,
            after=sha256_of(result.merged) if is_written else before_sha256,
            is_written=is_written,
            findings=result.findings,
        )
        return outcome, result.merged

    def _check_expected(self, step: Step, edit: StepEdit, before: bytes | None) -> None:
        """Check that the file is as expected, or was so before this batch changed it.

        Raises ContentConflictError.
        """
        if edit.expected_sha256 is None:
            return
        expected = edit.expected_sha256.strip().lower()
        found = None if before is None else sha256_of(before)
        history = self._journal.history(step.path)
        is_ours = history.is_known and history.left == found and history.start == expected
        if found != expected and not is_ours:
            raise ContentConflictError(
                edit.change.path,
                f"has changed: its SHA-256 is {found}, {expected} was expected; make the edit for"
                " what the file is now",
            )


def _refused(edit: StepEdit, problem: str) -> WorkspaceError:
    return WorkspaceError(edit.change.path, problem)


def _failure(error: ApplyClientError, before: bytes | None) -> StepOutcome:
    """The outcome of a step for a refusal that every run would meet again."""
    sha256 = None if before is None else sha256_of(before)
    if isinstance(error, ContentConflictError):
        return StepOutcome(status="content_conflict", before=sha256, message=str(error))
    if isinstance(error, EditRejectedError):
        return StepOutcome(status="rejected", before=sha256, findings=error.findings)
    is_rejected = isinstance(error, UnprocessableEditError)
    status: Literal["rejected", "failed"] = "rejected" if is_rejected else "failed"
    return StepOutcome(status=status, before=sha256, message=str(error))
