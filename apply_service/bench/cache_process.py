"""A replica of `bench cache`: a process that starts with nothing in memory."""

from __future__ import annotations

import msgspec

from apply_service.bench.cache_job import CacheJob, CacheRun, WorkerSettings
from apply_service.bench.worker_process import WorkerProcess


class CacheProcess(WorkerProcess[CacheJob, CacheRun]):
    """Runs one edit a job."""

    def __init__(self, settings: WorkerSettings) -> None:
        super().__init__(
            "apply_service.bench.cache_worker",
            [msgspec.json.encode(settings).decode()],
            answer_type=CacheRun,
        )
