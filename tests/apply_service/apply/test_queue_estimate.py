from __future__ import annotations

from dataclasses import replace

import pytest

from apply_service.apply.queue_estimate import FIRST_GUESS_S, QueueEstimate
from batching.events import RequestStats
from batching.request import Priority
from batching.stats import EngineCounters, EngineGauges, EngineStats

FINISHED = replace(RequestStats.total(()), prefill_share_s=1.5, decode_share_s=0.5)


def engine_with(*, num_running: int, num_waiting: int, num_batch: int = 0) -> EngineStats:
    return EngineCounters().snapshot(
        EngineGauges(
            num_waiting=num_waiting,
            num_running=num_running,
            num_blocks=8,
            num_free_blocks=8,
            preemptions=0,
            tiers=(),
            num_batch_waiting=num_batch,
            num_batch_running=num_batch,
        )
    )


def test_nothing_is_in_the_way_before_anything_has_ended() -> None:
    queue = QueueEstimate()
    busy = engine_with(num_running=4, num_waiting=9)
    assert queue.ahead_s(busy) == 0.0
    assert queue.wait_s(busy) == FIRST_GUESS_S


def test_a_request_costs_its_share_and_not_the_time_of_those_beside_it() -> None:
    queue = QueueEstimate()
    queue.observe(replace(FINISHED, prefill_s=600.0, decode_s=200.0))
    assert queue.ahead_s(engine_with(num_running=4, num_waiting=3)) == pytest.approx(2.0 * 5)
    assert queue.wait_s(engine_with(num_running=4, num_waiting=6)) == pytest.approx(2.0 * 3)


def test_an_idle_engine_has_nothing_in_the_way_however_slow_it_was() -> None:
    queue = QueueEstimate()
    queue.observe(replace(FINISHED, decode_share_s=1000.0))
    assert queue.ahead_s(engine_with(num_running=0, num_waiting=0)) == 0.0


def test_what_lets_others_go_first_is_not_in_their_way() -> None:
    queue = QueueEstimate()
    queue.observe(FINISHED)
    busy = engine_with(num_running=3, num_waiting=5, num_batch=1)
    assert queue.ahead_s(busy, priority=Priority.INTERACTIVE) == pytest.approx(2.0 * 5)
    assert queue.ahead_s(busy, priority=Priority.BATCH) == pytest.approx(2.0 * 6.5)
