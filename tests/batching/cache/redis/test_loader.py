"""A Redis that fails costs one request some time, and threads live on, whatever happens on them."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import pytest
from faulty_link import FaultyLink, faulty_link, stalling_after, unchanged
from redis_impostor import GREETING, greeting_with, redis_impostor
from redis_process import RedisProcess, find_redis_server

from batching.cache.gate import PrefillSpeed, TierGate
from batching.cache.host_tier import ChunkBuffer, HostTier
from batching.cache.prefix_load import PrefixLoad
from batching.cache.redis.circuit_breaker import CircuitBreaker
from batching.cache.redis.connection import RedisConnection
from batching.cache.redis.known_keys import KnownKeys
from batching.cache.redis.loader import RedisLoader
from batching.cache.redis.tier import FAILURES, RedisTier
from batching.cache.redis.url import RedisAddress, parse_redis_url
from batching.cache.redis.writer import RedisWriter
from batching.cache.stats import PrefixLookup, TierCounters, TierGauges, TierStats
from batching.cache.value import ChunkName, ValueFormat

needs_redis = pytest.mark.skipif(find_redis_server() is None, reason="no redis-server")

TIMEOUT_S = 0.5
WAIT_S = 20.0
VALUE_FORMAT = ValueFormat(b"model", num_tokens=4, payload_bytes=200_000)
NAMES = [VALUE_FORMAT.name_chunk(bytes([n]) * 32, range(n, n + 4)) for n in range(40)]


class Parts:
    """The parts of the Redis tier around one address, without an engine."""

    def __init__(
        self, address: RedisAddress, *, first_pause_s: float, timeout_s: float = TIMEOUT_S
    ) -> None:
        self.host = HostTier(
            value_bytes=VALUE_FORMAT.value_bytes,
            max_bytes=20 * VALUE_FORMAT.value_bytes,
            allocate=lambda size: memoryview(bytearray(size)),
        )
        self.gate = TierGate(PrefillSpeed())
        self.breaker = CircuitBreaker(first_pause_s=first_pause_s)
        self.counters = TierCounters("redis")
        known = KnownKeys()
        self.tier = RedisTier(
            address, VALUE_FORMAT, gate=self.gate, connect_timeout_s=timeout_s, ttl_s=100
        )
        self._is_done = threading.Event()
        self.loader = RedisLoader(
            self.tier,
            self.host,
            VALUE_FORMAT,
            gate=self.gate,
            breaker=self.breaker,
            known=known,
            counters=self.counters,
            timeout_s=timeout_s,
            wake=self._is_done.set,
        )
        self.writer = RedisWriter(
            self.tier,
            self.host,
            VALUE_FORMAT,
            read_gate=self.gate,
            write_gate=TierGate(PrefillSpeed()),
            breaker=CircuitBreaker(),
            known=known,
            counters=self.counters,
            timeout_s=timeout_s,
        )

    def close(self) -> None:
        self.writer.close()
        self.loader.close()
        self.tier.close()
        self.host.check_invariants()

    def search(self, *names: ChunkName) -> PrefixLookup:
        """What one request's search comes to."""
        load = PrefixLoad(self.host, first_chunk=0, names=names)
        self._is_done.clear()
        self.loader.begin(load)
        if not load.is_done:
            assert self._is_done.wait(WAIT_S)
        load.end()
        return load.lookups[0]

    def store(self, *names: ChunkName) -> None:
        """Offer a chunk of each name, and wait until it is written or dropped."""
        for name in names:
            buffer = self.host.try_acquire()
            assert buffer is not None
            self.writer.offer(name, buffer)
        assert self.writer.wait(WAIT_S)

    def stats(self) -> TierStats:
        return self.counters.snapshot(TierGauges())


@contextmanager
def parts_at(
    url: str, *, first_pause_s: float = 0.5, timeout_s: float = TIMEOUT_S
) -> Iterator[Parts]:
    address = parse_redis_url(url)
    with closing(Parts(address, first_pause_s=first_pause_s, timeout_s=timeout_s)) as parts:
        yield parts


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisProcess]:
    process = RedisProcess()
    yield process
    process.kill()


@pytest.fixture
def link(redis: RedisProcess) -> Iterator[FaultyLink]:
    """A link to a server that has the first twenty chunks."""
    with parts_at(redis.url) as parts:
        parts.store(*NAMES[:20])
    with faulty_link(redis.port) as link:
        yield link


