"""The Redis tier over real servers of every kind: open, locked, encrypted, and those refused."""

from __future__ import annotations

import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from redis_process import RedisProcess, find_redis_server, free_port
from tls_before import tls_before

from batching.cache.gate import PrefillSpeed, TierGate
from batching.cache.host_tier import HostTier
from batching.cache.redis.inventory import RedisInventory
from batching.cache.redis.tier import RedisTier
from batching.cache.redis.url import parse_redis_url
from batching.cache.value import ChunkName, ValueFormat

pytestmark = [
    pytest.mark.redis,
    pytest.mark.skipif(find_redis_server() is None, reason="no redis-server"),
]

WAIT_S = 10.0
RESP_WORDS = [b"\r\n", b"$-1\r\n", b"-ERR\r\n", b"*1\r\n$4\r\nPING\r\n", b"\0" * 64, b"\xff" * 64]
FORMAT = ValueFormat(b"model", num_tokens=4, payload_bytes=200_000)
NAMES = [FORMAT.name_chunk(bytes([n]) * 32, range(n, n + 4)) for n in range(9)]


def make_host(max_chunks: int = 20) -> HostTier:
    return HostTier(
        value_bytes=FORMAT.value_bytes,
        max_bytes=max_chunks * FORMAT.value_bytes,
        allocate=lambda size: memoryview(bytearray(size)),
    )


@contextmanager
def tier_at(url: str) -> Iterator[RedisTier]:
    tier = RedisTier(
        parse_redis_url(url),
        FORMAT,
        gate=TierGate(PrefillSpeed()),
        connect_timeout_s=WAIT_S,
        ttl_s=100,
    )
    with closing(tier):
        yield tier


def deadline() -> float:
    return time.monotonic() + WAIT_S


