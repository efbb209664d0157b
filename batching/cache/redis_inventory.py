"""Counts and clears the chunks that the prefix cache keeps in a Redis."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from batching.cache.redis_connection import RedisConnection
from batching.cache.redis_url import RedisAddress
from batching.cache.value import KEY_PREFIX
from batching.errors import RedisProtocolError, RedisReplyError

CONNECT_TIMEOUT_S = 5.0
# A scan of very many keys takes its time, but each answer comes soon.
_TIMEOUT_S = 30.0
_SCAN_COUNT = b"1000"
_NUM_PINGS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStats:
    """Chunks of one format version and layout: those of one model, tokenizer and payload."""

    group: str
    num_chunks: int
    num_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """Chunks in a Redis. `used_bytes` and `max_bytes` are the server's, for all its keys."""

    groups: tuple[GroupStats, ...]
    used_bytes: int | None
    max_bytes: int | None
    policy: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """Configuration of a Redis server; None for unknown values, `max_bytes` 0 is no limit."""

    version: str | None
    max_bytes: int | None
    policy: str | None
    round_trip_s: float


class RedisInventory:
    """A connection for the command line. Raises OSError, RedisReplyError or RedisProtocolError."""

    def __init__(self, address: RedisAddress) -> None:
        """Connect and log in."""
        self._connection = RedisConnection(address, connect_timeout_s=CONNECT_TIMEOUT_S)

    def count(self) -> Inventory:
        """Look at every key of ours; values of other types count as empty."""
        chunks: dict[str, tuple[int, int]] = {}
        for keys in self._scan():
            self._connection.send([(b"STRLEN", key) for key in keys])
            for key in keys:
                num_chunks, num_bytes = chunks.get(_group_of(key), (0, 0))
                chunks[_group_of(key)] = (num_chunks + 1, num_bytes + self._read_length())
        memory = self._read_info(b"memory")
        return Inventory(
            groups=tuple(
                GroupStats(group=group, num_chunks=num_chunks, num_bytes=num_bytes)
                for group, (num_chunks, num_bytes) in sorted(chunks.items())
            ),
            used_bytes=_number(memory.get("used_memory")),
            max_bytes=_number(memory.get("maxmemory")),
            policy=memory.get("maxmemory_policy"),
        )

    def server(self) -> ServerFacts:
        """Ask the server about itself; the round trip is the best of a few."""
        round_trips = []
        for _ in range(_NUM_PINGS):
            started = time.monotonic()
            self._connection.call(b"PING")
            round_trips.append(time.monotonic() - started)
        memory, server = self._read_info(b"memory"), self._read_info(b"server")
        return ServerFacts(
            version=server.get("redis_version"),
            max_bytes=_number(memory.get("maxmemory")),
            policy=memory.get("maxmemory_policy"),
            round_trip_s=min(round_trips),
        )

    def clear(self) -> int:
        """Delete every key of ours, and no other; how many there were."""
        num_deleted = 0
        for keys in self._scan():
            reply = self._connection.call(b"UNLINK", *keys)
            num_deleted += reply if isinstance(reply, int) else 0
        return num_deleted

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def _scan(self) -> Iterator[list[bytes]]:
        """Our keys in groups, each of at least one."""
        cursor = b"0"
        while True:
            self._connection.set_deadline(time.monotonic() + _TIMEOUT_S)
            reply = self._connection.call(
                b"SCAN", cursor, b"MATCH", KEY_PREFIX + b"*", b"COUNT", _SCAN_COUNT
            )
            if not isinstance(reply, list) or len(reply) != 2 or not isinstance(reply[1], list):
                raise RedisProtocolError("the server answered SCAN with something else")
            cursor = reply[0] if isinstance(reply[0], bytes) else b"0"
            keys = [key for key in reply[1] if isinstance(key, bytes)]
            if keys:
                yield keys
            if cursor == b"0":
                return

    def _read_length(self) -> int:
        try:
            length = self._connection.read_reply()
        except RedisReplyError:
            return 0
        return length if isinstance(length, int) else 0

    def _read_info(self, section: bytes) -> dict[str, str]:
        """A section of INFO, empty where the account may not ask."""
        try:
            reply = self._connection.call(b"INFO", section)
        except RedisReplyError:
            return {}
        text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else ""
        pairs = (line.partition(":") for line in text.splitlines())
        return {name: value for name, colon, value in pairs if colon}


def _group_of(key: bytes) -> str:
    """Version and layout of a key such as `apply-kv:1:0a1b2c3d:…`."""
    parts = key.decode("utf-8", "replace").split(":")
    return ":".join(parts[1:3])


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