@needs_redis
@pytest.mark.redis
@pytest.mark.parametrize("num_bytes", [0, 1 << 12, 150_000], ids=["all", "values", "large_values"])
def test_only_the_first_search_waits_for_a_link_that_stalls(
    link: FaultyLink, num_bytes: int
) -> None:
    link.on_reply = stalling_after(num_bytes)
    with parts_at(link.url) as parts:
        assert parts.search(NAMES[0]).reason == "timeout"
        assert {parts.search(name).reason for name in NAMES[1:]} == {"breaker_open"}


@needs_redis
@pytest.mark.redis
def test_a_trial_carries_as_much_as_a_load_and_delays_nobody(link: FaultyLink) -> None:
    link.on_reply = stalling_after(150_000)
    with parts_at(link.url, first_pause_s=0.0) as parts:
        assert parts.search(NAMES[0]).reason == "timeout"
        # Each of these begins a trial if none is under way: of chunks that are there, and not.
        for name in (NAMES[1], NAMES[30]):
            assert parts.search(name).reason == "breaker_open"
            assert parts.search(name).reason == "breaker_open"
            time.sleep(1.5 * TIMEOUT_S)
        assert not parts.breaker.can_pass
        link.on_reply = unchanged
        until = time.monotonic() + WAIT_S
        while parts.search(NAMES[2], NAMES[3]).decision != "load":
            assert time.monotonic() < until
            parts.host.clear()
            time.sleep(0.01)


@needs_redis
@pytest.mark.redis
def test_what_cannot_be_written_can_be_read(link: FaultyLink) -> None:
    link.on_request = stalling_after(1 << 12)
    with parts_at(link.url, timeout_s=2.0) as parts:
        parts.store(NAMES[30], NAMES[31], NAMES[32], NAMES[33])
        assert parts.stats().drops.keys() == {"timeout", "breaker_open"}
        assert [parts.search(name).decision for name in NAMES[:3]] == ["load"] * 3


class Names:
    """Stands in for the system's search of host names, which takes as long as the test wants."""

    def __init__(self, *results: Any) -> None:
        self.is_answered = threading.Event()
        self.num_asked = 0
        self._results = results

    def __call__(self, *_arguments: Any, **_options: Any) -> Any:
        self.num_asked += 1
        self.is_answered.wait(WAIT_S)
        return list(self._results)


def test_a_name_that_is_not_found_in_time_keeps_nobody_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = Names()
    monkeypatch.setattr(socket, "getaddrinfo", names)
    with parts_at("redis://redis.test", first_pause_s=0.0) as parts:
        assert parts.search(NAMES[0]).reason == "timeout"
        for name in NAMES[1:]:
            assert parts.search(name).reason == "breaker_open"
        assert not names.is_answered.is_set()
        assert names.num_asked == 1  # however many trials there were
        names.is_answered.set()


