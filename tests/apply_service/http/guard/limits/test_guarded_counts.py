"""A Redis whose slow answers add up is left alone, as one that fails is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, cast

import pytest
from faulty_link import Connection, faulty_link, unchanged
from hypothesis import given
from hypothesis import strategies as st
from redis_process import RedisProcess, find_redis_server

from apply_service.http.guard.limits.count_store import RedisCounts
from apply_service.http.guard.limits.guarded_counts import GuardedCounts, WaitBudget
from batching.cache.redis.url import parse_redis_url

needs_redis = pytest.mark.skipif(find_redis_server() is None, reason="no redis-server")


class SlowCounts:
    """Counts whose answers take a while; or the event loop does, before each."""

    def __init__(self, *, takes_s: float = 0.0, blocks_s: float = 0.0) -> None:
        self.takes_s = takes_s
        self.blocks_s = blocks_s
        self.num_asked = 0

    async def find_host(self) -> None:
        return None

    async def add(self, amounts: Mapping[str, int], *, expires_in: int) -> dict[str, int]:
        self.num_asked += 1
        time.sleep(self.blocks_s)
        await asyncio.sleep(self.takes_s)
        return dict.fromkeys(amounts, self.num_asked)

    def lose_host(self) -> None:
        return None

    async def __aexit__(self, *_: object) -> None:
        return None


def guard(counts: SlowCounts, *, timeout_s: float = 1.0) -> GuardedCounts:
    return GuardedCounts(cast(RedisCounts, counts), timeout_s=timeout_s)


async def ask(guarded: GuardedCounts) -> Any:
    return await guarded.ask(lambda counts: counts.add({"one": 1}, expires_in=60))


@pytest.mark.parametrize("num_quick", [0, 3])
def test_slow_answers_that_add_up_are_waited_for_no_longer(num_quick: int) -> None:
    """Each of them comes in time, and quick ones in between change nothing."""

    async def run() -> None:
        counts = SlowCounts()
        guarded = guard(counts)
        num_slow = 0
        is_asked = True
        while is_asked:
            for counts.takes_s in [0.1] + [0.0] * num_quick:
                num_asked = counts.num_asked
                answer = await ask(guarded)
                is_asked = counts.num_asked > num_asked
                assert (answer is not None) == is_asked
                num_slow += is_asked and counts.takes_s > 0
        assert 2 <= num_slow <= 10, "0.2 s in all, and what a busy machine takes for its own"
        await guarded.close()

    asyncio.run(run())


def test_the_time_of_our_own_event_loop_is_not_that_of_redis() -> None:
    async def run() -> None:
        counts = SlowCounts(blocks_s=0.06)
        guarded = guard(counts)
        for number in range(1, 21):
            assert await ask(guarded) == {"one": number}
        await guarded.close()

    asyncio.run(run())


def test_quick_answers_are_waited_for_however_many() -> None:
    async def run() -> None:
        guarded = guard(SlowCounts(), timeout_s=100.0)
        for number in range(1, 500):
            assert await ask(guarded) == {"one": number}
        await guarded.close()

    asyncio.run(run())


def test_a_trial_that_is_slow_does_not_bring_the_waits_back() -> None:
    async def run() -> None:
        counts = SlowCounts(takes_s=0.2)
        guarded = guard(counts)
        while await ask(guarded) is not None:
            pass
        for counts.takes_s, is_back in [(0.2, False), (0.0, True)]:
            num_asked = counts.num_asked
            while counts.num_asked == num_asked:
                assert await ask(guarded) is None
                await asyncio.sleep(0.02)
            await asyncio.sleep(3 * counts.takes_s + 0.05)
            assert (await ask(guarded) is not None) == is_back
        await guarded.close()

    asyncio.run(run())


@given(st.lists(st.tuples(st.floats(0.0, 30.0), st.floats(0.0, 0.125)), min_size=1, max_size=60))
def test_the_budget_is_a_leaky_bucket(waits: list[tuple[float, float]]) -> None:
    """Against the sum that its description gives, for waits that overlap or not."""
    budget = WaitBudget(budget_s=0.2, refill_share=0.01)
    used_s, counted_until = 0.0, 0.0
    for ended_at, took_s in sorted((began + took, took) for began, took in waits):
        is_left = budget.spend(ended_at - took_s, ended_at)
        used_s = max(0.0, used_s - 0.01 * (ended_at - counted_until))
        used_s += ended_at - max(counted_until, ended_at - took_s)
        counted_until = ended_at
        assert is_left == (used_s < 0.2) or abs(used_s - 0.2) < 1e-9


def test_who_waits_at_the_same_time_is_counted_once() -> None:
    budget = WaitBudget(budget_s=0.2, refill_share=0.01)
    for _ in range(64):
        assert budget.spend(10.0, 10.1), "a pause of the whole process"
    assert not budget.spend(10.1, 10.21)


@pytest.mark.redis
@needs_redis
def test_a_real_redis_behind_a_slow_link_is_asked_a_few_times_only() -> None:
    redis = RedisProcess()
    asked = []

    def delay(connection: Connection, piece: bytes) -> bytes:
        asked.append(piece)
        connection.wait(0.1)
        return unchanged(connection, piece)

    async def run(url: str) -> None:
        counts = RedisCounts(parse_redis_url(url), timeout_s=1.0)
        guarded = GuardedCounts(counts, timeout_s=1.0)
        for _ in range(100):
            await ask(guarded)
        await guarded.close()

    try:
        with faulty_link(redis.port, on_reply=delay) as link:
            asyncio.run(run(link.url))
    finally:
        redis.kill()
    # Two replies greet; two or three answers use the budget of 0.2 s up; a trial may have begun.
    assert 1 <= len(asked) <= 8
