"""Keeps a failing helper from being asked again and again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Literal

BreakerState = Literal["closed", "half_open", "open"]

MAX_FAILURES = 3
FIRST_PAUSE_S = 0.5
MAX_PAUSE_S = 30.0


class CircuitBreaker:
    """Opens after some failures in a row; then one trial at a time, after longer and longer pauses.

    Whoever gets a pass reports `succeeded` or `failed`. Safe to use from several threads.
    """

    def __init__(
        self,
        *,
        max_failures: int = MAX_FAILURES,
        first_pause_s: float = FIRST_PAUSE_S,
        max_pause_s: float = MAX_PAUSE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_failures = max_failures
        self._first_pause_s = first_pause_s
        self._max_pause_s = max_pause_s
        self._clock = clock
        self._lock = threading.Lock()
        self._num_failures = 0
        self._pause_s = first_pause_s
        self._opened_at: float | None = None

    @property
    def state(self) -> BreakerState:
        """`half_open` while a trial is due or under way."""
        with self._lock:
            if self._opened_at is None:
                return "closed"
            return "half_open" if self._clock() >= self._opened_at + self._pause_s else "open"

    def try_pass(self) -> bool:
        """Whether the caller may go on; of those who ask an open breaker, one a pause."""
        with self._lock:
            if self._opened_at is None:
                return True
            now = self._clock()
            if now < self._opened_at + self._pause_s:
                return False
            # A trial whose owner never reports costs one pause, not all the future.
            self._opened_at = now
            return True

    def succeeded(self) -> None:
        """Close."""
        with self._lock:
            self._num_failures = 0
            self._pause_s = self._first_pause_s
            self._opened_at = None

    def failed(self) -> None:
        """Count a failure; one during a trial doubles the pause."""
        with self._lock:
            self._num_failures += 1
            if self._opened_at is not None:
                self._pause_s = min(2 * self._pause_s, self._max_pause_s)
            if self._num_failures >= self._max_failures:
                self._opened_at = self._clock()
