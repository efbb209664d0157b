"""One worker process lives for a number of jobs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from apply_service.apply.planning.text_worker import MAX_JOBS, TextJob, TextWorker


def do(worker: TextWorker, work: Callable[..., Any], *args: object) -> Any:
    return worker.run(TextJob(work, args, {}))


def test_a_process_makes_room_for_a_fresh_one() -> None:
    worker = TextWorker()
    try:
        ids = [do(worker, os.getpid) for _ in range(MAX_JOBS + 1)]
        assert len(set(ids[:-1])) == 1
        assert ids[-1] != ids[0]
        assert os.getpid() not in ids
        assert worker.process_id == ids[-1]
    finally:
        worker.end()
    assert worker.process_id is None


def test_work_that_gives_way_does_so_and_no_other() -> None:
    worker = TextWorker()
    try:
        job = TextJob(os.nice, (0,), {})
        job.niceness = 3
        assert worker.run(job) == do(worker, os.nice, 0) + 3
    finally:
        worker.end()


class Knot:
    """What refers to itself and so waits for the collector; says when it goes."""

    def __init__(self, sign: Path) -> None:
        self.itself = self
        self.sign = sign

    def __del__(self) -> None:
        self.sign.touch()


def tie_knots(sign: Path) -> bool:
    """Leave a cycle behind, and more objects than a collection waits for; whether it is gone."""
    Knot(sign)
    held = [[number] for number in range(100_000)]
    return sign.exists() and bool(held)


def test_garbage_is_collected_between_jobs_and_not_during_them(tmp_path: Path) -> None:
    sign = tmp_path / "gone"
    worker = TextWorker()
    try:
        assert not do(worker, tie_knots, sign)
        assert do(worker, sign.exists)
    finally:
        worker.end()
