"""A Redis whose slow answers add up is left alone, as one that fails is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest
from faulty_link import Connection, faulty_link, unchanged
from hypothesis import given
from hypothesis import strategies as st
from redis_process import RedisProcess, find_redis_server

from apply_service.http.guard.limits.count_store import RedisCounts
from apply_service.http.guard.limits.guarded_counts import GuardedCounts, WaitBudget
from batching.cache.redis_url import parse_redis_url

needs_redis = pytest.mark.skipif(find_redis_server() is None, reason="no redis-server")


class ToldCounts:
    """Counts whose answers take as long as the test says, on a clock of its own."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.takes_s = 0.0
        self.num_asked = 0

    async def find_host(self) -> None:
        return None

    async def add(self, amounts: Mapping[str, int], *, expires_in: int) -> dict[str, int]:
        self.num_asked += 1
        self.now += self.takes_s
        return dict.fromkeys(amounts, self.num_asked)

    async def __aexit__(self, *_: object) -> None:
        return None


def guard(counts: ToldCounts) -> GuardedCounts:
    return GuardedCounts(cast(RedisCounts, counts), timeout_s=1.0, timer=lambda: counts.now)


async def ask(guarded: GuardedCounts) -> Any:
    return await guarded.ask(lambda counts: counts.add({"one": 1}, expires_in=60))


@pytest.mark.parametrize("num_quick", [0, 3])
def test_slow_answers_that_add_up_are_waited_for_no_longer(num_quick: int) -> None:
    """Each of them comes in time, and quick ones in between change nothing."""

    async def run() -> None:
        counts = ToldCounts()
        guarded = guard(counts)
        waited_s = 0.0
        for _ in range(30):
            for counts.takes_s in [0.1] + [0.001] * num_quick:
                num_asked = counts.num_asked
                answer = await ask(guarded)
                waited_s += counts.takes_s * (counts.num_asked - num_asked)
                assert (answer is None) == (counts.num_asked == num_asked)
        assert waited_s < 0.35
        await guarded.close()

    asyncio.run(run())


def test_answers_below_the_limit_are_waited_for_however_many() -> None:
    async def run() -> None:
        counts = ToldCounts()
        counts.takes_s = 0.04
        guarded = guard(counts)
        for number in range(1, 200):
            assert await ask(guarded) == {"one": number}
        await guarded.close()

    asyncio.run(run())


def test_a_trial_that_is_slow_does_not_bring_the_waits_back() -> None:
    async def run() -> None:
        counts = ToldCounts()
        counts.takes_s = 0.2
        guarded = guard(counts)
        while await ask(guarded) is not None:
            pass
        for counts.takes_s, is_back in [(0.1, False), (0.001, True)]:
            num_asked = counts.num_asked
            while counts.num_asked == num_asked:  # the pauses of a breaker pass in real time
                assert await ask(guarded) is None
                await asyncio.sleep(0.02)
            assert (await ask(guarded) is not None) == is_back
        await guarded.close()

    asyncio.run(run())


@given(st.lists(st.tuples(st.floats(0.0, 30.0), st.floats(0.0, 0.125)), min_size=1, max_size=60))
def test_the_budget_is_a_leaky_bucket(waits: list[tuple[float, float]]) -> None:
    """Against the sum that its description gives, for waits that overlap or not."""
    budget = WaitBudget(slow_s=0.05, budget_s=0.2, refill_share=0.01)
    used_s, counted_until = 0.0, 0.0
    for ended_at, took_s in sorted((began + took, took) for began, took in waits):
        is_left = budget.spend(ended_at - took_s, ended_at)
        if ended_at - (ended_at - took_s) < 0.05:
            assert is_left
            continue
        used_s = max(0.0, used_s - 0.01 * (ended_at - counted_until))
        used_s += ended_at - max(counted_until, ended_at - took_s)
        counted_until = ended_at
        assert is_left == (used_s < 0.2) or abs(used_s - 0.2) < 1e-9


def test_who_waits_at_the_same_time_is_counted_once() -> None:
    budget = WaitBudget(slow_s=0.05, budget_s=0.2, refill_share=0.01)
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
