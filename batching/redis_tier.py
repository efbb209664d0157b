"""Chunks of keys and values in a Redis that other processes share, and that may fail at any time.

Nothing here raises for what the server or the network does: a chunk is read whole and checked, or
it is a miss with a reason.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from batching.cache_gate import TierGate
from batching.cache_value import ChunkName, ValueFormat
from batching.circuit_breaker import CircuitBreaker
from batching.errors import RedisError, RedisProtocolError, RedisReplyError
from batching.host_tier import ChunkBuffer, HostTier
from batching.redis_connection import RedisConnection
from batching.redis_url import RedisAddress

_LOGGER = logging.getLogger(__name__)

# Replies under way at a time: enough to keep the link busy, little to throw away.
_WINDOW = 4
_PROBE_BYTES = 1 << 16
# Answers that speak of one key or of writing, not of the server's health.
_HARMLESS = frozenset({"wrongtype", "oom", "noperm"})


class RedisTier:
    """Reads and writes sealed values. Safe to use from several threads, one connection for each.

    A reason is a short word for metrics: "absent", "timeout", "checksum", "breaker_open" and so on.
    """

    def __init__(
        self,
        address: RedisAddress,
        value_format: ValueFormat,
        *,
        gate: TierGate,
        breaker: CircuitBreaker,
        connect_timeout_s: float,
        ttl_s: int,
    ) -> None:
        self._address = address
        self._format = value_format
        self._gate = gate
        self._breaker = breaker
        self._connect_timeout_s = connect_timeout_s
        self._ttl_s = ttl_s
        self._lock = threading.Lock()
        self._idle: list[RedisConnection] = []
        self._last_problem = ""

    def match(self, names: Sequence[ChunkName], deadline: float) -> tuple[int, str | None]:
        """How many leading chunks are there in their right length, and why not more."""
        lengths: list[int | str] = []

        def ask(connection: RedisConnection) -> None:
            started = time.monotonic()
            connection.send([(b"STRLEN", self._format.redis_key(name)) for name in names])
            for _ in names:
                try:
                    reply = connection.read_reply()
                except RedisReplyError as error:
                    lengths.append(_reason_of(error))
                else:
                    lengths.append(reply if isinstance(reply, int) else "protocol")
                if len(lengths) == 1:
                    self._gate.observe_latency(time.monotonic() - started)

        problem = self._run(ask, deadline)
        for count, length in enumerate(lengths):
            if length != self._format.value_bytes:
                return count, _reason_of_length(length)
        return len(lengths), problem

    def probe(self, name: ChunkName, deadline: float) -> str | None:
        """Measure the link by reading a small part of a chunk; the reason if that failed.

        Where the chunk is absent an echo of the same size is taken for it.
        """

        def ask(connection: RedisConnection) -> None:
            key, last = self._format.redis_key(name), b"%d" % (_PROBE_BYTES - 1)
            for command in ((b"GETRANGE", key, b"0", last), (b"ECHO", bytes(_PROBE_BYTES))):
                started = time.monotonic()
                part = connection.call(*command)
                if isinstance(part, bytes) and part:
                    self._gate.observe_transfer(len(part), time.monotonic() - started)
                    return

        return self._run(ask, deadline)

    def load(
        self, names: Sequence[ChunkName], host: HostTier, *, deadline: float
    ) -> tuple[list[ChunkBuffer], str | None]:
        """Leading chunks, read into buffers of `host` and checked, and why there are not more.

        They can be found in `host` now, and the caller is a user of each.
        """
        loaded: list[ChunkBuffer] = []
        reading = _Reading(names, host, self._format)
        started = time.monotonic()
        counts = [0, 0]

        def ask(connection: RedisConnection) -> None:
            counts[0] = connection.num_received_bytes
            try:
                reading.run(connection, loaded)
            finally:
                counts[1] = connection.num_received_bytes

        problem = self._run(ask, deadline)
        reading.give_up()
        num_bytes = max(0, counts[1] - counts[0])
        # What came before a failure tells of the link as well, unless it is next to nothing.
        if num_bytes >= _PROBE_BYTES or (num_bytes and problem == "timeout"):
            self._gate.observe_transfer(num_bytes, time.monotonic() - started)
        return loaded, problem or reading.problem

    def store(self, name: ChunkName, value: memoryview, deadline: float) -> str | None:
        """Write a sealed value with its time to live; the reason if that failed."""
        key, ttl = self._format.redis_key(name), b"%d" % self._ttl_s
        return self._run(lambda one: _discard(one.call(b"SET", key, value, b"EX", ttl)), deadline)

    def close(self) -> None:
        """Close the connections that nobody uses."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _run(self, operation: Callable[[RedisConnection], None], deadline: float) -> str | None:
        """Do something with a connection; the reason if it failed."""
        if not self._breaker.try_pass():
            return "breaker_open"
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        is_reused = connection is not None
        try:
            if connection is None:
                connection = self._open(deadline)
            connection.set_deadline(deadline)
            operation(connection)
        except RedisReplyError as error:
            if connection is not None:
                self._put_back(connection)
            return self._note(error)
        except (OSError, RedisError) as error:
            if connection is not None:
                connection.close()
            if is_reused and isinstance(error, ConnectionError):
                # The server has been restarted, and all idle connections died with it.
                self.close()
                return self._run(operation, deadline)
            return self._note(error)
        self._put_back(connection)
        self._breaker.succeeded()
        self._last_problem = ""
        return None

    def _open(self, deadline: float) -> RedisConnection:
        remaining_s = deadline - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError("no time is left to connect")
        timeout_s = min(self._connect_timeout_s, remaining_s)
        return RedisConnection(self._address, connect_timeout_s=timeout_s)

    def _put_back(self, connection: RedisConnection) -> None:
        with self._lock:
            self._idle.append(connection)

    def _note(self, error: OSError | RedisError) -> str:
        """Count a failure, log it once, and give its reason."""
        reason = _reason_of(error)
        if reason not in _HARMLESS:
            self._breaker.failed()
        if reason != self._last_problem:
            self._last_problem = reason
            _LOGGER.warning("the prefix cache cannot use %s: %s", self._address, error)
        return reason


