"""Limits of one caller: against a clock that is told, and with a real Redis."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from faulty_link import faulty_link, stalling_after, unchanged
from hypothesis import given
from hypothesis import strategies as st
from redis_impostor import always, redis_impostor
from redis_process import RedisProcess, find_redis_server

from apply_service.http.guard.limits.count_store import RedisCounts
from apply_service.http.guard.limits.rate_limits import (
    WINDOW_S,
    Charge,
    RateLimits,
    RateLimitSettings,
    Refusal,
    Window,
)
from batching.cache.redis.url import parse_redis_url

needs_redis = pytest.mark.skipif(find_redis_server() is None, reason="no redis-server")
WAIT_S = 20.0
STORES = [pytest.param("memory"), pytest.param("redis", marks=[pytest.mark.redis, needs_redis])]


class Clock:
    """Seconds since 1970 that pass when the test says so."""

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisProcess]:
    process = RedisProcess()
    yield process
    process.kill()


@asynccontextmanager
async def limits(
    clock: Clock,
    url: str | None = None,
    *,
    requests: int = 0,
    tokens: int = 0,
    running: int = 0,
    timeout_s: float = 20.0,
) -> AsyncIterator[RateLimits]:
    shared = None if url is None else RedisCounts(parse_redis_url(url), timeout_s=timeout_s)
    settings = RateLimitSettings(
        requests_per_minute=requests, tokens_per_minute=tokens, max_concurrent=running
    )
    made = RateLimits(settings, shared=shared, timeout_s=timeout_s, clock=clock)
    yield made
    await made.close()


async def ask(made: RateLimits, name: str = "one", *, num_tokens: int = 0) -> float | None:
    """Ask once and be done; the seconds to wait if it was refused."""
    admission = await made.admit(name)
    if admission.refusal is not None:
        return admission.refusal.wait_s
    await made.finish(admission, num_tokens=num_tokens)
    return None


def url_of(store: str, request: pytest.FixtureRequest) -> str | None:
    if store == "memory":
        return None
    process: RedisProcess = request.getfixturevalue("redis")
    process.call("FLUSHALL")
    return process.url


@pytest.mark.parametrize("store", STORES)
@pytest.mark.parametrize("start", [0.0, 37.5, 59.9])
def test_the_time_to_wait_is_neither_too_long_nor_too_short(
    store: str, start: float, request: pytest.FixtureRequest
) -> None:
    async def run() -> None:
        clock = Clock(1_800_000_000.0 + start)
        async with limits(clock, url_of(store, request), requests=5) as made:
            assert [await ask(made) for _ in range(5)] == [None] * 5
            for _ in range(7):
                wait_s = await ask(made)
                assert wait_s is not None
                asked_at = clock.now
                clock.now = asked_at + wait_s - 0.01
                assert await ask(made) is not None
                clock.now = asked_at + wait_s + 0.01
                assert await ask(made) is None

    asyncio.run(run())


@pytest.mark.parametrize("store", STORES)
def test_callers_do_not_share_a_limit(store: str, request: pytest.FixtureRequest) -> None:
    async def run() -> None:
        async with limits(Clock(), url_of(store, request), requests=1) as made:
            assert await ask(made, "one") is None
            assert await ask(made, "two") is None
            assert await ask(made, "one") is not None

    asyncio.run(run())


@pytest.mark.parametrize("store", STORES)
def test_tokens_count_once_they_are_spent(store: str, request: pytest.FixtureRequest) -> None:
    async def run() -> None:
        clock = Clock()
        async with limits(clock, url_of(store, request), tokens=1000) as made:
            assert await ask(made, num_tokens=999) is None
            assert await ask(made, num_tokens=2000) is None
            wait_s = await ask(made)
            assert wait_s is not None
            # 2,999 were used at the start of a minute; the next one must forget two thirds.
            assert 60 + 39.9 < wait_s < 60 + 40.1
            clock.now += wait_s + 0.1
            admission = await made.admit("one")
            assert admission.refusal is None
            headers = admission.headers()
            assert headers["x-ratelimit-limit-tokens"] == "1000"
            assert int(headers["x-ratelimit-remaining-tokens"]) < 10

    asyncio.run(run())


@pytest.mark.parametrize("store", STORES)
def test_a_charge_is_replaced_by_the_cost(store: str, request: pytest.FixtureRequest) -> None:
    """Also where the minute turned meanwhile: the cost counts from when it is known."""

    async def run() -> None:
        clock = Clock()
        async with limits(clock, url_of(store, request), requests=3, tokens=100) as made:
            charge = await made.try_charge("one", num_tokens=100)
            assert isinstance(charge, Charge)
            refusal = await made.try_charge("one", num_tokens=1)
            assert isinstance(refusal, Refusal)
            assert (refusal.what, refusal.value) == ("tokens a minute", 100)
            clock.now += WINDOW_S
            await made.settle(charge, num_tokens=40)
            assert isinstance(await made.try_charge("one", num_tokens=59), Charge), "99 with it"
            assert isinstance(await made.try_charge("one", num_tokens=5), Charge)
            refusal = await made.try_charge("one", num_tokens=1)
            assert isinstance(refusal, Refusal)
            assert refusal.value == 3, "the refused parts were not counted"

    asyncio.run(run())


@pytest.mark.parametrize("store", STORES)
def test_so_many_run_at_the_same_time(store: str, request: pytest.FixtureRequest) -> None:
    async def run() -> None:
        async with limits(Clock(), url_of(store, request), running=2) as made:
            first, second = await made.admit("one"), await made.admit("one")
            third = await made.admit("one")
            assert first.refusal is second.refusal is None
            assert third.refusal is not None
            assert (third.refusal.value, third.refusal.limit) == (3, 2)
            assert (await made.admit("two")).refusal is None
            await made.finish(first, num_tokens=0)
            assert (await made.admit("one")).refusal is None
            assert (await made.admit("one")).refusal is not None

    asyncio.run(run())


@pytest.mark.parametrize("store", STORES)
def test_all_at_once_are_never_more_than_the_limit(
    store: str, request: pytest.FixtureRequest
) -> None:
    async def run() -> None:
        async with limits(Clock(), url_of(store, request), requests=10, running=7) as made:
            admissions = await asyncio.gather(*(made.admit("one") for _ in range(40)))
            assert sum(one.refusal is None for one in admissions) <= 7
            for one in admissions:
                if one.refusal is None:
                    await made.finish(one, num_tokens=0)
            assert await ask(made) is None

    asyncio.run(run())


def test_nothing_is_limited_by_zero() -> None:
    async def run() -> None:
        async with limits(Clock()) as made:
            for _ in range(100):
                admission = await made.admit("one")
                assert admission.refusal is None
                assert admission.headers() == {}

    asyncio.run(run())


@pytest.mark.redis
@needs_redis
def test_replicas_count_together(redis: RedisProcess) -> None:
    async def run() -> None:
        redis.call("FLUSHALL")
        clock = Clock()
        async with (
            limits(clock, redis.url, requests=3, running=2) as one,
            limits(clock, redis.url, requests=3, running=2) as two,
        ):
            running = [await one.admit("key"), await two.admit("key")]
            refused = await one.admit("key")
            assert refused.refusal is not None
            assert refused.refusal.what == "requests at the same time"
            await one.finish(running[0], num_tokens=0)
            await two.finish(running[1], num_tokens=0)
            assert await two.admit("key") is not None
            late = await one.admit("key")
            assert late.refusal is not None
            assert late.refusal.what == "requests a minute"
            # What a replica that died had running is forgotten in the end.
            clock.now += 200
            assert await ask(one, "key") is None
            assert await ask(two, "key") is None

    asyncio.run(run())


@pytest.mark.redis
@needs_redis
def test_without_its_redis_a_replica_counts_alone() -> None:
    async def run() -> None:
        process = RedisProcess()
        clock = Clock()
        async with limits(clock, process.url, requests=4, running=4) as made:
            assert await ask(made) is None
            assert await ask(made) is None
            process.kill()
            assert await ask(made) is None
            assert await ask(made) is None
            assert await ask(made) is not None
            clock.now += 2 * WINDOW_S
            assert await ask(made) is None

    asyncio.run(run())


@pytest.mark.redis
@needs_redis
def test_a_redis_that_stalls_is_waited_for_once_and_found_again(
    redis: RedisProcess, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        redis.call("FLUSHALL")
        with faulty_link(redis.port, on_reply=stalling_after(0)) as link:
            async with limits(Clock(), link.url, requests=100, timeout_s=5.0) as made:
                for _ in range(5):
                    assert await ask(made) is None
                assert len(caplog.messages) == 1
                assert redis.all_keys() == []
                link.on_reply = unchanged
                until = time.monotonic() + WAIT_S
                while not redis.all_keys():
                    assert await ask(made) is None
                    assert time.monotonic() < until
                    await asyncio.sleep(0.05)

    asyncio.run(run())


@pytest.mark.redis
@needs_redis
def test_a_name_that_is_not_found_takes_no_thread_of_the_event_loop(
    redis: RedisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_answered = threading.Event()
    system = socket.getaddrinfo

    def search(host: str, *arguments: Any, **options: Any) -> Any:
        if host == "redis.test":
            is_answered.wait(WAIT_S)
        return system("127.0.0.1", *arguments, **options)

    async def run() -> None:
        redis.call("FLUSHALL")
        url = redis.url.replace("127.0.0.1", "redis.test")
        async with limits(Clock(), url, requests=1000, timeout_s=5.0) as made:
            # More at once than the event loop has threads.
            await asyncio.gather(*(ask(made) for _ in range(100)))
            await asyncio.wait_for(asyncio.to_thread(lambda: None), WAIT_S / 2)
            assert not is_answered.is_set()
            is_answered.set()
            until = time.monotonic() + WAIT_S
            while not redis.all_keys():
                assert await ask(made) is None
                assert time.monotonic() < until
                await asyncio.sleep(0.05)

    monkeypatch.setattr(socket, "getaddrinfo", search)
    asyncio.run(run())


@needs_redis
@pytest.mark.redis
@pytest.mark.parametrize(
    "answer", [b":99\r\n" * 50, b"*1\r\n+x\r\n", b"*-1\r\n", b"$3\r\nabc\r\n", b"-WHAT \x1b\r\n"]
)
def test_whatever_a_redis_says_a_replica_goes_on(answer: bytes) -> None:
    async def run() -> None:
        with redis_impostor(always(answer)) as url:
            async with limits(Clock(), url, requests=4, running=4) as made:
                for _ in range(4):
                    assert await ask(made, num_tokens=1) is None
                assert await ask(made) is not None

    asyncio.run(run())


@given(
    limit=st.integers(1, 50),
    previous=st.integers(0, 200),
    current=st.integers(0, 200),
    elapsed_s=st.floats(0, 59.99),
)
def test_waiting_so_long_is_enough(
    limit: int, previous: int, current: int, elapsed_s: float
) -> None:
    window = Window(
        what="requests", limit=limit, previous=previous, current=current, elapsed_s=elapsed_s
    )
    at = elapsed_s + window.wait_s + 1e-6
    turns, within = divmod(at, WINDOW_S)
    assert turns <= 2
    counts = [(previous, current), (current, 0), (0, 0)][int(turns)]
    later = Window(
        what="requests", limit=limit, previous=counts[0], current=counts[1], elapsed_s=within
    )
    assert later.used + 1 <= limit + 1e-3
    if window.wait_s == 0:
        assert window.used + 1 <= limit + 1e-9
    else:
        assert window.refusal() is not None
    assert 0 <= window.remaining <= limit