def payload_of(name: ChunkName) -> bytes:
    return (name.key * (FORMAT.payload_bytes // 32 + 1))[: FORMAT.payload_bytes]


def fill(tier: RedisTier, names: list[ChunkName]) -> None:
    for name in names:
        value = memoryview(bytearray(FORMAT.value_bytes))
        FORMAT.payload(value)[:] = payload_of(name)
        FORMAT.seal(value, name)
        assert tier.store(name, value, deadline()) is None


def check_round_trip(url: str) -> None:
    with tier_at(url) as tier:
        fill(tier, NAMES)
        assert tier.match(NAMES, deadline()) == ([0] * len(NAMES), None)
        host = make_host()
        loaded, problem = tier.load(NAMES, host, deadline=deadline())
        assert problem is None
        for name, buffer in zip(NAMES, loaded, strict=True):
            assert FORMAT.payload(buffer.memory) == payload_of(name)
        host.release(loaded)
        host.check_invariants()


@pytest.fixture(scope="module")
def redis() -> Iterator[RedisProcess]:
    process = RedisProcess()
    yield process
    process.kill()


def test_values_come_back_in_order(redis: RedisProcess) -> None:
    check_round_trip(redis.url)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    pieces=st.lists(st.binary(max_size=300) | st.sampled_from(RESP_WORDS), max_size=40),
    seed=st.integers(),
)
def test_whatever_bytes_are_stored_come_back(
    redis: RedisProcess, pieces: list[bytes], seed: int
) -> None:
    start = b"".join(pieces)
    payload = start + random.Random(seed).randbytes(FORMAT.payload_bytes - len(start))
    value = memoryview(bytearray(FORMAT.value_bytes))
    FORMAT.payload(value)[:] = payload
    FORMAT.seal(value, NAMES[0])
    with tier_at(redis.url) as tier:
        assert tier.store(NAMES[0], value, deadline()) is None
        host = make_host()
        (buffer,), problem = tier.load(NAMES[:1], host, deadline=deadline())
        assert problem is None
        assert buffer.memory == value
        host.release([buffer])


def test_a_prefix_ends_where_a_chunk_is_missing(redis: RedisProcess) -> None:
    with tier_at(redis.url) as tier:
        fill(tier, NAMES)
        redis.call("DEL", FORMAT.redis_key(NAMES[5]))
        assert tier.match(NAMES, deadline()) == ([0] * 5, "absent")
        host = make_host()
        loaded, problem = tier.load(NAMES, host, deadline=deadline())
        assert (len(loaded), problem) == (5, "absent")
        # The connection is still in step: what is asked next gets its own answer.
        host.release(loaded)
        again, problem = tier.load(NAMES[6:], host, deadline=deadline())
        assert (len(again), problem) == (3, None)
        host.release(again)
        host.check_invariants()


def test_a_full_host_loads_what_fits(redis: RedisProcess) -> None:
    with tier_at(redis.url) as tier:
        fill(tier, NAMES)
        host = make_host(6)
        loaded, problem = tier.load(NAMES, host, deadline=deadline())
        assert (len(loaded), problem) == (6, "no_memory")
        host.release(loaded)
        host.check_invariants()


def test_a_chunk_is_probed_by_a_part_of_it(redis: RedisProcess) -> None:
    gate = TierGate(PrefillSpeed())
    tier = RedisTier(
        parse_redis_url(redis.url),
        FORMAT,
        gate=gate,
        connect_timeout_s=WAIT_S,
        ttl_s=100,
    )
    with closing(tier):
        assert tier.probe(NAMES[0], deadline()) is None
        assert gate.bandwidth is not None


def test_passwords_and_users() -> None:
    redis = RedisProcess("--requirepass", "main", *["--user", "me", "on", ">mine", "~*", "+@all"])
    try:
        check_round_trip(f"redis://:main@127.0.0.1:{redis.port}")
        check_round_trip(f"redis://me:mine@127.0.0.1:{redis.port}/3")
        for account, reason in (("", "noauth"), (":wrong@", "wrongpass"), ("me:x@", "wrongpass")):
            with tier_at(f"redis://{account}127.0.0.1:{redis.port}") as tier:
                assert tier.match(NAMES, deadline()) == ([], reason)
    finally:
        redis.kill()


def test_unix_sockets(tmp_path: Path) -> None:
    path = tmp_path / "r.sock"
    redis = RedisProcess("--unixsocket", str(path))
    try:
        check_round_trip(f"unix://{path}?db=1")
    finally:
        redis.kill()


def test_a_cluster_node_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    # The port of the cluster's own talk is 10,000 higher.
    port = next(port for port in iter(free_port, None) if port < 55_000)
    redis = RedisProcess("--cluster-enabled", "yes", port=port)
    try:
        with tier_at(redis.url) as tier:
            assert tier.match(NAMES, deadline()) == ([], "unsupported")
        assert "is a cluster; write redis+cluster://" in caplog.text
    finally:
        redis.kill()


def test_a_sentinel_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = tmp_path / "sentinel.conf"
    settings.write_text("sentinel monitor main 127.0.0.1 1 1\n")
    executable = find_redis_server()
    assert executable is not None
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    process = subprocess.Popen(
        [executable, str(settings), "--sentinel", "--port", str(port)], stdout=subprocess.DEVNULL
    )
    try:
        until = deadline()
        reason: str | None = "connection"
        while reason == "connection" and time.monotonic() < until:
            with tier_at(f"redis://127.0.0.1:{port}") as tier:
                reason = tier.match(NAMES, deadline())[1]
        assert reason == "unsupported"
        assert "is a sentinel; write redis+sentinel://host:port/MASTER" in caplog.text
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate")
def test_tls(redis: RedisProcess, tmp_path: Path) -> None:
    with tls_before(redis.port, tmp_path) as port:
        check_round_trip(f"rediss://127.0.0.1:{port}?ssl_ca_certs={tmp_path / 'cert.pem'}")
        check_round_trip(f"rediss://127.0.0.1:{port}?ssl_cert_reqs=none")
        with tier_at(f"rediss://127.0.0.1:{port}") as tier:
            assert tier.match(NAMES, deadline()) == ([], "connection")


def test_the_inventory_counts_and_clears_our_keys_alone(redis: RedisProcess) -> None:
    redis.call("FLUSHALL")
    redis.call("SET", "somebody", "else")
    redis.call("RPUSH", "apply-kv:1:00000000:list", "x")
    with tier_at(redis.url) as tier:
        fill(tier, NAMES)
    with closing(RedisInventory(parse_redis_url(redis.url))) as inventory:
        counted = inventory.count()
        by_size = {group.num_chunks: group.num_bytes for group in counted.groups}
        assert by_size == {9: 9 * FORMAT.value_bytes, 1: 0}
        assert counted.used_bytes is not None
        assert counted.used_bytes > 9 * FORMAT.value_bytes
        assert (counted.max_bytes, counted.policy) == (0, "noeviction")
        assert inventory.clear() == 10
        assert inventory.count().groups == ()
    assert redis.all_keys() == [b"somebody"]
