"""One worker process lives for a number of jobs."""

from __future__ import annotations

import os

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