@needs_redis
@pytest.mark.redis
def test_a_name_that_is_found_late_is_used(
    redis: RedisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", redis.port)))
    with monkeypatch.context() as patched:
        patched.setattr(socket, "getaddrinfo", names)
        with parts_at("redis://redis.test", first_pause_s=0.0) as parts:
            assert parts.search(NAMES[30]).reason == "timeout"
            names.is_answered.set()
            until = time.monotonic() + WAIT_S
            while parts.search(NAMES[30]).reason == "breaker_open":
                assert time.monotonic() < until
                time.sleep(0.01)
            assert parts.search(NAMES[30]).reason == "absent"


@contextmanager
def full_listener() -> Iterator[tuple[str, int]]:
    """An address that lets nobody connect and refuses nobody."""
    with socket.socket() as listener, ExitStack() as clients:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(3):
            client = clients.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
        yield listener.getsockname()


@needs_redis
@pytest.mark.redis
def test_dead_addresses_share_one_deadline_and_a_living_one_is_reached(
    redis: RedisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_s = 2.0
    with full_listener() as dead:
        places = [dead] * 7 + [("127.0.0.1", redis.port)]
        names = Names(*((socket.AF_INET, socket.SOCK_STREAM, 6, "", place) for place in places))
        names.is_answered.set()
        monkeypatch.setattr(socket, "getaddrinfo", names)
        began = time.monotonic()
        connection = RedisConnection(RedisAddress(host="redis.test"), connect_timeout_s=limit_s)
        with closing(connection):
            # With the whole time for each address it would be 14 seconds.
            assert time.monotonic() - began < 3 * limit_s
            assert connection.call(b"PING") == b"PONG"


ODD_GREETINGS = {
    "odd": b"*1\r\n$4\r\nmode\r\n",
    "nested": b"*2\r\n*1\r\n*1\r\n:1\r\n$-1\r\n",
    "too_deep": b"*1\r\n" * 50,
    "huge": b"$99999999999999999999\r\n",
    "wide": b"*9999999\r\n" + b"*0\r\n" * 1000,
    "many_megabytes": (b"*100\r\n" + b"$99999\r\n" + bytes(99_999) + b"\r\n") * 100,
    "no_number": b"*1_0\r\n",
    "no_type": b"\r\n",
}


@pytest.mark.parametrize("greeting", ODD_GREETINGS.values(), ids=ODD_GREETINGS)
def test_whatever_a_server_greets_with_the_writer_goes_on(greeting: bytes) -> None:
    with redis_impostor(greeting_with(greeting)) as url, parts_at(url) as parts:
        parts.store(*NAMES[:3])
        assert sum(parts.stats().drops.values()) + parts.stats().stores == 3
        parts.store(*NAMES[3:6])
        assert sum(parts.stats().drops.values()) + parts.stats().stores == 6


class FailingTier(RedisTier):
    """Has a bug."""

    def _lengths(
        self, keys: Sequence[bytes], deadline: float
    ) -> tuple[list[int | str], str | None]:
        raise LookupError("a bug")


class FailingHost(HostTier):
    """Has another."""

    def insert(self, key: bytes, buffer: ChunkBuffer) -> None:
        raise LookupError("a bug")


@needs_redis
@pytest.mark.redis
def test_a_bug_costs_a_chunk_or_a_search_and_no_thread(
    redis: RedisProcess, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with parts_at(redis.url, timeout_s=WAIT_S) as parts:
        with monkeypatch.context() as broken:
            broken.setattr(RedisTier, "_lengths", FailingTier._lengths)
            parts.store(NAMES[0])
            assert parts.search(NAMES[0]).reason == "failed"
        assert parts.stats().drops == {"failed": 1}
        assert "a bug" in caplog.text
        parts.store(NAMES[0])
        assert parts.stats().stores + parts.stats().drops.get("present", 0) == 1
        with monkeypatch.context() as broken:
            broken.setattr(HostTier, "insert", FailingHost.insert)
            assert parts.search(NAMES[0]).reason == "failed"
        assert parts.search(NAMES[0]).decision == "load"


@needs_redis
@pytest.mark.redis
def test_a_bug_in_a_trial_is_a_trial_that_failed(
    redis: RedisProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    with parts_at(redis.url, first_pause_s=0.0) as parts:
        parts.breaker.failed(lost_s=1.0)
        with monkeypatch.context() as broken:
            broken.setattr(RedisTier, "_lengths", FailingTier._lengths)
            assert parts.search(NAMES[30]).reason == "breaker_open"
        until = time.monotonic() + WAIT_S
        while parts.search(NAMES[30]).reason == "breaker_open":
            assert time.monotonic() < until
            time.sleep(0.01)


def unlike_errors() -> Callable[[list[bytes]], bytes]:
    numbers = itertools.count()
    return lambda command: (
        GREETING if command[0] == b"HELLO" else b'-E%d"}\n# \x1b[1m x\r\n' % next(numbers)
    )


def test_a_server_cannot_invent_reasons_or_write_to_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with redis_impostor(unlike_errors()) as url, parts_at(url, first_pause_s=0.0) as parts:
        for name in NAMES:
            parts.search(name)
        parts.store(*NAMES[:5])
        assert parts.stats().misses.keys() | parts.stats().drops.keys() <= {
            *FAILURES,
            "breaker_open",
        }
    assert len(caplog.messages) == 1
    assert caplog.messages[0].isprintable()


def test_an_error_that_is_known_is_a_reason() -> None:
    with (
        redis_impostor(greeting_with(GREETING, b"-LOADING the data\r\n")) as url,
        parts_at(url) as parts,
    ):
        assert parts.search(NAMES[0]).reason == "loading"
