"""Chunks of keys and values in host memory, the least recently used given up first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable


class ChunkBuffer:
    """Memory of one value. While it has users nobody else writes to it."""

    __slots__ = ("key", "memory", "num_users")

    def __init__(self, memory: memoryview) -> None:
        self.memory = memory
        self.key: bytes | None = None
        self.num_users = 0


class HostTier:
    """At most `max_bytes` of buffers of one size, taken as they are needed and then reused.

    Where the system has less memory, what there is by then is the limit: `allocate` may raise
    MemoryError.
    Safe to use from several threads.
    """

    def __init__(
        self, *, value_bytes: int, max_bytes: int, allocate: Callable[[int], memoryview]
    ) -> None:
        self.max_chunks = max_bytes // value_bytes
        self._value_bytes = value_bytes
        self._allocate = allocate
        self._lock = threading.Lock()
        self._num_buffers = 0
        self._free: list[ChunkBuffer] = []
        self._chunks: OrderedDict[bytes, ChunkBuffer] = OrderedDict()

    @property
    def num_bytes(self) -> int:
        """Memory taken so far."""
        return self._num_buffers * self._value_bytes

    @property
    def num_chunks(self) -> int:
        """Chunks that can be found."""
        return len(self._chunks)

    def has(self, key: bytes) -> bool:
        """True if a chunk can be found."""
        with self._lock:
            return key in self._chunks

    def match(self, keys: Iterable[bytes]) -> list[ChunkBuffer]:
        """The leading chunks of `keys`, up to the first that is missing; the caller is a user."""
        found = []
        with self._lock:
            for key in keys:
                buffer = self._chunks.get(key)
                if buffer is None:
                    break
                self._chunks.move_to_end(key)
                buffer.num_users += 1
                found.append(buffer)
        return found

    def try_acquire(self) -> ChunkBuffer | None:
        """A buffer to write to, with the caller as its user; None if all are in use."""
        with self._lock:
            allocated = None if self._free else self._try_allocate()
            if self._free:
                buffer = self._free.pop()
            elif allocated is not None:
                buffer = allocated
            else:
                unused = next((b for b in self._chunks.values() if not b.num_users), None)
                if unused is None:
                    return None
                buffer = unused
                self._forget(buffer)
            buffer.num_users = 1
            return buffer

    def insert(self, key: bytes, buffer: ChunkBuffer) -> None:
        """Make a written buffer findable; the first one of a key stays the one found."""
        with self._lock:
            if key not in self._chunks:
                self._chunks[key] = buffer
                buffer.key = key

    def release(self, buffers: Iterable[ChunkBuffer]) -> None:
        """End one use of each buffer."""
        with self._lock:
            for buffer in buffers:
                assert buffer.num_users > 0, "a buffer is released once for each use"
                buffer.num_users -= 1
                if not buffer.num_users and buffer.key is None:
                    self._free.append(buffer)

    def clear(self) -> None:
        """Forget every chunk that is not in use; the memory is kept for others."""
        with self._lock:
            unused = [buffer for buffer in self._chunks.values() if not buffer.num_users]
            for buffer in unused:
                self._forget(buffer)
            self._free += unused

    def check_invariants(self) -> None:
        """Raise AssertionError if the books do not balance; for tests, when nothing is in use."""
        with self._lock:
            assert len(self._free) + len(self._chunks) == self._num_buffers <= self.max_chunks
            assert all(buffer.key == key for key, buffer in self._chunks.items())
            assert not any(b.num_users for b in (*self._free, *self._chunks.values()))

    def _try_allocate(self) -> ChunkBuffer | None:
        if self._num_buffers >= self.max_chunks:
            return None
        try:
            memory = self._allocate(self._value_bytes)
        except MemoryError:
            self.max_chunks = self._num_buffers
            return None
        self._num_buffers += 1
        return ChunkBuffer(memory)

    def _forget(self, buffer: ChunkBuffer) -> None:
        assert buffer.key is not None, "only chunks that can be found are given up"
        del self._chunks[buffer.key]
        buffer.key = None
