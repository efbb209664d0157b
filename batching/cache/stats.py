"""Figures of the tiers below the device: totals since start and gauges of the moment."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from batching.cache.redis.circuit_breaker import BreakerState

TierName = Literal["host", "redis"]
Decision = Literal["load", "compute", "miss"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefixLookup:
    """The outcome of one request's search below the device; times in seconds.

    `load`: something was loaded. `compute`: computing was expected to be faster, or enough is on
    the device. `miss`: `reason` says why nothing was found. Estimates are None where nothing has
    been observed yet.
    """

    tier: TierName
    decision: Decision
    reason: str | None = None
    num_tokens: int = 0
    load_estimate_s: float | None = None
    compute_estimate_s: float | None = None
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TierStats:
    """Figures of one tier. A lookup is one request's; hits and stores count chunks."""

    tier: TierName
    lookups: int
    hits: int
    hit_tokens: int
    read_bytes: int
    read_seconds: float
    stores: int
    written_bytes: int
    misses: Mapping[str, int]
    drops: Mapping[str, int]
    decisions: Mapping[str, int]
    num_bytes: int = 0
    queue_depth: int = 0
    breaker: BreakerState = "closed"
    latency_s: float | None = None
    bandwidth: float | None = None


class TierCounters:
    """Totals of one tier; safe to write to from several threads."""

    def __init__(self, tier: TierName) -> None:
        self._tier: TierName = tier
        self._lock = threading.Lock()
        self._hits = 0
        self._hit_tokens = 0
        self._read_bytes = 0
        self._read_seconds = 0.0
        self._stores = 0
        self._written_bytes = 0
        self._misses: Counter[str] = Counter()
        self._drops: Counter[str] = Counter()
        self._decisions: Counter[str] = Counter()

    def count_lookup(self, lookup: PrefixLookup) -> None:
        """Add one request's search."""
        with self._lock:
            self._decisions[lookup.decision] += 1
            if lookup.reason is not None:
                self._misses[lookup.reason] += 1

    def count_read(
        self, num_chunks: int, *, num_tokens: int, num_bytes: int, seconds: float
    ) -> None:
        """Add chunks that were found and read."""
        with self._lock:
            self._hits += num_chunks
            self._hit_tokens += num_tokens
            self._read_bytes += num_bytes
            self._read_seconds += seconds

    def count_store(self, num_bytes: int) -> None:
        """Add one chunk that was written."""
        with self._lock:
            self._stores += 1
            self._written_bytes += num_bytes

    def count_drop(self, reason: str) -> None:
        """Add one chunk that was not written."""
        with self._lock:
            self._drops[reason] += 1

    def snapshot(self, gauges: TierGauges) -> TierStats:
        """The totals beside the gauges of the moment."""
        with self._lock:
            return TierStats(
                tier=self._tier,
                lookups=self._decisions.total(),
                hits=self._hits,
                hit_tokens=self._hit_tokens,
                read_bytes=self._read_bytes,
                read_seconds=self._read_seconds,
                stores=self._stores,
                written_bytes=self._written_bytes,
                misses=dict(self._misses),
                drops=dict(self._drops),
                decisions=dict(self._decisions),
                num_bytes=gauges.num_bytes,
                queue_depth=gauges.queue_depth,
                breaker=gauges.breaker,
                latency_s=gauges.latency_s,
                bandwidth=gauges.bandwidth,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TierGauges:
    """Gauges of the moment; latency in seconds, bandwidth in bytes a second."""

    num_bytes: int = 0
    queue_depth: int = 0
    breaker: BreakerState = "closed"
    latency_s: float | None = None
    bandwidth: float | None = None
