"""A batch in progress: files side by side, the steps of each file one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence

from apply_client.async_client import AsyncApplyClient
from apply_client.batch.edits_file import BatchFile, Step, StepEdit
from apply_client.batch.journal import Journal, StepOutcome
from apply_client.batch.store import BatchStore
from apply_client.edit import ApplyOptions, Edit
from apply_client.errors import (
    APIConnectionError,
    ApplyClientError,
    BadRequestError,
    EditRejectedError,
    RateLimitError,
    ServerError,
    TooLargeError,
    UnknownChoiceError,
    UnprocessableEditError,
)
from apply_client.workspace.errors import ContentConflictError, FileAccessError, WorkspaceError
from apply_client.workspace.folder import sha256_of
from apply_client.workspace.write_policy import WritePolicy

# Errors that another run may not meet again; the step is left as it was.
UNFINISHED_ERRORS = (APIConnectionError, ServerError, RateLimitError, FileAccessError)

Report = Callable[[StepEdit, StepOutcome | ApplyClientError], None]


class BatchWork:
    """Does the steps that the journal lacks; `report` hears of each, in any order.

    `answers` are ids of choices by step: a step in doubt that has one is done again.
    """

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
        answers: Mapping[str, str] | None = None,
    ) -> None:
        self._client = client
        self._batch = batch
        self._journal = journal
        self._store = store
        self._policy = policy
        self._options = options
        self._report = report
        self._answers = answers or {}
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
        known = self._journal.outcomes.get(step.key)
        is_answered = known is not None and known.is_answered_by(self._answers.get(step.key))
        is_interrupted = self._journal.begun(step.key) is not None
        if known is not None and not (is_answered or is_interrupted):
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
            outcome, content = await self._result(edit, before, self._answers.get(step.key))
            if outcome.is_written:
                return await asyncio.to_thread(self._store.change, step, outcome, content)
        except UNFINISHED_ERRORS:
            raise
        except UnknownChoiceError as error:
            outcome = _question(error, before)
        except (BadRequestError, TooLargeError, UnprocessableEditError, WorkspaceError) as error:
            outcome = _failure(error, before)
        await asyncio.to_thread(self._journal.end, step.key, step.path, outcome)
        return outcome

    async def _result(
        self, edit: StepEdit, before: bytes | None, resolve: str | None
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
        result = await self._client.apply_edit(
            Edit(
                before,
                change.text,
                path=change.path,
                instruction=edit.instruction,
                options=self._options,
                resolve=resolve,
            )
        )
        is_written = self._policy.would_write(result.status)
        outcome = StepOutcome(
            status=result.status,
            before=before_sha256,
            after=sha256_of(result.merged) if is_written else before_sha256,
            is_written=is_written,
            findings=result.findings,
            choices=() if is_written else result.choices,
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
        return StepOutcome(
            status="rejected", before=sha256, findings=error.findings, choices=error.choices
        )
    if isinstance(error, UnprocessableEditError):
        return StepOutcome(
            status="rejected", before=sha256, message=str(error), choices=error.choices
        )
    return StepOutcome(status="failed", before=sha256, message=str(error))


def _question(error: UnknownChoiceError, before: bytes | None) -> StepOutcome:
    """The outcome of a step whose answer does not fit what the file is now."""
    return StepOutcome(
        status="needs_review",
        before=None if before is None else sha256_of(before),
        message="the answer is none of the choices that the edit has now",
        choices=error.choices,
    )
