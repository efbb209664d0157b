"""A prompt's chunks on their way from the lower tiers to the device."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from batching.cache.host_tier import ChunkBuffer, HostTier
from batching.cache.stats import PrefixLookup
from batching.cache.value import ChunkName


class PrefixLoad:
    """Chunks from `first_chunk` on, as far as they were found, in buffers of `host`.

    Filled by whoever searches, read by its owner once it `is_done`, and ended by the owner at any
    time; the buffers are in use until both are through.
    """

    def __init__(self, host: HostTier, *, first_chunk: int, names: Sequence[ChunkName]) -> None:
        self.first_chunk = first_chunk
        self.names = names
        self.buffers: list[ChunkBuffer] = []
        self.lookups: list[PrefixLookup] = []
        self._host = host
        self._lock = threading.Lock()
        self._is_done = False
        self._is_ended = False

    @property
    def is_done(self) -> bool:
        """True if the search is over; nothing changes from then on."""
        return self._is_done

    @property
    def missing_names(self) -> Sequence[ChunkName]:
        """The chunks behind those that were found."""
        return self.names[len(self.buffers) :]

    def add(self, buffers: Sequence[ChunkBuffer], lookup: PrefixLookup) -> None:
        """Take over one use of each buffer, and what one tier's search came to."""
        with self._lock:
            self.buffers += buffers
            self.lookups.append(lookup)

    def finish(self) -> None:
        """End the search."""
        with self._lock:
            self._is_done = True
            if self._is_ended:
                self._release()

    def end(self) -> None:
        """Release the load on behalf of its owner; may be called again."""
        with self._lock:
            is_first, self._is_ended = not self._is_ended, True
            if is_first and self._is_done:
                self._release()

    def _release(self) -> None:
        self._host.release(self.buffers)
        self.buffers = []
