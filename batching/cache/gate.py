"""Predicts if loading a prefix from a tier is faster than computing it."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass

# Weight of the newest observation in a moving average.
_WEIGHT = 0.3
# Links change by orders of magnitude, so bandwidth is averaged by its logarithm, and quickly.
_BANDWIDTH_WEIGHT = 0.5
# Loading must promise this share of the computing time at most: it is the less certain of the two.
_MAX_SHARE = 0.8
_HOPELESS_SHARE = 4.0


class MovingAverage:
    """An exponential moving average; None before the first observation."""

    def __init__(self, weight: float = _WEIGHT) -> None:
        self._weight = weight
        self.value: float | None = None

    def add(self, observation: float) -> None:
        """Take in one more observation."""
        if self.value is None:
            self.value = observation
        else:
            self.value += self._weight * (observation - self.value)


class PrefillSpeed:
    """Tokens a second at which this process computes prompts; written by the engine thread."""

    def __init__(self) -> None:
        self._tokens_per_s = MovingAverage()

    @property
    def tokens_per_s(self) -> float | None:
        """The moving average, None before the first long enough step."""
        return self._tokens_per_s.value

    def observe(self, num_tokens: int, seconds: float) -> None:
        """Add a step that computed `num_tokens` rows."""
        self._tokens_per_s.add(num_tokens / max(seconds, 1e-6))


@dataclass(frozen=True, slots=True)
class LoadEstimate:
    """Seconds that loading and computing would take; None where nothing has been observed."""

    load_s: float | None = None
    compute_s: float | None = None

    @property
    def is_worth_it(self) -> bool:
        """True if loading is faster by a margin, or if a time is unknown."""
        if self.load_s is None or self.compute_s is None:
            return True
        return self.load_s < _MAX_SHARE * self.compute_s

    @property
    def is_hopeless(self) -> bool:
        """True if transfer is so much slower than computing that loading will never pay."""
        if self.load_s is None or self.compute_s is None:
            return False
        return self.load_s > _HOPELESS_SHARE * self.compute_s


class TierGate:
    """Observed latency and bandwidth of one tier against the speed of prefill.

    Safe to use from several threads. Latencies in seconds, bandwidth in bytes a second.
    """

    def __init__(self, prefill: PrefillSpeed) -> None:
        self._prefill = prefill
        self._lock = threading.Lock()
        self._latency_s = MovingAverage()
        self._log_bandwidth = MovingAverage(_BANDWIDTH_WEIGHT)

    @property
    def latency_s(self) -> float | None:
        """Time of a round trip without payload."""
        return self._latency_s.value

    @property
    def bandwidth(self) -> float | None:
        """Bytes a second of payload, None before the first transfer."""
        log_bandwidth = self._log_bandwidth.value
        return None if log_bandwidth is None else math.exp(log_bandwidth)

    def observe_latency(self, seconds: float) -> None:
        """Add one round trip."""
        with self._lock:
            self._latency_s.add(seconds)

    def observe_transfer(self, num_bytes: int, seconds: float) -> None:
        """Add one transfer, latency included. At most three quarters of it count as latency."""
        with self._lock:
            net_s = max(seconds - (self._latency_s.value or 0.0), seconds / 4, 1e-6)
            self._log_bandwidth.add(math.log(max(num_bytes, 1) / net_s))

    def estimate(self, *, num_bytes: int, num_tokens: int) -> LoadEstimate:
        """Estimate the seconds to load `num_bytes` and to compute the `num_tokens` in them."""
        with self._lock:
            latency_s, bandwidth = self._latency_s.value or 0.0, self.bandwidth
        tokens_per_s = self._prefill.tokens_per_s
        return LoadEstimate(
            load_s=None if bandwidth is None else latency_s + num_bytes / bandwidth,
            compute_s=None if tokens_per_s is None else num_tokens / tokens_per_s,
        )

    def max_bytes(self, seconds: float) -> int | None:
        """The bytes that can be transferred in that time, None if nothing is known."""
        with self._lock:
            bandwidth = self.bandwidth
            if bandwidth is None:
                return None
            return int(max(0.0, seconds - (self._latency_s.value or 0.0)) * bandwidth)
