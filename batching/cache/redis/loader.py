"""Brings chunks from Redis to host memory in the background, where that is worth the time."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from batching.cache.gate import LoadEstimate, TierGate
from batching.cache.host_tier import ChunkBuffer, HostTier
from batching.cache.prefix_load import PrefixLoad
from batching.cache.redis.circuit_breaker import MAX_LOST_S, CircuitBreaker
from batching.cache.redis.known_keys import KnownKeys
from batching.cache.redis.tier import FAILURES, RedisTier
from batching.cache.stats import Decision, PrefixLookup, TierCounters
from batching.cache.value import DAMAGES, ChunkName, ValueFormat

_LOGGER = logging.getLogger(__name__)

NUM_CONNECTIONS = 4
MAX_QUEUED_LOADS = 64
# A link that was found too slow is measured again after this time, beside the requests.
PROBE_INTERVAL_S = 10.0
# Share of the time left that a load may be expected to take.
_MAX_TIME_SHARE = 0.8
# Share of the time that small replies may take; the rest is for values.
_MATCH_SHARE = 0.5


class RedisLoader:
    """Decides, loads within `timeout_s`, and calls `wake` when a load has ended.

    What a whole search came to counts for the breaker, not a single reply: a link may carry small
    ones and no values. While the breaker is open no load waits, and trials go on beside them.
    """

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
        if not self._breaker.can_pass:
            self._finish(load, [], _lookup("miss", estimate, "breaker_open"))
            self._try_again_sometimes(missing)
        elif not estimate.is_worth_it:
            self._finish(load, [], _lookup("compute", estimate, "slow"))
            self._probe_sometimes(missing[0])
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
        except Exception:  # the request computes its prompt; the miss "failed" counts this
            _LOGGER.exception("a search in Redis failed")
        self._judge(lookup)
        with self._lock:
            self._num_queued -= 1
        self._finish(load, buffers, lookup)
        self._wake()

    def _judge(self, lookup: PrefixLookup) -> None:
        """Tell the breaker of a search; one that took its time for nothing has failed too."""
        is_stall = not lookup.num_tokens and lookup.seconds >= MAX_LOST_S
        if is_stall or lookup.reason in FAILURES:
            self._breaker.failed(lost_s=lookup.seconds)
        elif lookup.reason != "breaker_open":
            self._breaker.succeeded()

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
        try:
            if missing:
                loaded, lookup = self._load(missing, deadline)
        except Exception:
            self._host.release(found)
            raise
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
        if not self._breaker.can_pass:
            return [], _lookup("miss", LoadEstimate(), "breaker_open")
        generations, reason = self._match(names, deadline)
        num_present = len(generations)
        if not num_present:
            return [], _lookup("miss", LoadEstimate(), reason)
        if self._gate.bandwidth is None:
            problem = self._tier.probe(names[0], deadline)
            if problem is not None:
                return [], _lookup("miss", LoadEstimate(), problem)
        estimate = self._estimate(num_present)
        now = time.monotonic()
        num_wanted = min(num_present, self._max_chunks(deadline - now))
        if not estimate.is_worth_it or not num_wanted:
            return [], _lookup("compute", estimate, "slow")
        if estimate.compute_s is not None:
            deadline = min(deadline, now + estimate.compute_s)
        loaded, problem = self._tier.load(
            names[:num_wanted], self._host, deadline=deadline, generations=generations
        )
        for name, generation, _ in zip(names, generations, loaded, strict=False):
            # A chunk of an older secret is written once more, with the newest.
            if generation == 0:
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

    def _match(self, names: Sequence[ChunkName], deadline: float) -> tuple[list[int], str | None]:
        limit = time.monotonic() + _MATCH_SHARE * self._timeout_s
        return self._tier.match(names, min(deadline, limit))

    def _max_chunks(self, seconds: float) -> int:
        """How many chunks can be expected in that time, 0 if nothing is known."""
        max_bytes = self._gate.max_bytes(_MAX_TIME_SHARE * seconds) or 0
        return max_bytes // self._format.value_bytes

    def _try_again_sometimes(self, names: Sequence[ChunkName]) -> None:
        if self._breaker.try_begin_trial():
            self._threads.submit(self._try_again, names)

    def _try_again(self, names: Sequence[ChunkName]) -> None:
        """Runs on a thread of the loader, for nobody; closes the breaker if it goes well."""
        is_usable = False
        try:
            is_usable = self._is_usable(names, time.monotonic() + self._timeout_s)
        except Exception:  # the breaker stays open, which the metrics show
            _LOGGER.exception("a trial of Redis failed")
        if is_usable:
            self._breaker.trial_succeeded()
        else:
            self._breaker.trial_failed()

    def _is_usable(self, names: Sequence[ChunkName], deadline: float) -> bool:
        """True if as much comes through as a request would load, in the time that it would wait.

        What comes is kept in host memory.
        """
        began = time.monotonic()
        generations, problem = self._match(names, deadline)
        num_present = len(generations)
        is_slow = time.monotonic() - began >= MAX_LOST_S
        loaded: list[ChunkBuffer] = []
        if num_present and problem not in FAILURES:
            num_wanted = max(1, min(num_present, self._max_chunks(deadline - time.monotonic())))
            loaded, problem = self._tier.load(
                names[:num_wanted], self._host, deadline=deadline, generations=generations
            )
            self._host.release(loaded)
        if problem in FAILURES:
            return False
        if loaded:
            return True
        return not is_slow and self._tier.echo(deadline) not in FAILURES

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
