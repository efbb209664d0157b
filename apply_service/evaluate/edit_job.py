"""What the processes of `bench tune` are asked, and the process that stands for one of them."""

from __future__ import annotations

import msgspec

from apply_service.apply.edit_request import Constraint
from apply_service.config import Settings
from apply_service.evaluate.cases.case_file import Case
from apply_service.evaluate.edit_session import GroupTiming
from apply_service.evaluate.worker_process import WorkerProcess


class EditJob(msgspec.Struct, frozen=True, kw_only=True):
    """Cases to run at the same time; with a salt of their own nothing of them was computed yet."""

    cases: tuple[Case, ...]
    salt: str
    constraint: Constraint | None = None


class EditProcess(WorkerProcess[EditJob, GroupTiming]):
    """An engine with settings of its own, idle between jobs. Ends with the block."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(
            "apply_service.evaluate.edit_worker",
            [msgspec.json.encode(settings).decode()],
            answer_type=GroupTiming,
        )
