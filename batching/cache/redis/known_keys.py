"""Remembers keys seen in Redis, which saves a process from asking again."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

KNOWN_S = 60.0
MAX_KEYS = 1 << 16


class KnownKeys:
    """Keys that were seen in Redis not long ago, and keys whose values are damaged.

    Safe to use from several threads; the oldest of too many keys are forgotten.
    """

    def __init__(
        self, *, max_keys: int = MAX_KEYS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_keys = max_keys
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: OrderedDict[bytes, float] = OrderedDict()
        self._damaged: OrderedDict[bytes, None] = OrderedDict()

    def add(self, key: bytes) -> None:
        """Note that the key exists, or will in a moment."""
        with self._lock:
            self._seen[key] = self._clock()
            self._seen.move_to_end(key)
            if len(self._seen) > self._max_keys:
                self._seen.popitem(last=False)

    def has(self, key: bytes) -> bool:
        """True if the key was there during the last minute."""
        with self._lock:
            seen = self._seen.get(key)
            return seen is not None and self._clock() < seen + KNOWN_S

    def forget(self, key: bytes) -> None:
        """Note that the key is missing after all."""
        with self._lock:
            self._seen.pop(key, None)

    def add_damaged(self, key: bytes) -> None:
        """Note that the key's value is damaged."""
        with self._lock:
            self._seen.pop(key, None)
            self._damaged[key] = None
            if len(self._damaged) > self._max_keys:
                self._damaged.popitem(last=False)

    def take_damaged(self, key: bytes) -> bool:
        """True if the key was noted as damaged; clears the note."""
        with self._lock:
            return self._damaged.pop(key, b"") is None
