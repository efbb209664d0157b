"""Brings chunks from Redis to host memory in the background, where that is worth the time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from batching.cache_gate import LoadEstimate, TierGate
from batching.cache_stats import Decision, PrefixLookup, TierCounters
from batching.cache_value import DAMAGES, ChunkName, ValueFormat
from batching.circuit_breaker import CircuitBreaker
from batching.host_tier import ChunkBuffer, HostTier
from batching.known_keys import KnownKeys
from batching.prefix_load import PrefixLoad
from batching.redis_tier import RedisTier

NUM_CONNECTIONS = 4
MAX_QUEUED_LOADS = 64
# A link that was found too slow is measured again after this time, beside the requests.
PROBE_INTERVAL_S = 10.0
# Share of the time left that a load may be expected to take.
_MAX_TIME_SHARE = 0.8


class RedisLoader:
    """Decides, loads within `timeout_s`, and calls `wake` when a load has ended."""

    def __init__(
        self,
        tier: RedisTier,
        host: HostTier,
        value_format: ValueFormat,
        *,
        gate: TierGate,
        breaker: CircuitBreaker,
        known: KnownKeys,
        counters: TierCounters,
        timeout_s: float,
        wake: Callable[[], None],
    ) -> None:
        self._tier = tier
        self._host = host
        self._format = value_format
        self._gate = gate
        self._breaker = breaker
        self._known = known
        self._counters = counters
        self._timeout_s = timeout_s
        self._wake = wake
        self._lock = threading.Lock()
        self._num_queued = 0
        self._next_probe = 0.0
        self._threads = ThreadPoolExecutor(NUM_CONNECTIONS, thread_name_prefix="cache-load")

    @property
    def num_queued(self) -> int:
        """Loads that have begun and not ended."""
        return self._num_queued

    def begin(self, load: PrefixLoad) -> None:
        """Search what is missing of a load; finishes it now or from another thread."""
        missing = load.missing_names
        estimate = self._estimate(len(missing))
        if not estimate.is_worth_it:
            self._finish(load, [], _lookup("compute", estimate, "slow"))
            self._probe_sometimes(missing[0])
        elif self._breaker.state == "open":
            self._finish(load, [], _lookup("miss", estimate, "breaker_open"))
        elif self._num_queued >= MAX_QUEUED_LOADS:
            self._finish(load, [], _lookup("miss", estimate, "busy"))
        else:
            with self._lock:
                self._num_queued += 1
            self._threads.submit(self._search, load, time.monotonic() + self._timeout_s)

    def close(self) -> None:
        """Wait for the loads under way; those that have not begun never end."""
        self._threads.shutdown(wait=True, cancel_futures=True)

    def _search(self, load: PrefixLoad, deadline: float) -> None:
        """Runs on a thread of the loader. Whatever happens, the load ends and its owner goes on."""
        buffers: Sequence[ChunkBuffer] = ()
        lookup = _lookup("miss", LoadEstimate(), "failed")
        try:
            buffers, lookup = self._find(load, deadline)
        finally:
            with self._lock:
                self._num_queued -= 1
            self._finish(load, buffers, lookup)
            self._wake()

    def _find(
        self, load: PrefixLoad, deadline: float
    ) -> tuple[Sequence[ChunkBuffer], PrefixLookup]:
        """The missing chunks, from host memory if they are there by now, else from Redis."""
        started = time.monotonic()
        # Another request may have brought it meanwhile.
        found = self._host.match(name.key for name in load.missing_names)
        missing = load.missing_names[len(found) :]
        loaded: list[ChunkBuffer] = []
        lookup = _lookup("miss", LoadEstimate(), "found_in_host")
        if missing:
            loaded, lookup = self._load(missing, deadline)
        seconds = time.monotonic() - started
        num_tokens = len(loaded) * self._format.num_tokens
        self._counters.count_read(
            len(loaded),
            num_tokens=num_tokens,
            num_bytes=len(loaded) * self._format.value_bytes,
            seconds=seconds,
        )
        return [*found, *loaded], replace(lookup, seconds=seconds, num_tokens=num_tokens)

    def _load(
        self, names: Sequence[ChunkName], deadline: float
    ) -> tuple[list[ChunkBuffer], PrefixLookup]:
        num_present, reason = self._tier.match(names, deadline)
        if not num_present:
            return [], _lookup("miss", LoadEstimate(), reason)
        if self._gate.bandwidth is None:
            problem = self._tier.probe(names[0], deadline)
            if problem is not None:
                return [], _lookup("miss", LoadEstimate(), problem)
        estimate = self._estimate(num_present)
        now = time.monotonic()
        max_bytes = self._gate.max_bytes(_MAX_TIME_SHARE * (deadline - now)) or 0
        num_wanted = min(num_present, max_bytes // self._format.value_bytes)
        if not estimate.is_worth_it or not num_wanted:
            return [], _lookup("compute", estimate, "slow")
        if estimate.compute_s is not None:
            deadline = min(deadline, now + estimate.compute_s)
        loaded, problem = self._tier.load(names[:num_wanted], self._host, deadline=deadline)
        for name in names[: len(loaded)]:
            self._known.add(name.key)
        if problem in DAMAGES:
            # What stands there is written anew, though it has the right length.
            self._known.add_damaged(names[len(loaded)].key)
        return loaded, _lookup("load" if loaded else "miss", estimate, problem or reason)

    def _finish(
        self, load: PrefixLoad, buffers: Sequence[ChunkBuffer], lookup: PrefixLookup
    ) -> None:
        self._counters.count_lookup(lookup)
        load.add(buffers, lookup)
        load.finish()

    def _probe_sometimes(self, name: ChunkName) -> None:
        now = time.monotonic()
        if now >= self._next_probe:
            self._next_probe = now + PROBE_INTERVAL_S
            self._threads.submit(self._tier.probe, name, now + self._timeout_s)

    def _estimate(self, num_chunks: int) -> LoadEstimate:
        return self._gate.estimate(
            num_bytes=num_chunks * self._format.value_bytes,
            num_tokens=num_chunks * self._format.num_tokens,
        )


def _lookup(decision: Decision, estimate: LoadEstimate, reason: str | None) -> PrefixLookup:
    return PrefixLookup(
        tier="redis",
        decision=decision,
        reason=reason,
        load_estimate_s=estimate.load_s,
        compute_estimate_s=estimate.compute_s,
    )
