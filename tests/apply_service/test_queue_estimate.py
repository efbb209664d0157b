from __future__ import annotations

from dataclasses import replace

import pytest

from apply_service.queue_estimate import FIRST_GUESS_S, QueueEstimate
from batching.events import RequestStats
from batching.stats import EngineCounters, EngineGauges, EngineStats

FINISHED = replace(RequestStats.total(()), prefill_s=6.0, decode_s=2.0)


def engine_with(*, num_running: int, num_waiting: int) -> EngineStats:
    return EngineCounters().snapshot(
        EngineGauges(
            num_waiting=num_waiting,
            num_running=num_running,
            num_blocks=8,
            num_free_blocks=8,
            preemptions=0,
            tiers=(),
        )
    )


def test_nothing_is_in_the_way_before_anything_has_ended() -> None:
    queue = QueueEstimate()
    busy = engine_with(num_running=4, num_waiting=9)
    assert queue.ahead_s(busy) == 0.0
    assert queue.wait_s(busy) == FIRST_GUESS_S


def test_requests_that_ran_together_have_shared_their_time() -> None:
    queue = QueueEstimate()
    queue.observe(FINISHED, num_together=4)
    assert queue.ahead_s(engine_with(num_running=4, num_waiting=3)) == pytest.approx(2.0 * 5)
    assert queue.wait_s(engine_with(num_running=4, num_waiting=6)) == pytest.approx(2.0 * 3)


def test_an_idle_engine_has_nothing_in_the_way_however_slow_it_was() -> None:
    queue = QueueEstimate()
    queue.observe(replace(FINISHED, decode_s=1000.0))
    assert queue.ahead_s(engine_with(num_running=0, num_waiting=0)) == 0.0
