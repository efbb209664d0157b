"""The changes of one file in one call: planned in order, each on the result of the one before."""

from __future__ import annotations

import asyncio
import difflib
from dataclasses import dataclass
from typing import Literal

from apply_client.async_client import AsyncApplyClient
from apply_client.careful_files.file_rights import FileRights
from apply_client.edit import ApplyOptions, Edit
from apply_client.errors import APIStatusError, ApplyClientError, EditRejectedError
from apply_client.workspace.edit_report import EditReport
from apply_client.workspace.errors import FileMissingError, FilePresentError
from apply_client.workspace.folder import Workspace, check_expected, sha256_of
from apply_client.workspace.patch_split import FileChange
from apply_client.workspace.write_policy import WritePolicy


@dataclass(frozen=True, slots=True)
class Step:
    """One change of one file; `path` leads to the file without links."""

    change: FileChange
    path: str
    instruction: str | None
    expected_sha256: str | None
    resolve: str | None = None

    @property
    def name(self) -> str:
        """The file's name in the request."""
        return self.change.path


class NotUndoneError(ApplyClientError):
    """A file of a patch stays written although another file of the patch failed."""


@dataclass(frozen=True, slots=True)
class _Change:
    """The old and the new content of a file; None stands for no file."""

    name: str
    before: bytes | None
    after: bytes | None