class _Reading:
    """One pipelined read of several chunks."""

    def __init__(
        self, names: Sequence[ChunkName], host: HostTier, value_format: ValueFormat
    ) -> None:
        self.problem: str | None = None
        self._names = names
        self._host = host
        self._format = value_format
        self._waiting: deque[tuple[ChunkName, ChunkBuffer]] = deque()
        self._num_asked = 0

    def run(self, connection: RedisConnection, loaded: list[ChunkBuffer]) -> None:
        """Read chunk by chunk into `loaded`, until one is missing or wrong."""
        self._ask_more(connection)
        while self._waiting:
            name, buffer = self._waiting[0]
            problem = self._read(connection, name, buffer)
            self._waiting.popleft()
            self.problem = self.problem or problem
            if self.problem is None:
                self._host.insert(name.key, buffer)
                loaded.append(buffer)
                self._ask_more(connection)
            else:
                self._host.release([buffer])

    def give_up(self) -> None:
        """Return the buffers that no reply came for."""
        self._host.release([buffer for _, buffer in self._waiting])
        self._waiting.clear()

    def _read(
        self, connection: RedisConnection, name: ChunkName, buffer: ChunkBuffer
    ) -> str | None:
        try:
            if not connection.read_bulk_into(buffer.memory):
                return "absent"
        except RedisReplyError as error:
            return _reason_of(error)
        # What follows a problem is read only to keep the connection in step.
        return self.problem or self._format.find_damage(buffer.memory, name)

    def _ask_more(self, connection: RedisConnection) -> None:
        """Keep the window of requests full."""
        keys = []
        while len(self._waiting) < _WINDOW and self._num_asked < len(self._names):
            buffer = self._host.try_acquire()
            if buffer is None:
                self.problem = None if self._waiting else "no_memory"
                break
            name = self._names[self._num_asked]
            self._num_asked += 1
            self._waiting.append((name, buffer))
            keys.append(self._format.redis_key(name))
        connection.send([(b"GET", key) for key in keys])


def _reason_of(error: OSError | RedisError) -> str:
    if isinstance(error, RedisReplyError):
        return str(error).partition(" ")[0].lower() or "error"
    if isinstance(error, RedisProtocolError):
        return "protocol"
    if isinstance(error, TimeoutError):
        return "timeout"
    return "connection"


def _reason_of_length(length: int | str) -> str:
    if isinstance(length, str):
        return length
    return "length" if length else "absent"


def _discard(_reply: object) -> None:
    """Any answer that is no error will do."""
