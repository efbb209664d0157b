"""Reading values from Redis with the tier, against a bare socket that throws them away."""

from __future__ import annotations

import os
import socket
import time
from statistics import median
from typing import Any

from batching.cache.gate import PrefillSpeed, TierGate
from batching.cache.host_tier import HostTier
from batching.cache.redis.tier import RedisTier
from batching.cache.redis.url import RedisAddress
from batching.cache.value import ChunkName, ValueFormat

NUM_CHUNKS = 32
CHUNK_TOKENS = 64
# Keys and values of a token of the embedded model in float32.
TOKEN_BYTES = 46_080
_WAIT_S = 30.0


def measure_link(address: RedisAddress, *, num_rounds: int) -> dict[str, Any]:
    """Bytes a second of both, in turn, and the share that the tier reaches."""
    value_format = ValueFormat(
        b"bench", num_tokens=CHUNK_TOKENS, payload_bytes=CHUNK_TOKENS * TOKEN_BYTES
    )
    tier = RedisTier(
        address,
        value_format,
        gate=TierGate(PrefillSpeed()),
        connect_timeout_s=_WAIT_S,
        ttl_s=600,
    )
    names = [
        value_format.name_chunk(os.urandom(32), range(chunk, chunk + CHUNK_TOKENS))
        for chunk in range(NUM_CHUNKS)
    ]
    _fill(tier, value_format, names)
    num_bytes = NUM_CHUNKS * value_format.value_bytes
    host = HostTier(
        value_bytes=value_format.value_bytes,
        max_bytes=num_bytes,
        allocate=lambda size: memoryview(bytearray(size)),
    )
    seconds: dict[str, list[float]] = {"tier": [], "socket": []}
    _load(tier, host, names)
    for _ in range(num_rounds):
        seconds["socket"].append(_receive_raw(address, value_format, names))
        seconds["tier"].append(_load(tier, host, names))
    tier.close()
    median_speeds = {name: num_bytes / median(times) for name, times in seconds.items()}
    best_speeds = {name: num_bytes / min(times) for name, times in seconds.items()}
    return {
        "bytes": num_bytes,
        "rounds": num_rounds,
        "bytes_per_s": {"median": median_speeds, "best": best_speeds},
        "share_of_socket": {
            "median": median_speeds["tier"] / median_speeds["socket"],
            # On a busy machine the best round says more than the one in the middle.
            "best": best_speeds["tier"] / best_speeds["socket"],
        },
    }


def _fill(tier: RedisTier, value_format: ValueFormat, names: list[ChunkName]) -> None:
    value = memoryview(bytearray(value_format.value_bytes))
    for name in names:
        value_format.payload(value)[: 1 << 20] = os.urandom(1 << 20)
        value_format.seal(value, name)
        problem = tier.store(name, value, time.monotonic() + _WAIT_S)
        assert problem is None, problem


def _load(tier: RedisTier, host: HostTier, names: list[ChunkName]) -> float:
    """Seconds to read, check and hand over all values; the memory is ready, as in a long run."""
    started = time.perf_counter()
    loaded, problem = tier.load(names, host, deadline=time.monotonic() + _WAIT_S)
    seconds = time.perf_counter() - started
    assert len(loaded) == len(names), problem
    host.release(loaded)
    host.clear()
    return seconds


def _receive_raw(address: RedisAddress, value_format: ValueFormat, names: list[ChunkName]) -> float:
    """Seconds until a plain socket has received the same values into one buffer."""
    num_wanted = sum(len(b"$%d\r\n\r\n" % value_format.value_bytes) for _ in names)
    num_wanted += len(names) * value_format.value_bytes
    buffer = memoryview(bytearray(value_format.value_bytes))
    keys = [value_format.redis_key(name) for name in names]
    command = b"".join(b"*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n" % (len(key), key) for key in keys)
    with socket.create_connection((address.host, address.port), _WAIT_S) as connection:
        started = time.perf_counter()
        connection.sendall(command)
        while num_wanted:
            num_wanted -= connection.recv_into(buffer)
        return time.perf_counter() - started
