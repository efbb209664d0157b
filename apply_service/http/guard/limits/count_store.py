"""Counts that expire: in memory for one process, or in a Redis that replicas share."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from litestar.stores.memory import MemoryStore
from litestar.stores.redis import RedisStore
from redis.asyncio import Redis
from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff

from apply_service.http.guard.limits.reply_bounds import BoundedParser
from batching.cache.redis.host_resolver import HostResolver
from batching.cache.redis.servers import client_options, sentinel_options
from batching.cache.redis.url import RedisAddress

_NAMESPACE = "apply-service-limits"


class MemoryCounts(MemoryStore):
    """Counts of this process."""

    def __init__(self) -> None:
        super().__init__()
        self._turn = asyncio.Lock()

    async def add(self, amounts: Mapping[str, int], *, expires_in: int) -> dict[str, int]:
        """Add to each count and return its new value; an amount of 0 only reads it."""
        totals = {}
        async with self._turn:
            for key, amount in amounts.items():
                total = int(await self.get(key) or 0) + amount
                if amount:
                    await self.set(key, str(total), expires_in=expires_in)
                totals[key] = total
        return totals


class RedisCounts(RedisStore):
    """Counts that all replicas add to. Every method may raise RedisError or OSError."""

    def __init__(self, address: RedisAddress, *, timeout_s: float) -> None:
        """Connect at the first call; no call takes longer than `timeout_s`."""
        self._address = address
        self._resolver = HostResolver()
        self._is_host_found = False
        self._client = _connect(address, timeout_s)
        super().__init__(
            cast(Redis, self._client), namespace=_NAMESPACE, handle_client_shutdown=True
        )

    async def find_host(self) -> None:
        """Wait until the system knows the server's name, once, and again after `lose_host`.

        The client would search on a thread of the event loop's few, and stay there after its time
        is up, while everything else that needs a thread waits.
        """
        address = self._address
        if self._is_host_found or address.unix_path is not None:
            return
        for host, port in address.seeds or ((address.host, address.port),):
            search = self._resolver.begin(host, port)
            try:
                await asyncio.shield(asyncio.wrap_future(search))
            finally:
                self._resolver.forget(search)
        self._is_host_found = True

    def lose_host(self) -> None:
        """Forget the server's address after a failure; `find_host` resolves the name again."""
        self._is_host_found = False

    async def add(self, amounts: Mapping[str, int], *, expires_in: int) -> dict[str, int]:
        """As of `MemoryCounts`, in one round trip and one step."""
        async with self._client.pipeline(transaction=True) as pipeline:
            for key, amount in amounts.items():
                name = self._make_key(key)
                if amount:
                    pipeline.incrby(name, amount)
                    pipeline.expire(name, expires_in)
                else:
                    pipeline.get(name)
            replies = iter(await pipeline.execute())
        totals = {}
        for key, amount in amounts.items():
            totals[key] = int(next(replies) or 0)
            if amount:
                next(replies)  # that of `expire`
        return totals

    async def hold(self, key: str, lease_id: str, *, now: float, lease_s: float) -> int:
        """Take a lease that expires by itself; the number of leases held, this one included."""
        name = self._make_key(key)
        async with self._client.pipeline(transaction=True) as pipeline:
            pipeline.zremrangebyscore(name, "-inf", now)
            pipeline.zadd(name, {lease_id: now + lease_s})
            pipeline.zcard(name)
            pipeline.expire(name, int(lease_s) + 1)
            replies = await pipeline.execute()
        return int(replies[2])

    async def _shutdown(self) -> None:
        """As of the base, which closes in a way that a cluster's client does not know."""
        await self._client.aclose()
        if self._address.kind == "sentinel":
            pool: Any = cast(Redis, self._client).connection_pool
            for sentinel in pool.sentinel_manager.sentinels:
                await sentinel.aclose()

    async def release(self, key: str, lease_id: str) -> None:
        """Give a lease back."""
        await self._client.zrem(self._make_key(key), lease_id)


def _connect(address: RedisAddress, timeout_s: float) -> Redis | RedisCluster:
    """A client that connects at its first call, and takes no answer that is too large."""
    options = client_options(address, timeout_s=timeout_s) | {"retry": Retry(NoBackoff(), 0)}
    if address.kind == "cluster":
        nodes = [ClusterNode(host, port) for host, port in address.seeds]
        cluster = RedisCluster(startup_nodes=nodes, require_full_coverage=False, **options)
        cluster.connection_kwargs["parser_class"] = BoundedParser
        for node in cluster.nodes_manager.startup_nodes.values():
            node.connection_kwargs["parser_class"] = BoundedParser
        return cluster
    options["db"] = address.db
    if address.kind == "sentinel":
        seeds = list(address.seeds)
        asked = sentinel_options(address, timeout_s=timeout_s)
        open_sentinel: Any = Sentinel  # redis-py leaves it without types
        client: Redis = open_sentinel(seeds, sentinel_kwargs=asked).master_for(
            address.master_name, **options
        )
    elif address.unix_path is not None:
        client = Redis(unix_socket_path=address.unix_path, **options)
    else:
        client = Redis(host=address.host, port=address.port, **options)
    client.connection_pool.connection_kwargs["parser_class"] = BoundedParser
    return client
