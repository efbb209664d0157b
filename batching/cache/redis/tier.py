"""Chunks of keys and values in a Redis that other processes share, and that may fail at any time.

Nothing here raises for what the server or the network does: a chunk is read whole and checked, or
it is a miss with a reason.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat

from batching.cache.gate import TierGate
from batching.cache.host_tier import ChunkBuffer, HostTier
from batching.cache.redis.connection import RedisConnection
from batching.cache.redis.host_resolver import HostResolver
from batching.cache.redis.servers import Servers
from batching.cache.redis.url import RedisAddress
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
# Those that speak of one key or of writing, not of the server's health. A cluster gives the last
# two for keys that are on their way from one node to another.
_HARMLESS = frozenset({"wrongtype", "oom", "noperm", "ask", "tryagain"})
FAILURES = frozenset({"timeout", "connection", "protocol", "error"}) | _KNOWN_ERRORS - _HARMLESS
"""Reasons that speak against the server or the way to it."""

_LOG_PAUSE_S = 60.0


class RedisTier:
    """Reads and writes sealed values. Safe to use from several threads, which share no connection.

    Keys go to the server that has them, of one, of a cluster, or the master of a Sentinel.

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
        self._servers = Servers(address)
        self._format = value_format
        self._gate = gate
        self._connect_timeout_s = connect_timeout_s
        self._ttl_s = ttl_s
        self._resolver = HostResolver()
        self._lock = threading.Lock()
        self._idle: dict[RedisAddress, list[RedisConnection]] = {}
        self._logged_at: dict[str, float] = {}

    def match(self, names: Sequence[ChunkName], deadline: float) -> tuple[list[int], str | None]:
        """The generation of each leading chunk that is there, and the reason for the end."""
        generations = self._format.generations
        keys = [self._format.redis_key(name, one) for name in names for one in generations]
        lengths, problem = self._lengths(keys, deadline)
        found: list[int] = []
        for start in range(0, len(lengths), len(generations)):
            of_chunk = lengths[start : start + len(generations)]
            if self._format.value_bytes not in of_chunk:
                reason = problem if len(of_chunk) < len(generations) else "absent"
                return found, next(filter(None, map(_reason_of_length, of_chunk)), reason)
            found.append(of_chunk.index(self._format.value_bytes))
        return found, problem

    def find_lack(self, name: ChunkName, deadline: float) -> str | None:
        """The reason why a chunk cannot be read under its newest key; None if it can."""
        lengths, problem = self._lengths([self._format.redis_key(name)], deadline)
        if lengths == [self._format.value_bytes]:
            return None
        return (_reason_of_length(lengths[0]) or "absent") if lengths else problem

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
        self,
        names: Sequence[ChunkName],
        host: HostTier,
        *,
        deadline: float,
        generations: Iterable[int] = repeat(0),
    ) -> tuple[list[ChunkBuffer], str | None]:
        """Leading chunks, read into buffers of `host` and checked, and why there are not more.

        They can be found in `host` now, and the caller is a user of each. `generations`: those that
        `match` found.
        """
        loaded: list[ChunkBuffer] = []
        chunks = list(zip(names, generations, strict=False))
        reading = _Reading(chunks, host, self._format)
        started = time.monotonic()
        counts = [0, 0]

        def ask(connections: Sequence[RedisConnection]) -> None:
            counts[0] = _num_received(connections)
            try:
                reading.run(connections, loaded)
            finally:
                counts[1] = _num_received(connections)

        keys = [self._format.redis_key(name, generation) for name, generation in chunks]
        try:
            problem = self._run(keys, ask, deadline)
        except Exception:
            host.release(loaded)
            raise
        finally:
            reading.give_up()
        num_bytes = max(0, counts[1] - counts[0])
        # What came before a failure tells of the link as well, unless it is next to nothing.
        if num_bytes >= _PROBE_BYTES or (num_bytes and problem == "timeout"):
            self._gate.observe_transfer(num_bytes, time.monotonic() - started)
        if reading.problem in FAILURES:
            self._servers.lose()
        return loaded, problem or reading.problem

    def store(self, name: ChunkName, value: memoryview, deadline: float) -> str | None:
        """Write a sealed value with its time to live; the reason if that failed."""
        key, ttl = self._format.redis_key(name), b"%d" % self._ttl_s

        def ask(connections: Sequence[RedisConnection]) -> None:
            connections[0].call(b"SET", key, value, b"EX", ttl)

        reason = self._run([key], ask, deadline)
        if reason == "moved" and self._servers.can_change:
            reason = self._run([key], ask, deadline)
        return reason

    def close(self) -> None:
        """Close the connections that nobody uses."""
        with self._lock:
            idle, self._idle = self._idle, {}
        for connections in idle.values():
            for connection in connections:
                connection.close()

    def _lengths(
        self, keys: Sequence[bytes], deadline: float
    ) -> tuple[list[int | str], str | None]:
        """The length of each value, or what the server said instead, and why there are not more."""
        lengths: list[int | str] = []

        def ask(connections: Sequence[RedisConnection]) -> None:
            lengths.clear()
            started = time.monotonic()
            for connection in dict.fromkeys(connections):
                mine = (
                    key for key, one in zip(keys, connections, strict=True) if one is connection
                )
                connection.send([(b"STRLEN", key) for key in mine])
            for connection in connections:
                try:
                    reply = connection.read_reply()
                except RedisReplyError as error:
                    lengths.append(self._note(error))
                else:
                    lengths.append(reply if isinstance(reply, int) else "protocol")
                if len(lengths) == 1:
                    self._gate.observe_latency(time.monotonic() - started)

        problem = self._run(keys, ask, deadline)
        if "moved" in lengths and self._servers.can_change:
            problem = self._run(keys, ask, deadline)
        return lengths, problem

    def _measure(
        self, commands: Sequence[Sequence[bytes]], num_bytes: int, deadline: float
    ) -> str | None:
        """Time the first command that brings something, at most `num_bytes`."""

        def ask(connections: Sequence[RedisConnection]) -> None:
            connection = connections[0]
            for command in commands:
                started = time.monotonic()
                connection.send([command])
                num_read = connection.skip_bulk(max_bytes=num_bytes)
                if num_read:
                    self._gate.observe_transfer(num_read, time.monotonic() - started)
                    return

        return self._run([commands[0][1]], ask, deadline)

    def _run(
        self,
        keys: Sequence[bytes],
        operation: Callable[[Sequence[RedisConnection]], None],
        deadline: float,
    ) -> str | None:
        """Do something with the connection of each key, by `deadline`; the reason if it failed.

        Keys of one server share a connection.
        """
        taken: dict[RedisAddress, RedisConnection] = {}
        is_in_step = True
        try:
            places = self._servers.find(keys, deadline)
            for address in dict.fromkeys(places):
                taken[address] = self._take_idle(address) or self._open(address, deadline)
                taken[address].set_deadline(deadline)
            is_in_step = False
            operation([taken[address] for address in places])
            is_in_step = True
        except RedisReplyError as error:
            is_in_step = True
            return self._note(error)
        except (OSError, RedisError) as error:
            return self._note(error)
        finally:
            for address, connection in taken.items():
                self._put_back(address, connection, is_in_step=is_in_step)
        return None

    def _take_idle(self, address: RedisAddress) -> RedisConnection | None:
        """A connection that waits in silence; those whose server has gone or speaks are closed."""
        while True:
            with self._lock:
                idle = self._idle.get(address)
                connection = idle.pop() if idle else None
            if connection is None or connection.is_silent:
                return connection
            connection.close()

    def _put_back(
        self, address: RedisAddress, connection: RedisConnection, *, is_in_step: bool
    ) -> None:
        if not is_in_step:
            connection.close()
            return
        with self._lock:
            self._idle.setdefault(address, []).append(connection)

    def _open(self, address: RedisAddress, deadline: float) -> RedisConnection:
        remaining_s = deadline - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError("no time is left to connect")
        return RedisConnection(
            address,
            connect_timeout_s=min(self._connect_timeout_s, remaining_s),
            resolver=self._resolver,
        )

    def _note(self, error: OSError | RedisError) -> str:
        """The reason that an error stands for, logged once a minute.

        Where servers can change, one that fails or has no place for a key is searched again.
        """
        reason = _reason_of(error)
        if reason in FAILURES:
            self._servers.lose()
        now = time.monotonic()
        with self._lock:
            is_news = now >= self._logged_at.get(reason, -_LOG_PAUSE_S) + _LOG_PAUSE_S
            if is_news:
                self._logged_at[reason] = now
        if is_news:
            _LOGGER.warning("the prefix cache cannot use %s: %s", self._address, error)
        return reason


