"""The changes of one patch, written all or none.

All are planned before the first file is written.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from apply_client.errors import ApplyClientError
from apply_client.workspace.edit_report import EditReport
from apply_client.workspace.errors import WorkspaceError
from apply_client.workspace.file_run import FileRun, NotUndoneError, Step, failed_report
from apply_client.workspace.patch_split import PatchError
from apply_client.workspace.write_policy import WritePolicy


class PatchRun:
    """One order of one or more steps; `runs` has the results of earlier steps by file."""

    def __init__(
        self,
        steps: Sequence[Step],
        runs: Mapping[str, FileRun],
        policy: WritePolicy,
        slots: asyncio.Semaphore,
    ) -> None:
        self._steps = steps
        self._runs = runs
        self._policy = policy
        self._slots = slots

    async def reports(self) -> list[EditReport]:
        """Plan the steps, write their files, and report each."""
        planned = await self._planned()
        try:
            if any(map(self._blocks, planned)):
                return self._withheld(planned)
            # A thread goes on to the end of the patch, even if nobody waits for it any more.
            return await asyncio.to_thread(self._written, planned)
        finally:
            for step in self._steps:
                self._runs[step.path].forget()

    async def _planned(self) -> list[EditReport]:
        """Plan the steps of each file one after the other, different files side by side."""
        positions: defaultdict[str, list[int]] = defaultdict(list)
        for position, step in enumerate(self._steps):
            positions[step.path].append(position)
        reports: dict[int, EditReport] = {}

        async def plan_file(path: str) -> None:
            async with self._slots:
                for position in positions[path]:
                    reports[position] = await self._runs[path].plan(self._steps[position])

        async with asyncio.TaskGroup() as tasks:
            for path in positions:
                tasks.create_task(plan_file(path))
        return [reports[position] for position in range(len(self._steps))]

    def _blocks(self, report: EditReport) -> bool:
        """True if this report keeps the whole patch from being written."""
        if report.status == "needs_review":
            return not self._policy.would_write(report.status)
        return report.status in ("rejected", "failed")

    def _withheld(self, planned: Sequence[EditReport]) -> list[EditReport]:
        """Reports of a patch that is not written because of some of its changes."""
        names = [report.name for report in planned if self._blocks(report)]
        return [
            report if self._blocks(report) else _left_out(report.name, names) for report in planned
        ]

    def _written(self, planned: Sequence[EditReport]) -> list[EditReport]:
        reports = {step.path: report for step, report in zip(self._steps, planned, strict=True)}
        losses: dict[str, tuple[str, ...]] = {}
        for path in self._paths():
            try:
                losses[path] = self._runs[path].write()
            except WorkspaceError as error:
                failed = failed_report(reports[path].name, error)
                return self._undone(planned, list(losses), path, failed)
        last = {step.path: position for position, step in enumerate(self._steps)}
        return [
            replace(report, losses=losses[step.path]) if last[step.path] == position else report
            for position, (step, report) in enumerate(zip(self._steps, planned, strict=True))
        ]

    def _paths(self) -> Iterator[str]:
        """The files in the order of writing; removals come last."""
        paths = list(dict.fromkeys(step.path for step in self._steps))
        return iter(sorted(paths, key=lambda path: self._runs[path].is_removal))

    def _undone(
        self,
        planned: Sequence[EditReport],
        written: Sequence[str],
        failed_path: str,
        failed: EditReport,
    ) -> list[EditReport]:
        """Undo the files written before one failed."""
        stuck: dict[str, EditReport] = {}
        for path in reversed(written):
            try:
                self._runs[path].undo()
            except WorkspaceError as error:
                stuck[path] = _not_undone(path, failed.name, error)
        reports = []
        for step, report in zip(self._steps, planned, strict=True):
            if step.path == failed_path:
                reports.append(failed)
            else:
                reports.append(stuck.get(step.path) or _left_out(report.name, [failed.name]))
        return reports


def _left_out(name: str, blocking: Sequence[str]) -> EditReport:
    names = ", ".join(f"{one!a:.200}" for one in blocking[:3]) + (" …" if blocking[3:] else "")
    reason = f"nothing of the patch was written, because of {names}; send all of it again"
    return failed_report(name, PatchError(reason))


def _not_undone(path: str, failed: str, error: ApplyClientError) -> EditReport:
    reason = f"{failed!a:.200} of the same patch could not be written, and then: {error}"
    return EditReport(
        name=path,
        status="failed",
        fate="was written and could not be taken back",
        is_written=True,
        error=NotUndoneError(reason),
    )
