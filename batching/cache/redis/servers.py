"""Finds the server that holds a key: the only one, the master of a Sentinel, a node of a cluster.

redis-py asks sentinels and clusters; values never go through it.
"""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from batching.cache.redis.url import RedisAddress

# One question to one sentinel or node; a caller waits only to its own deadline.
_TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class Placement:
    """Servers that take writes, and `slot_of` a key where there are several."""

    servers: tuple[RedisAddress, ...]
    slot_of: Callable[[bytes], int] | None = None
    by_slot: Mapping[int, RedisAddress] | None = None

    def find(self, key: bytes) -> RedisAddress:
        """The server that holds a key. Raises OSError if no server has its slot."""
        if self.slot_of is None or self.by_slot is None:
            return self.servers[0]
        slot = self.slot_of(key)
        server = self.by_slot.get(slot)
        if server is None:
            raise OSError(f"no server of the cluster has slot {slot}")
        return server


class Servers:
    """Remembers where keys are, until `lose`. Safe to use from several threads.

    A search runs on a thread of its own: whoever asks meanwhile waits for the same one, each to its
    own deadline.
    """

    def __init__(self, address: RedisAddress) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._search: Future[Placement] | None = None
        # Those found last, who may know more when those of the URL are gone.
        self._found: tuple[RedisAddress, ...] = ()

    @property
    def can_change(self) -> bool:
        """True if another search may find other servers."""
        return self._address.kind != "server"

    def find(self, keys: Sequence[bytes], deadline: float) -> list[RedisAddress]:
        """The server of each key. Raises OSError, TimeoutError after the deadline."""
        place = self._place(deadline)
        return [place.find(key) for key in keys]

    def all(self, deadline: float) -> tuple[RedisAddress, ...]:
        """Every server that takes writes. Raises OSError, TimeoutError after the deadline."""
        return self._place(deadline).servers

    def lose(self) -> None:
        """Search again at the next question: a server failed, or has the key no more."""
        with self._lock:
            if self._search is not None and self._search.done():
                self._search = None

    def _place(self, deadline: float) -> Placement:
        if self._address.kind == "server":
            return Placement((self._address,))
        with self._lock:
            search = self._search
            if search is None:
                search = self._search = Future()
                threading.Thread(
                    target=_run,
                    args=(self._address, self._found, search),
                    name="cache-servers",
                    daemon=True,
                ).start()
        try:
            place = search.result(max(0.0, deadline - time.monotonic()))
        except TimeoutError as error:
            raise TimeoutError(f"the servers of {self._address} were not found in time") from error
        finally:
            if search.done() and search.exception() is not None:
                self.lose()
        self._found = place.servers
        return place


def client_options(address: RedisAddress, *, timeout_s: float) -> dict[str, Any]:
    """Login, TLS and timeouts as redis-py takes them."""
    options: dict[str, Any] = {
        "username": address.username,
        "password": address.password,
        "socket_timeout": timeout_s,
        "socket_connect_timeout": timeout_s,
    }
    if address.has_tls and address.unix_path is None:
        options |= {
            "ssl": True,
            "ssl_ca_certs": address.ca_path,
            "ssl_certfile": address.cert_path,
            "ssl_keyfile": address.key_path,
            "ssl_check_hostname": address.checks_certificate,
            "ssl_cert_reqs": ssl.CERT_REQUIRED if address.checks_certificate else ssl.CERT_NONE,
        }
    return options


def sentinel_options(address: RedisAddress, *, timeout_s: float) -> dict[str, Any]:
    """The same for the sentinels, which have a login of their own."""
    return client_options(address, timeout_s=timeout_s) | {
        "username": address.sentinel_username,
        "password": address.sentinel_password,
    }


def _run(address: RedisAddress, found: Sequence[RedisAddress], search: Future[Placement]) -> None:
    try:
        if address.kind == "cluster":
            search.set_result(_ask_cluster(address, found))
        else:
            search.set_result(_ask_sentinels(address))
    except Exception as error:  # whoever waits must hear of it; redis-py's errors are no OSErrors
        search.set_exception(OSError(f"the servers of {address} cannot be found: {error}"))


def _ask_sentinels(address: RedisAddress) -> Placement:
    from redis.sentinel import Sentinel  # only where sentinels are used

    open_sentinel: Any = Sentinel  # redis-py leaves it without types
    sentinel = open_sentinel(
        address.seeds, sentinel_kwargs=sentinel_options(address, timeout_s=_TIMEOUT_S)
    )
    try:
        host, port = sentinel.discover_master(address.master_name)
    finally:
        for client in sentinel.sentinels:
            client.close()
    return Placement((address.at(str(host), int(port)),))


def _ask_cluster(address: RedisAddress, found: Sequence[RedisAddress]) -> Placement:
    from redis.backoff import NoBackoff  # only where there is a cluster
    from redis.cluster import ClusterNode, RedisCluster
    from redis.crc import key_slot
    from redis.retry import Retry

    node_of: Any = ClusterNode  # without types, too
    seeds = dict.fromkeys([*address.seeds, *((one.host, one.port) for one in found)])
    client = RedisCluster(
        startup_nodes=[node_of(host, port) for host, port in seeds],
        require_full_coverage=False,
        retry=Retry(NoBackoff(), 0),
        **client_options(address, timeout_s=_TIMEOUT_S),
    )
    try:
        slots = {
            slot: (str(nodes[0].host), int(nodes[0].port))
            for slot, nodes in client.nodes_manager.slots_cache.items()
        }
    finally:
        client.close()
    servers = {place: address.at(*place) for place in sorted(set(slots.values()))}
    if not servers:
        raise OSError("no node serves a slot")
    return Placement(
        tuple(servers.values()), key_slot, {slot: servers[place] for slot, place in slots.items()}
    )
