"""The changes of one file in one call: in order, each on the result of the one before."""

from __future__ import annotations

import asyncio
import difflib
from dataclasses import dataclass
from typing import Literal

from apply_client.async_client import AsyncApplyClient
from apply_client.edit import ApplyOptions
from apply_client.edit_report import EditReport
from apply_client.errors import ApplyClientError, EditRejectedError
from apply_client.patch_split import FileChange
from apply_client.workspace import Workspace, WorkspaceFile, check_expected, sha256_of
from apply_client.workspace_errors import FilePresentError
from apply_client.write_policy import WritePolicy


@dataclass(frozen=True, slots=True)
class Step:
    """One change of one file; `path` leads to the file without links."""

    change: FileChange
    path: str
    instruction: str | None
    expected_sha256: str | None

    @property
    def name(self) -> str:
        """The file as it was asked for."""
        return self.change.path


class FileRun:
    """Carries the steps of one file out. A dry run keeps what it would have written."""

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
        # The file before the first step, and as the last one left it.
        self._start_sha256: str | None = None
        self._left_sha256: str | None = None
        self._kept: bytes | None = None

    async def report(self, step: Step) -> EditReport:
        """What became of a step; whatever goes wrong with it is in the report."""
        try:
            if step.change.action == "add":
                return await self._add(step)
            if step.change.action == "delete":
                return await self._remove(step)
            return await self._update(step)
        except EditRejectedError as error:
            return EditReport(
                name=step.name,
                status="rejected",
                fate="was not written: the result failed its checks",
                findings=error.findings,
            )
        except ApplyClientError as error:
            return failed_report(step.name, error)

    async def _update(self, step: Step) -> EditReport:
        file = await self._read(step)
        result = await self._client.apply(
            file.content,
            step.change.text,
            path=file.path,
            instruction=step.instruction,
            options=self._options,
        )
        is_written = self._policy.is_written(result.status)
        if is_written:
            await asyncio.to_thread(
                self._workspace.replace, step.name, result.merged, expected_sha256=file.sha256
            )
            self._left_sha256 = sha256_of(result.merged)
        elif self._policy.would_write(result.status):
            self._kept = result.merged
        return EditReport(
            name=step.name,
            status=result.status,
            fate=self._policy.fate(result.status),
            is_written=is_written,
            is_dry_run=self._policy.is_dry_run,
            diff=result.diff or "",
            findings=result.findings,
            sha256=self._left_sha256,
        )

    async def _read(self, step: Step) -> WorkspaceFile:
        """The file as the step finds it; a caller may know it from before the call."""
        if self._kept is not None:
            return WorkspaceFile(step.path, self._kept)
        file = await asyncio.to_thread(self._workspace.read, step.name)
        start_sha256 = self._start_sha256 or file.sha256
        self._start_sha256 = start_sha256
        is_as_left = self._left_sha256 in (None, file.sha256)
        if step.expected_sha256 and not (is_as_left and step.expected_sha256 == start_sha256):
            check_expected(step.name, file.sha256, step.expected_sha256)
        self._left_sha256 = file.sha256
        return file

    async def _add(self, step: Step) -> EditReport:
        content = step.change.text.encode()
        if self._policy.is_dry_run:
            if await asyncio.to_thread(self._workspace.has, step.name):
                raise FilePresentError(step.name, "exists already; edit it instead")
        else:
            await asyncio.to_thread(self._workspace.add, step.name, content)
        return self._report_whole(step, "added", b"", content)

    async def _remove(self, step: Step) -> EditReport:
        file = await self._read(step)
        if not self._policy.is_dry_run:
            await asyncio.to_thread(self._workspace.remove, step.name, expected_sha256=file.sha256)
        return self._report_whole(step, "removed", file.content, b"")

    def _report_whole(
        self, step: Step, status: Literal["added", "removed"], before: bytes, after: bytes
    ) -> EditReport:
        """A file that is new or gone."""
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
    """The report of an edit that never had a result."""
    return EditReport(name=name, status="failed", fate="was not written", error=error)


def _diff(before: bytes, after: bytes, path: str) -> str:
    old, new = (content.decode("utf-8", "replace").splitlines() for content in (before, after))
    names = (f"a/{path}" if before else "/dev/null", f"b/{path}" if after else "/dev/null")
    return "".join(f"{line}\n" for line in difflib.unified_diff(old, new, *names, lineterm=""))
