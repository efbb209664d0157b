"""Transformers in a process of its own, as it would run alone, with the same environment as ours.

In one process with the engine, each would keep a team of OpenMP threads, and both would be slower.
"""

from __future__ import annotations

from pathlib import Path

from apply_service.evaluate.worker_process import WorkerProcess
from benchmarks.speed.run import RivalRequest, SpeedRun


class RivalProcess(WorkerProcess[RivalRequest, SpeedRun]):
    """Runs one generation a job. The seconds are those of `generate` alone."""

    def __init__(self, model_dir: Path, *, num_threads: int | None) -> None:
        threads = [] if num_threads is None else [str(num_threads)]
        super().__init__(
            "benchmarks.speed.transformers_baseline",
            [str(model_dir), *threads],
            answer_type=SpeedRun,
        )
