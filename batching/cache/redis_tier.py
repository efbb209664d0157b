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

from batching.cache.gate import TierGate
from batching.cache.host_resolver import HostResolver
from batching.cache.host_tier import ChunkBuffer, HostTier
from batching.cache.redis_connection import RedisConnection
from batching.cache.redis_url import RedisAddress
from batching.cache.value import ChunkName, ValueFormat
from batching.errors import RedisError, RedisProtocolError, RedisReplyError

_LOGGER = logging.getLogger(__name__)

# Replies under way at a time: enough to keep the link busy, little to throw away.
_WINDOW = 4
_PROBE_BYTES = 1 << 16
_MAX_ECHO_BYTES = 1 << 22
# First words of errors that have a reason of their own; all others are "error".
_KNOWN_ERRORS = frozenset(
    {
        *("wrongtype", "oom", "noperm", "noauth", "wrongpass", "unsupported", "loading", "busy"),
        *("readonly", "misconf", "masterdown", "clusterdown", "moved", "ask", "tryagain", "err"),
    }
)
# Those that speak of one key or of writing, not of the server's health.
_HARMLESS = frozenset({"wrongtype", "oom", "noperm"})
FAILURES = frozenset({"timeout", "connection", "protocol", "error"}) | _KNOWN_ERRORS - _HARMLESS
"""Reasons that speak against the server or the way to it."""

_LOG_PAUSE_S = 60.0


class RedisTier:
    """Reads and writes sealed values. Safe to use from several threads, one connection for each.

    A reason is one of a fixed set of words for metrics: "absent", "timeout", "checksum" and so on.
    """

    def __init__(
        self,
        address: RedisAddress,
        value_format: ValueFormat,
        *,
        gate: TierGate,
        connect_timeout_s: float,
        ttl_s: int,
    ) -> None:
        self._address = address
        self._format = value_format
        self._gate = gate
        self._connect_timeout_s = connect_timeout_s
        self._ttl_s = ttl_s
        self._resolver = HostResolver()
        self._lock = threading.Lock()
        self._idle: list[RedisConnection] = []
        self._logged_at: dict[str, float] = {}

    def match(self, names: Sequence[ChunkName], deadline: float) -> tuple[int, str | None]:
        """The number of leading chunks present in the right length, and the reason for the end."""
        lengths: list[int | str] = []

        def ask(connection: RedisConnection) -> None:
            started = time.monotonic()
            connection.send([(b"STRLEN", self._format.redis_key(name)) for name in names])
            for _ in names:
                try:
                    reply = connection.read_reply()
                except RedisReplyError as error:
                    lengths.append(self._note(error))
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
        key, last = self._format.redis_key(name), b"%d" % (_PROBE_BYTES - 1)
        part = (b"GETRANGE", key, b"0", last)
        return self._measure([part, (b"ECHO", bytes(_PROBE_BYTES))], _PROBE_BYTES, deadline)

    def echo(self, deadline: float) -> str | None:
        """Measure the link by sending and reading as much as a chunk; the reason if that failed."""
        num_bytes = min(self._format.value_bytes, _MAX_ECHO_BYTES)
        return self._measure([(b"ECHO", bytes(num_bytes))], num_bytes, deadline)

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

        try:
            problem = self._run(ask, deadline)
        except Exception:
            host.release(loaded)
            raise
        finally:
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

    def _measure(
        self, commands: Sequence[Sequence[bytes]], num_bytes: int, deadline: float
    ) -> str | None:
        """Time the first command that brings something, at most `num_bytes`."""

        def ask(connection: RedisConnection) -> None:
            for command in commands:
                started = time.monotonic()
                connection.send([command])
                num_read = connection.skip_bulk(max_bytes=num_bytes)
                if num_read:
                    self._gate.observe_transfer(num_read, time.monotonic() - started)
                    return

        return self._run(ask, deadline)

    def _run(self, operation: Callable[[RedisConnection], None], deadline: float) -> str | None:
        """Do something with a connection, by `deadline`; the reason if it failed."""
        try:
            connection = self._take_idle() or self._open(deadline)
            connection.set_deadline(deadline)
        except (OSError, RedisError) as error:
            return self._note(error)
        is_in_step = False
        try:
            operation(connection)
            is_in_step = True
        except RedisReplyError as error:
            is_in_step = True
            return self._note(error)
        except (OSError, RedisError) as error:
            return self._note(error)
        finally:
            self._put_back(connection, is_in_step=is_in_step)
        return None

    def _take_idle(self) -> RedisConnection | None:
        """A connection that waits in silence; those whose server has gone or speaks are closed."""
        while True:
            with self._lock:
                connection = self._idle.pop() if self._idle else None
            if connection is None or connection.is_silent:
                return connection
            connection.close()

    def _put_back(self, connection: RedisConnection, *, is_in_step: bool) -> None:
        if not is_in_step:
            connection.close()
            return
        with self._lock:
            self._idle.append(connection)

    def _open(self, deadline: float) -> RedisConnection:
        remaining_s = deadline - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError("no time is left to connect")
        return RedisConnection(
            self._address,
            connect_timeout_s=min(self._connect_timeout_s, remaining_s),
            resolver=self._resolver,
        )

    def _note(self, error: OSError | RedisError) -> str:
        """The reason that an error stands for, logged once a minute."""
        reason = _reason_of(error)
        now = time.monotonic()
        with self._lock:
            is_news = now >= self._logged_at.get(reason, -_LOG_PAUSE_S) + _LOG_PAUSE_S
            if is_news:
                self._logged_at[reason] = now
        if is_news:
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
            self.problem = self.problem or problem
            if self.problem is None:
                self._host.insert(name.key, buffer)
                loaded.append(buffer)
            self._waiting.popleft()
            if self.problem is None:
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
        word = str(error).partition(" ")[0].lower()
        return word if word in _KNOWN_ERRORS else "error"
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