class _Reading:
    """One pipelined read of several chunks, each with its generation."""

    def __init__(
        self, chunks: Sequence[tuple[ChunkName, int]], host: HostTier, value_format: ValueFormat
    ) -> None:
        self.problem: str | None = None
        self._chunks = chunks
        self._host = host
        self._format = value_format
        self._waiting: deque[tuple[int, ChunkBuffer]] = deque()
        self._num_asked = 0

    def run(self, connections: Sequence[RedisConnection], loaded: list[ChunkBuffer]) -> None:
        """Read chunk by chunk into `loaded`, until one is missing or wrong."""
        self._ask_more(connections)
        while self._waiting:
            number, buffer = self._waiting[0]
            problem = self._read(connections[number], number, buffer)
            self.problem = self.problem or problem
            if self.problem is None:
                self._host.insert(self._chunks[number][0].key, buffer)
                loaded.append(buffer)
            self._waiting.popleft()
            if self.problem is None:
                self._ask_more(connections)
            else:
                self._host.release([buffer])

    def give_up(self) -> None:
        """Return the buffers that no reply came for."""
        self._host.release([buffer for _, buffer in self._waiting])
        self._waiting.clear()

    def _read(self, connection: RedisConnection, number: int, buffer: ChunkBuffer) -> str | None:
        try:
            if not connection.read_bulk_into(buffer.memory):
                return "absent"
        except RedisReplyError as error:
            return _reason_of(error)
        # What follows a problem is read only to keep the connection in step.
        return self.problem or self._format.find_damage(buffer.memory, *self._chunks[number])

    def _ask_more(self, connections: Sequence[RedisConnection]) -> None:
        """Keep the window of requests full."""
        commands: dict[RedisConnection, list[tuple[bytes, bytes]]] = {}
        while len(self._waiting) < _WINDOW and self._num_asked < len(self._chunks):
            buffer = self._host.try_acquire()
            if buffer is None:
                self.problem = None if self._waiting else "no_memory"
                break
            number = self._num_asked
            self._num_asked += 1
            self._waiting.append((number, buffer))
            key = self._format.redis_key(*self._chunks[number])
            commands.setdefault(connections[number], []).append((b"GET", key))
        for connection, of_connection in commands.items():
            connection.send(of_connection)


def _num_received(connections: Sequence[RedisConnection]) -> int:
    return sum(connection.num_received_bytes for connection in dict.fromkeys(connections))


def _reason_of(error: OSError | RedisError) -> str:
    if isinstance(error, RedisReplyError):
        word = str(error).partition(" ")[0].lower()
        return word if word in _KNOWN_ERRORS else "error"
    if isinstance(error, RedisProtocolError):
        return "protocol"
    if isinstance(error, TimeoutError):
        return "timeout"
    return "connection"


def _reason_of_length(length: int | str) -> str | None:
    """What is wrong with a length that is not that of a chunk; None for an absent value."""
    if isinstance(length, str):
        return length
    return "length" if length else None