class FileRun:
    """The steps of one file in one call: planned in turn, then written in one step.

    A dry run keeps what it would have written, for the steps that come later.
    """

    def __init__(
        self,
        client: AsyncApplyClient,
        workspace: Workspace,
        policy: WritePolicy,
        options: ApplyOptions,
    ) -> None:
        self._client = client
        self._workspace = workspace
        self._policy = policy
        self._options = options
        # The file before the first step, and as it was found or left last.
        self._start_sha256: str | None = None
        self._left_sha256: str | None = None
        self._change: _Change | None = None
        self._removed_rights: FileRights | None = None

    @property
    def is_removal(self) -> bool:
        """True if the file will be removed."""
        return self._change is not None and self._change.after is None

    async def plan(self, step: Step) -> EditReport:
        """Plan a step and report its outcome if the file is written; problems are in the report."""
        try:
            if step.change.action == "add":
                return await self._plan_new(step)
            if step.change.action == "delete":
                return await self._plan_removal(step)
            return await self._plan_update(step)
        except EditRejectedError as error:
            return EditReport(
                name=step.name,
                status="rejected",
                fate="was not written: the result failed its checks",
                findings=error.findings,
                choices=error.choices,
            )
        except ApplyClientError as error:
            return failed_report(step.name, error)

    def forget(self) -> None:
        """Forget the plan, unless this is a dry run, which continues from there."""
        if not self._policy.is_dry_run:
            self._change = None

    def write(self) -> tuple[str, ...]:
        """Write the planned file; return losses in words.

        Raises WorkspaceError; then the file is as it was.
        """
        change = self._change
        if change is None or self._policy.is_dry_run or change.before == change.after:
            return ()
        if change.before is None:
            assert change.after is not None, "a file that was not there is not removed"
            self._workspace.add(change.name, change.after)
            losses: tuple[str, ...] = ()
        else:
            losses = self._change_file(change.name, change.before, change.after)
        self._left_sha256 = None if change.after is None else sha256_of(change.after)
        return losses

    def undo(self) -> None:
        """Restore the file from before `write`. Raises WorkspaceError."""
        change = self._change
        if change is None or change.before == change.after:
            return
        if change.before is None:
            assert change.after is not None, "it was written"
            self._workspace.remove(change.name, expected_sha256=sha256_of(change.after))
        elif change.after is None:
            self._workspace.add(change.name, change.before, rights=self._removed_rights)
        else:
            self._change_file(change.name, change.after, change.before)
        self._left_sha256 = None if change.before is None else sha256_of(change.before)

    def _change_file(self, name: str, before: bytes, after: bytes | None) -> tuple[str, ...]:
        expected_sha256 = sha256_of(before)
        if after is not None:
            return self._workspace.replace(name, after, expected_sha256=expected_sha256)
        self._removed_rights = self._workspace.remove(name, expected_sha256=expected_sha256)
        return ()

    async def _plan_update(self, step: Step) -> EditReport:
        content = await self._read(step)
        await asyncio.to_thread(self._workspace.check_replaceable, step.name)
        edit = Edit(
            content,
            step.change.text,
            path=step.path,
            instruction=step.instruction,
            options=self._options,
            resolve=step.resolve,
        )
        result = await self._client.apply_edit(edit)
        is_written = self._policy.is_written(result.status)
        if self._policy.would_write(result.status):
            self._plan_change(step, content, result.merged)
        return EditReport(
            name=step.name,
            status=result.status,
            fate=self._policy.fate(result.status),
            is_written=is_written,
            is_dry_run=self._policy.is_dry_run,
            diff=result.diff or "",
            findings=result.findings,
            choices=result.choices,
            sha256=sha256_of(result.merged) if is_written else self._left_sha256,
        )

    async def _read(self, step: Step) -> bytes:
        """The file at the start of the step; a caller may know it from before the call."""
        if self._change is None:
            content: bytes | None = (
                await asyncio.to_thread(self._workspace.read, step.name)
            ).content
        else:
            content = self._change.after
        if content is None:
            raise FileMissingError(step.name, "is removed by an edit before this one")
        sha256 = sha256_of(content)
        start_sha256 = self._start_sha256 or sha256
        self._start_sha256 = start_sha256
        is_as_left = self._change is not None or self._left_sha256 in (None, sha256)
        if step.expected_sha256 and not (is_as_left and step.expected_sha256 == start_sha256):
            check_expected(step.name, sha256, step.expected_sha256)
        if self._change is None:
            self._left_sha256 = sha256
        return content

    async def _plan_new(self, step: Step) -> EditReport:
        content = step.change.text.encode()
        is_gone = self.is_removal
        if not is_gone and (
            self._change or await asyncio.to_thread(self._workspace.has, step.name)
        ):
            raise FilePresentError(step.name, "exists already; edit it instead")
        self._plan_change(step, None, content)
        return self._report_whole(step, "added", b"", content)

    async def _plan_removal(self, step: Step) -> EditReport:
        content = await self._read(step)
        await asyncio.to_thread(self._workspace.check_removable, step.name)
        self._plan_change(step, content, None)
        return self._report_whole(step, "removed", content, b"")

    def _plan_change(self, step: Step, before: bytes | None, after: bytes | None) -> None:
        if self._change is not None:
            before = self._change.before
        self._change = _Change(step.name, before, after)

    def _report_whole(
        self, step: Step, status: Literal["added", "removed"], before: bytes, after: bytes
    ) -> EditReport:
        """Report a file that is new or removed."""
        is_dry_run = self._policy.is_dry_run
        return EditReport(
            name=step.name,
            status=status,
            fate=f"was not {status}: this was a dry run" if is_dry_run else f"was {status}",
            is_written=not is_dry_run,
            is_dry_run=is_dry_run,
            diff=_diff(before, after, step.path),
            sha256=sha256_of(after) if status == "added" and not is_dry_run else None,
        )


def failed_report(name: str, error: ApplyClientError) -> EditReport:
    """The report of an edit without a result."""
    choices = error.choices if isinstance(error, APIStatusError) else ()
    return EditReport(
        name=name, status="failed", fate="was not written", error=error, choices=choices
    )


def _diff(before: bytes, after: bytes, path: str) -> str:
    old, new = (content.decode("utf-8", "replace").splitlines() for content in (before, after))
    names = (f"a/{path}" if before else "/dev/null", f"b/{path}" if after else "/dev/null")
    return "".join(f"{line}\n" for line in difflib.unified_diff(old, new, *names, lineterm=""))
