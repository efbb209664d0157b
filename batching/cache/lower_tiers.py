"""Tiers below the device: search a prompt's chunks and keep computed ones.

The engine thread asks and offers, and never waits. Redis is spoken to by other threads; whatever
goes wrong there ends in a shorter prefix or a chunk that is not kept.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence

from batching.cache.gate import PrefillSpeed, TierGate
from batching.cache.host_tier import HostTier
from batching.cache.prefix_load import PrefixLoad
from batching.cache.redis.circuit_breaker import CircuitBreaker
from batching.cache.redis.known_keys import KnownKeys
from batching.cache.redis.loader import RedisLoader
from batching.cache.redis.tier import RedisTier
from batching.cache.redis.url import RedisAddress, parse_redis_url
from batching.cache.redis.writer import RedisWriter
from batching.cache.stats import (
    Decision,
    PrefixLookup,
    TierCounters,
    TierGauges,
    TierStats,
)
from batching.cache.value import ChunkName, ValueFormat
from batching.config import CacheConfig
from batching.errors import CacheConfigError, EngineLostError

_LOGGER = logging.getLogger(__name__)


class LowerTiers:
    """Host memory and, if there is an address, Redis.

    `wake` is called, on any thread, when a load has ended. Host memory is trusted; what comes from
    Redis is checked before it gets there.
    """

    def __init__(
        self,
        value_format: ValueFormat,
        host: HostTier,
        *,
        prefill: PrefillSpeed,
        address: RedisAddress | None = None,
        config: CacheConfig,
        wake: Callable[[], None],
    ) -> None:
        self.value_format = value_format
        self.prefill = prefill
        self._host = host
        self._host_gate = TierGate(prefill)
        self._host_counters = TierCounters("host")
        self._redis = None
        if address is not None:
            self._redis = _Redis(
                address,
                host,
                value_format,
                prefill=prefill,
                config=config,
                wake=wake,
            )

    @classmethod
    def open(
        cls,
        config: CacheConfig,
        *,
        namespace: bytes,
        payload_bytes: int,
        allocate: Callable[[int], memoryview],
        wake: Callable[[], None],
    ) -> LowerTiers:
        """The tiers of a configuration. Raises CacheConfigError; a Redis that is down is none."""
        value_format = ValueFormat(
            namespace,
            num_tokens=config.chunk_tokens,
            payload_bytes=payload_bytes,
            secrets=config.secrets,
        )
        value_bytes = value_format.value_bytes
        if config.memory_bytes < value_bytes:
            raise CacheConfigError(
                f"the cache memory of {config.memory_bytes} bytes holds no chunk, and a chunk of"
                f" {config.chunk_tokens} tokens takes {value_bytes} bytes; give it more, or 0"
            )
        address = None if config.redis_url is None else parse_redis_url(config.redis_url)
        weakness = None if address is None else address.find_weakness()
        if weakness is not None:
            _LOGGER.warning("%s", weakness)
        return cls(
            value_format,
            HostTier(value_bytes=value_bytes, max_bytes=config.memory_bytes, allocate=allocate),
            prefill=PrefillSpeed(),
            address=address,
            config=config,
            wake=wake,
        )

    def begin(self, first_chunk: int, names: Sequence[ChunkName]) -> PrefixLoad:
        """Search chunks; host memory at once, Redis in the background for those behind."""
        load = PrefixLoad(self._host, first_chunk=first_chunk, names=names)
        self._search_host(load)
        if self._redis is None or not load.missing_names:
            load.finish()
        else:
            self._redis.loader.begin(load)
        return load

    def offer(self, name: ChunkName, fill: Callable[[memoryview], None] | None) -> None:
        """Keep a chunk. `fill` writes its payload; without it only a copy that host has is kept."""
        found = self._host.match([name.key])
        buffer = found[0] if found else None
        if buffer is None and fill is not None:
            buffer = self._host.try_acquire()
            if buffer is None:
                self._host_counters.count_drop("no_memory")
                return
            try:
                fill(self.value_format.payload(buffer.memory))
            except Exception:  # the request goes on without its chunk being kept
                self._host.release([buffer])
                self.count_failure("a chunk could not be copied to host memory")
                return
            self._host.insert(name.key, buffer)
            self._host_counters.count_store(len(buffer.memory))
        if buffer is None:
            return
        if self._redis is None:
            self._host.release([buffer])
        else:
            self._redis.writer.offer(name, buffer)

    def observe_copy(self, num_chunks: int, seconds: float) -> None:
        """Observe the seconds of a copy of chunks from host memory to the device."""
        num_bytes = num_chunks * self.value_format.payload_bytes
        self._host_gate.observe_transfer(num_bytes, seconds)

    def count_failure(self, what: str) -> None:
        """A copy failed, with the exception that is being handled; log and count it.

        A lost engine has said so already, and fails every copy.
        """
        if not isinstance(sys.exception(), EngineLostError):
            _LOGGER.exception("%s", what)
        self._host_counters.count_drop("failed")

    def stats(self) -> tuple[TierStats, ...]:
        """Figures of each tier."""
        host = self._host_counters.snapshot(
            TierGauges(num_bytes=self._host.num_bytes, bandwidth=self._host_gate.bandwidth)
        )
        return (host,) if self._redis is None else (host, self._redis.stats())

    def wait_for_stores(self, timeout_s: float) -> bool:
        """Wait until what was offered so far is written or dropped; False if it takes too long."""
        return self._redis is None or self._redis.writer.wait(timeout_s)

    def close(self) -> None:
        """Stop the threads; what is not written yet is dropped."""
        if self._redis is not None:
            self._redis.close()

    def _search_host(self, load: PrefixLoad) -> None:
        buffers = self._host.match(name.key for name in load.names)
        num_found = len(buffers)
        value_bytes, chunk_tokens = self.value_format.value_bytes, self.value_format.num_tokens
        estimate = self._host_gate.estimate(
            num_bytes=num_found * value_bytes, num_tokens=num_found * chunk_tokens
        )
        decision: Decision = "load" if num_found else "miss"
        if num_found and not estimate.is_worth_it:
            self._host.release(buffers)
            buffers, decision = [], "compute"
        lookup = PrefixLookup(
            tier="host",
            decision=decision,
            reason={"load": None, "miss": "absent", "compute": "slow"}[decision],
            num_tokens=len(buffers) * chunk_tokens,
            load_estimate_s=estimate.load_s if num_found else None,
            compute_estimate_s=estimate.compute_s if num_found else None,
        )
        load.add(buffers, lookup)
        self._host_counters.count_lookup(lookup)
        self._host_counters.count_read(
            len(buffers),
            num_tokens=lookup.num_tokens,
            num_bytes=len(buffers) * value_bytes,
            seconds=0.0,
        )


class _Redis:
    """The parts of the Redis tier, which share a gate, a breaker and what is known."""

    def __init__(
        self,
        address: RedisAddress,
        host: HostTier,
        value_format: ValueFormat,
        *,
        prefill: PrefillSpeed,
        config: CacheConfig,
        wake: Callable[[], None],
    ) -> None:
        self._breaker = CircuitBreaker()
        self._gate = TierGate(prefill)
        self._counters = TierCounters("redis")
        self._tier = RedisTier(
            address,
            value_format,
            gate=self._gate,
            connect_timeout_s=config.connect_timeout_s,
            ttl_s=config.ttl_s,
        )
        known = KnownKeys()
        self.loader = RedisLoader(
            self._tier,
            host,
            value_format,
            gate=self._gate,
            breaker=self._breaker,
            known=known,
            counters=self._counters,
            timeout_s=config.timeout_s,
            wake=wake,
        )
        self.writer = RedisWriter(
            self._tier,
            host,
            value_format,
            read_gate=self._gate,
            write_gate=TierGate(prefill),
            breaker=CircuitBreaker(),
            known=known,
            counters=self._counters,
            timeout_s=config.timeout_s,
        )

    def stats(self) -> TierStats:
        return self._counters.snapshot(
            TierGauges(
                queue_depth=self.loader.num_queued + self.writer.num_queued,
                breaker=self._breaker.state,
                latency_s=self._gate.latency_s,
                bandwidth=self._gate.bandwidth,
            )
        )

    def close(self) -> None:
        self.writer.close()
        self.loader.close()
        self._tier.close()
