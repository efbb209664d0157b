"""Keeps a failing helper from being asked again and again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Literal

BreakerState = Literal["closed", "half_open", "open"]

MAX_FAILURES = 3
MAX_LOST_S = 0.2
FIRST_PAUSE_S = 0.5
MAX_PAUSE_S = 30.0


class CircuitBreaker:
    """Opens after some failures in a row, and at once when failures have cost `max_lost_s`.

    While it is open nobody passes. After a pause one trial at a time may be made, beside those who
    are turned away; only a good trial closes it. Pauses double from trial to trial, and when it
    opens again within `max_pause_s`. Safe to use from several threads.
    """

    def __init__(
        self,
        *,
        max_failures: int = MAX_FAILURES,
        max_lost_s: float = MAX_LOST_S,
        first_pause_s: float = FIRST_PAUSE_S,
        max_pause_s: float = MAX_PAUSE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_failures = max_failures
        self._max_lost_s = max_lost_s
        self._first_pause_s = first_pause_s
        self._max_pause_s = max_pause_s
        self._clock = clock
        self._lock = threading.Lock()
        self._num_failures = 0
        self._lost_s = 0.0
        self._pause_s = first_pause_s
        self._opened_at: float | None = None
        self._closed_at: float | None = None

    @property
    def state(self) -> BreakerState:
        """`half_open` while a trial is due."""
        with self._lock:
            if self._opened_at is None:
                return "closed"
            return "half_open" if self._clock() >= self._opened_at + self._pause_s else "open"

    @property
    def can_pass(self) -> bool:
        """True if the helper may be asked; who asks it reports `succeeded` or `failed`."""
        return self._opened_at is None

    def succeeded(self) -> None:
        """Forget the failures before; an open breaker stays open."""
        with self._lock:
            self._num_failures, self._lost_s = 0, 0.0

    def failed(self, *, lost_s: float = 0.0) -> None:
        """Count a failure, with the seconds that a request waited for it."""
        with self._lock:
            if self._opened_at is not None:
                return
            self._num_failures += 1
            self._lost_s += lost_s
            if self._num_failures < self._max_failures and self._lost_s < self._max_lost_s:
                return
            now = self._clock()
            self._opened_at = now
            is_relapse = self._closed_at is not None and now < self._closed_at + self._max_pause_s
            if is_relapse:
                self._lengthen_pause()
            else:
                self._pause_s = self._first_pause_s

    def try_begin_trial(self) -> bool:
        """True if the caller makes the next trial; it reports how the trial ended."""
        with self._lock:
            now = self._clock()
            if self._opened_at is None or now < self._opened_at + self._pause_s:
                return False
            # A trial whose owner never reports costs one pause, not all the future.
            self._opened_at = now
            return True

    def trial_succeeded(self) -> None:
        """Close the breaker."""
        with self._lock:
            self._num_failures, self._lost_s = 0, 0.0
            self._opened_at, self._closed_at = None, self._clock()

    def trial_failed(self) -> None:
        """Stay open for twice as long."""
        with self._lock:
            if self._opened_at is not None:
                self._opened_at = self._clock()
                self._lengthen_pause()

    def _lengthen_pause(self) -> None:
        self._pause_s = min(2 * self._pause_s, self._max_pause_s)
