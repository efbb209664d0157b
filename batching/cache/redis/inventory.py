"""Counts and clears the chunks that the prefix cache keeps in a Redis."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from batching.cache.redis.connection import RedisConnection
from batching.cache.redis.servers import Servers
from batching.cache.redis.url import RedisAddress
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
    """Connections for the command line, one to each server that takes writes.

    Raises OSError, RedisReplyError or RedisProtocolError.
    """

    def __init__(self, address: RedisAddress) -> None:
        """Find the servers, connect and log in."""
        self._connections: list[RedisConnection] = []
        try:
            for one in Servers(address).all(time.monotonic() + CONNECT_TIMEOUT_S):
                self._connections.append(RedisConnection(one, connect_timeout_s=CONNECT_TIMEOUT_S))
        except BaseException:
            self.close()
            raise

    def count(self) -> Inventory:
        """Look at every key of ours; values of other types count as empty."""
        chunks: dict[str, tuple[int, int]] = {}
        for connection, keys in self._scan():
            connection.send([(b"STRLEN", key) for key in keys])
            for key in keys:
                num_chunks, num_bytes = chunks.get(_group_of(key), (0, 0))
                chunks[_group_of(key)] = (num_chunks + 1, num_bytes + _read_number(connection))
        memory = self._read_info(b"memory")
        return Inventory(
            groups=tuple(
                GroupStats(group=group, num_chunks=num_chunks, num_bytes=num_bytes)
                for group, (num_chunks, num_bytes) in sorted(chunks.items())
            ),
            used_bytes=_total(memory, "used_memory"),
            max_bytes=_limit(memory),
            policy=_texts(memory, "maxmemory_policy"),
        )

    def server(self) -> ServerFacts:
        """Ask the servers about themselves; the round trip is the best of a few, of the slowest."""
        memory, server = self._read_info(b"memory"), self._read_info(b"server")
        return ServerFacts(
            version=_texts(server, "redis_version"),
            max_bytes=_limit(memory),
            policy=_texts(memory, "maxmemory_policy"),
            round_trip_s=max(map(_round_trip_s, self._connections)),
        )

    def clear(self) -> int:
        """Delete every key of ours, and no other; how many there were."""
        num_deleted = 0
        for connection, keys in self._scan():
            # One command a key: a cluster refuses those that name keys of several slots.
            connection.send([(b"UNLINK", key) for key in keys])
            num_deleted += sum(_read_number(connection) for _ in keys)
        return num_deleted

    def close(self) -> None:
        """End the connections."""
        for connection in self._connections:
            connection.close()

    def _scan(self) -> Iterator[tuple[RedisConnection, list[bytes]]]:
        """Our keys in groups, each of at least one, with the connection to their server."""
        for connection in self._connections:
            for keys in _scan_one(connection):
                yield connection, keys

    def _read_info(self, section: bytes) -> list[dict[str, str]]:
        """A section of INFO of each server, empty where the account may not ask."""
        infos = []
        for connection in self._connections:
            try:
                reply = connection.call(b"INFO", section)
            except RedisReplyError:
                reply = b""
            text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else ""
            pairs = (line.partition(":") for line in text.splitlines())
            infos.append({name: value for name, colon, value in pairs if colon})
        return infos


def _scan_one(connection: RedisConnection) -> Iterator[list[bytes]]:
    cursor = b"0"
    while True:
        connection.set_deadline(time.monotonic() + _TIMEOUT_S)
        reply = connection.call(b"SCAN", cursor, b"MATCH", KEY_PREFIX + b"*", b"COUNT", _SCAN_COUNT)
        if not isinstance(reply, list) or len(reply) != 2 or not isinstance(reply[1], list):
            raise RedisProtocolError("the server answered SCAN with something else")
        cursor = reply[0] if isinstance(reply[0], bytes) else b"0"
        keys = [key for key in reply[1] if isinstance(key, bytes)]
        if keys:
            yield keys
        if cursor == b"0":
            return


def _round_trip_s(connection: RedisConnection) -> float:
    round_trips = []
    for _ in range(_NUM_PINGS):
        started = time.monotonic()
        connection.call(b"PING")
        round_trips.append(time.monotonic() - started)
    return min(round_trips)


def _read_number(connection: RedisConnection) -> int:
    """The next reply, 0 if it is no number."""
    try:
        number = connection.read_reply()
    except RedisReplyError:
        return 0
    return number if isinstance(number, int) else 0


def _total(infos: Sequence[Mapping[str, str]], name: str) -> int | None:
    """A number of all servers together, None if one does not tell it."""
    numbers = [_number(info.get(name)) for info in infos]
    return sum(filter(None, numbers)) if None not in numbers else None


def _limit(infos: Sequence[Mapping[str, str]]) -> int | None:
    """The memory of all servers, 0 if one has no limit."""
    if any(info.get("maxmemory") == "0" for info in infos):
        return 0
    return _total(infos, "maxmemory")


def _texts(infos: Sequence[Mapping[str, str]], name: str) -> str | None:
    """What the servers say, each text once."""
    return ", ".join(sorted({info[name] for info in infos if name in info})) or None


def _group_of(key: bytes) -> str:
    """Version and layout of a key such as `apply-kv:1:0a1b2c3d:…`."""
    parts = key.decode("utf-8", "replace").split(":")
    return ":".join(parts[1:3])


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
