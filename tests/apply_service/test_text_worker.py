"""One worker process lives for a number of jobs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from apply_service.text_worker import TextWorker


def test_a_process_makes_room_for_a_fresh_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apply_service.text_worker.MAX_JOBS", 2)
    worker = TextWorker(max_work_s=30.0)
    try:
        ids = [worker.run(os.getpid) for _ in range(5)]
        assert ids[0] == ids[1] != ids[2] == ids[3] != ids[4]
        assert os.getpid() not in ids
        assert worker.process_id == ids[4]
    finally:
        worker.close()
    assert worker.process_id is None


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
    worker = TextWorker(max_work_s=30.0)
    try:
        assert not worker.run(tie_knots, sign)
        assert worker.run(sign.exists)
    finally:
        worker.close()
