"""A replica of `benchmarks cache`: a process that starts with nothing in memory."""

from __future__ import annotations

import msgspec

from apply_service.evaluate.worker_process import WorkerProcess
from benchmarks.cache.job import CacheJob, CacheRun, WorkerSettings


class CacheProcess(WorkerProcess[CacheJob, CacheRun]):
    """Runs one edit a job."""

    def __init__(self, settings: WorkerSettings) -> None:
        super().__init__(
            "benchmarks.cache.worker",
            [msgspec.json.encode(settings).decode()],
            answer_type=CacheRun,
        )
