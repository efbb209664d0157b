"""Edits of files of a workspace: read, merged by the service, written if the policy says so."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from apply_client.async_client import AsyncApplyClient
from apply_client.edit import DEFAULT_OPTIONS, ApplyOptions
from apply_client.edit_report import EditReport
from apply_client.errors import ApplyClientError
from apply_client.file_run import FileRun, Step, failed_report
from apply_client.patch_split import FileChange, PatchError, split_patch
from apply_client.workspace import Workspace
from apply_client.write_policy import WritePolicy

MAX_CONCURRENCY = 4


@dataclass(frozen=True, slots=True)
class EditOrder:
    """One edit as it was asked for: `name` is the file, `update` may be a patch of several."""

    name: str
    update: str
    instruction: str | None = field(default=None, kw_only=True)
    expected_sha256: str | None = field(default=None, kw_only=True)


class WorkspaceEditor:
    """Carries edits out, those of one file in their order, different files at the same time."""

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
        """What became of each change, in the order in which they were asked for.

        A patch is refused whole if one of its names is. An edit that fails does not stop others.
        """
        policy = replace(self._policy, is_dry_run=self._policy.is_dry_run or is_dry_run)
        plan = [await asyncio.to_thread(self._steps_or_report, order) for order in orders]
        items = [item for steps in plan for item in steps]
        steps_by_path: defaultdict[str, list[int]] = defaultdict(list)
        for position, item in enumerate(items):
            if isinstance(item, Step):
                steps_by_path[item.path].append(position)
        reports: dict[int, EditReport] = {
            position: item for position, item in enumerate(items) if isinstance(item, EditReport)
        }

        async def follow(path: str, positions: Sequence[int]) -> None:
            run = FileRun(self._client, self._workspace, policy, self._options)
            async with self._slots, self._locks[path]:
                for position in positions:
                    step = items[position]
                    assert isinstance(step, Step), "only steps have positions here"
                    reports[position] = await run.report(step)

        async with asyncio.TaskGroup() as tasks:
            for path, positions in steps_by_path.items():
                tasks.create_task(follow(path, positions))
        return [reports[position] for position in range(len(items))]

    def _steps_or_report(self, order: EditOrder) -> Sequence[Step | EditReport]:
        try:
            return self._steps(order)
        except ApplyClientError as error:
            return [failed_report(order.name, error)]

    def _steps(self, order: EditOrder) -> list[Step]:
        """The changes of an order, all of whose names have been looked at."""
        target = self._workspace.locate(order.name)
        changes = split_patch(order.update) or (FileChange("update", order.name, order.update),)
        if len(changes) == 1 and changes[0].action == "update":
            # Agents write paths from other roots into patches; the service compares the names.
            changes = (replace(changes[0], path=order.name),)
        paths = [self._workspace.locate(change.path) for change in changes]
        if target not in paths:
            raise PatchError(
                f"the patch changes {', '.join(change.path for change in changes[:5])}, not"
                f" {order.name}; name one of its files"
            )
        return [
            Step(
                change,
                path,
                order.instruction,
                order.expected_sha256 if path == target else None,
            )
            for change, path in zip(changes, paths, strict=True)
        ]
