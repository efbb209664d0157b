"""Writes chunks to Redis in the background, each once, if loading them could pay."""

from __future__ import annotations

import logging
import queue
import threading
import time

from batching.cache.gate import TierGate
from batching.cache.host_tier import ChunkBuffer, HostTier
from batching.cache.redis.circuit_breaker import CircuitBreaker
from batching.cache.redis.known_keys import KnownKeys
from batching.cache.redis.tier import FAILURES, RedisTier
from batching.cache.stats import TierCounters
from batching.cache.value import ChunkName, ValueFormat

_LOGGER = logging.getLogger(__name__)

MAX_QUEUED_STORES = 64
# So long nothing is written to a server that has no room, or over a link that is too slow.
FULL_PAUSE_S = 5.0
SLOW_PAUSE_S = 30.0

_Entry = tuple[ChunkName, ChunkBuffer]


class RedisWriter:
    """A bounded queue and the thread that empties it. Chunks that do not fit in are dropped.

    Its breaker is its own: a server may be read while nothing can be written to it.
    """

    def __init__(
        self,
        tier: RedisTier,
        host: HostTier,
        value_format: ValueFormat,
        *,
        read_gate: TierGate,
        write_gate: TierGate,
        breaker: CircuitBreaker,
        known: KnownKeys,
        counters: TierCounters,
        timeout_s: float,
    ) -> None:
        self._tier = tier
        self._host = host
        self._format = value_format
        self._gates = (read_gate, write_gate)
        self._write_gate = write_gate
        self._breaker = breaker
        self._known = known
        self._counters = counters
        self._timeout_s = timeout_s
        self._paused_until = 0.0
        self._entries: queue.Queue[_Entry | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="cache-store", daemon=True)
        self._thread.start()

    @property
    def num_queued(self) -> int:
        """Chunks that wait to be written."""
        return self._entries.qsize()

    def offer(self, name: ChunkName, buffer: ChunkBuffer) -> None:
        """Write a chunk some time, taking over one use of its buffer."""
        if self._known.has(name.key):
            self._host.release([buffer])
        elif self.num_queued >= MAX_QUEUED_STORES:
            self._drop((name, buffer), "queue_full")
        else:
            self._known.add(name.key)
            self._entries.put((name, buffer))

    def wait(self, timeout_s: float) -> bool:
        """Wait until all that was offered is written or dropped; False if that takes too long."""
        deadline = time.monotonic() + timeout_s
        with self._entries.all_tasks_done:
            while self._entries.unfinished_tasks:
                remaining_s = deadline - time.monotonic()
                if remaining_s <= 0:
                    return False
                self._entries.all_tasks_done.wait(remaining_s)
        return True

    def close(self) -> None:
        """Take some time to write what waits, drop the rest and end the thread."""
        if not self._thread.is_alive():
            return
        self.wait(self._timeout_s)
        while True:
            try:
                entry = self._entries.get_nowait()
            except queue.Empty:
                break
            if entry is not None:
                self._drop(entry, "stopped")
            self._entries.task_done()
        self._entries.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (entry := self._entries.get()) is not None:
            name, buffer = entry
            reason: str | None = "failed"
            try:
                reason = self._store_if_allowed(name, buffer.memory)
            except Exception:  # the chunks behind it are written all the same; the drop counts this
                _LOGGER.exception("a chunk could not be written to Redis")
            if reason is None:
                self._counters.count_store(len(buffer.memory))
                self._host.release([buffer])
            else:
                self._drop(entry, reason)
            self._entries.task_done()
        self._entries.task_done()

    def _store_if_allowed(self, name: ChunkName, value: memoryview) -> str | None:
        """Write one chunk unless writing has failed of late; that is what trials are made with."""
        is_trial = self._breaker.try_begin_trial()
        if not is_trial and not self._breaker.can_pass:
            return "breaker_open"
        began = time.monotonic()
        reason = self._store(name, value)
        is_bad = reason in FAILURES
        if is_trial and is_bad:
            self._breaker.trial_failed()
        elif is_trial and reason is None:
            self._breaker.trial_succeeded()
        elif is_bad:
            self._breaker.failed(lost_s=time.monotonic() - began)
        elif reason is None:
            self._breaker.succeeded()
        return reason

    def _store(self, name: ChunkName, value: memoryview) -> str | None:
        """Write one chunk unless that is of no use; the reason if it was not written."""
        now = time.monotonic()
        if now < self._paused_until:
            return "paused"
        num_bytes, num_tokens = len(value), self._format.num_tokens
        if any(
            gate.estimate(num_bytes=num_bytes, num_tokens=num_tokens).is_hopeless
            for gate in self._gates
        ):
            # One more chunk goes out after the pause, and measures the link again.
            self._paused_until = now + SLOW_PAUSE_S
        if not self._known.take_damaged(name.key):
            problem = self._tier.find_lack(name, now + self._timeout_s)
            if problem is None:
                return "present"
            if problem not in ("absent", "length", "wrongtype"):
                return problem
        self._format.seal(value, name)
        started = time.monotonic()
        reason = self._tier.store(name, value, started + self._timeout_s)
        if reason in (None, "timeout"):
            # After a timeout it is at most this much.
            self._write_gate.observe_transfer(num_bytes, time.monotonic() - started)
        if reason == "oom":
            self._paused_until = time.monotonic() + FULL_PAUSE_S
        return reason

    def _drop(self, entry: _Entry, reason: str) -> None:
        name, buffer = entry
        self._counters.count_drop(reason)
        if reason != "present":
            self._known.forget(name.key)
        self._host.release([buffer])
