"""Edits of files of a workspace: read, merged by the service, written if the policy says so."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace

from apply_client.async_client import AsyncApplyClient
from apply_client.edit import DEFAULT_OPTIONS, ApplyOptions
from apply_client.errors import ApplyClientError
from apply_client.shown_text import shown_line
from apply_client.workspace.edit_report import EditReport
from apply_client.workspace.file_run import FileRun, Step, failed_report
from apply_client.workspace.folder import Workspace
from apply_client.workspace.patch_run import PatchRun
from apply_client.workspace.patch_split import FileChange, PatchError, split_patch
from apply_client.workspace.write_policy import WritePolicy

MAX_CONCURRENCY = 4


@dataclass(frozen=True, slots=True)
class EditOrder:
    """One requested edit: `name` is the file, `update` may be a patch of several.

    `resolve` is the id of a choice that the edit of this file was answered with.
    """

    name: str
    update: str
    instruction: str | None = field(default=None, kw_only=True)
    expected_sha256: str | None = field(default=None, kw_only=True)
    resolve: str | None = field(default=None, kw_only=True)


class WorkspaceEditor:
    """Carries edits out: those of one file in order, those of different files side by side.

    A patch of several files is written whole or not at all.
    """

    def __init__(
        self,
        client: AsyncApplyClient,
        workspace: Workspace,
        policy: WritePolicy,
        *,
        options: ApplyOptions = DEFAULT_OPTIONS,
    ) -> None:
        self._client = client
        self._workspace = workspace
        self._policy = policy
        self._options = options
        self._slots = asyncio.Semaphore(MAX_CONCURRENCY)
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def carry_out(
        self, orders: Sequence[EditOrder], *, is_dry_run: bool = False
    ) -> list[EditReport]:
        """Carry edits out; return a report of each change, in the order of the requests.

        An edit that fails does not stop others; a patch of which one file fails is not written.
        """
        policy = replace(self._policy, is_dry_run=self._policy.is_dry_run or is_dry_run)
        plan = [await asyncio.to_thread(self._steps_or_report, order) for order in orders]
        reports: dict[int, list[EditReport]] = {
            number: [item] for number, item in enumerate(plan) if isinstance(item, EditReport)
        }
        steps = {
            number: item for number, item in enumerate(plan) if not isinstance(item, EditReport)
        }

        async def follow(numbers: Sequence[int]) -> None:
            paths = {step.path for number in numbers for step in steps[number]}
            runs = {
                path: FileRun(self._client, self._workspace, policy, self._options)
                for path in paths
            }
            async with AsyncExitStack() as locks:
                for path in sorted(paths):  # in one order, so that no two calls wait for each other
                    await locks.enter_async_context(self._locks[path])
                for number in numbers:
                    patch = PatchRun(steps[number], runs, policy, self._slots)
                    reports[number] = await patch.reports()

        async with asyncio.TaskGroup() as tasks:
            for numbers in _chains({n: {step.path for step in one} for n, one in steps.items()}):
                tasks.create_task(follow(numbers))
        return [report for number in range(len(plan)) for report in reports[number]]

    def _steps_or_report(self, order: EditOrder) -> Sequence[Step] | EditReport:
        try:
            return self._steps(order)
        except ApplyClientError as error:
            return failed_report(order.name, error)

    def _steps(self, order: EditOrder) -> list[Step]:
        """The changes of an order, after a check of all their names."""
        target = self._workspace.locate(order.name)
        changes = split_patch(order.update) or (FileChange("update", order.name, order.update),)
        if len(changes) == 1 and changes[0].action == "update":
            # Agents write paths from other roots into patches; the service compares the names.
            changes = (replace(changes[0], path=order.name),)
        paths = [self._workspace.locate(change.path) for change in changes]
        if target not in paths:
            raise PatchError(
                f"the patch changes {', '.join(shown_line(one.path) for one in changes[:5])}, not"
                f" {shown_line(order.name)}; name one of its files"
            )
        return [
            Step(
                change,
                path,
                order.instruction,
                order.expected_sha256 if path == target else None,
                order.resolve if path == target else None,
            )
            for change, path in zip(changes, paths, strict=True)
        ]


def _chains(paths_by_number: Mapping[int, set[str]]) -> list[list[int]]:
    """The numbers in groups that share a path, directly or through others; each group in order."""
    chains: list[tuple[list[int], set[str]]] = []
    for number, paths in paths_by_number.items():
        joined = [chain for chain in chains if chain[1] & paths]
        chains = [chain for chain in chains if not chain[1] & paths]
        numbers = sorted([number, *(one for chain in joined for one in chain[0])])
        chains.append((numbers, paths.union(*(chain[1] for chain in joined))))
    return [numbers for numbers, _ in chains]
