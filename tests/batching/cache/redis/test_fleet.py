"""A cluster, and a master under sentinels: values are found, and a server that dies costs time."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import redis
from engine_runs import RunningEngine, running_engine
from redis_fleet import RedisFleet, redis_cluster, redis_sentinel, wait_until
from redis_process import RedisProcess, find_redis_server
from tls_before import tls_before

from apply_service.http.guard.limits.count_store import RedisCounts
from batching.cache.gate import PrefillSpeed, TierGate
from batching.cache.host_tier import HostTier
from batching.cache.prefix_cache import PrefixCache
from batching.cache.redis.inventory import RedisInventory
from batching.cache.redis.tier import RedisTier
from batching.cache.redis.url import parse_redis_url
from batching.cache.value import ChunkName, ValueFormat
from batching.config import CacheConfig, EngineConfig
from batching.request import EngineRequest, SamplingParams

pytestmark = [
    pytest.mark.fleet,
    pytest.mark.redis,
    pytest.mark.skipif(find_redis_server() is None, reason="no redis-server"),
]

WAIT_S = 10.0
CHUNK_TOKENS = 32
FORMAT = ValueFormat(b"model", num_tokens=4, payload_bytes=100_000)
NAMES = [FORMAT.name_chunk(bytes([n]) * 32, range(n, n + 4)) for n in range(20)]
PROMPTS = [tuple(random.Random(seed).randrange(3, 259) for _ in range(200)) for seed in range(8)]
# All that replicas need: the cache, the counts of rates, finding a cluster's nodes.
ACL = (
    "~apply-kv:* ~apply-service-limits* +strlen +get +getrange +set +echo +select"
    " +incrby +expire +multi +exec +zadd +zcard +zrem +zremrangebyscore"
    " +cluster|slots +command"
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[RedisFleet]:
    with redis_cluster(node_timeout_ms=60_000) as started:
        yield started


@pytest.fixture(params=[redis_cluster, redis_sentinel], ids=["cluster", "sentinel"])
def fleet(request: pytest.FixtureRequest) -> Iterator[RedisFleet]:
    with request.param() as started:
        yield started


def tier_at(url: str) -> RedisTier:
    gate = TierGate(PrefillSpeed())
    return RedisTier(parse_redis_url(url), FORMAT, gate=gate, connect_timeout_s=2.0, ttl_s=100)


def deadline() -> float:
    return time.monotonic() + WAIT_S


def fill(tier: RedisTier, names: list[ChunkName]) -> None:
    for name in names:
        value = memoryview(bytearray(name.key * 3200)[: FORMAT.payload_bytes])
        sealed = memoryview(bytearray(FORMAT.value_bytes))
        FORMAT.payload(sealed)[:] = value
        FORMAT.seal(sealed, name)
        assert tier.store(name, sealed, deadline()) is None


def check_all_there(tier: RedisTier) -> None:
    host = HostTier(
        value_bytes=FORMAT.value_bytes,
        max_bytes=len(NAMES) * FORMAT.value_bytes,
        allocate=lambda size: memoryview(bytearray(size)),
    )
    assert tier.match(NAMES, deadline()) == ([0] * len(NAMES), None)
    loaded, problem = tier.load(NAMES, host, deadline=deadline())
    assert (len(loaded), problem) == (len(NAMES), None)
    for name, buffer in zip(NAMES, loaded, strict=True):
        assert FORMAT.payload(buffer.memory)[:32] == name.key
    host.release(loaded)
    host.check_invariants()


def test_chunks_are_spread_over_a_cluster_and_come_back_in_order(cluster: RedisFleet) -> None:
    with closing(tier_at(cluster.url)) as tier:
        fill(tier, NAMES)
        assert all(cluster.num_keys()[:3])
        check_all_there(tier)
    with closing(RedisInventory(parse_redis_url(cluster.url))) as inventory:
        (group,) = inventory.count().groups
        assert group.num_chunks == len(NAMES)
        assert inventory.server().max_bytes == 0
        assert inventory.clear() == len(NAMES)
        assert inventory.count().groups == ()


def test_slots_that_move_are_followed(cluster: RedisFleet) -> None:
    with closing(tier_at(cluster.url)) as tier:
        fill(tier, NAMES)
        check_all_there(tier)
        for name in NAMES[::5]:
            move_slot(cluster, FORMAT.redis_key(name))
        check_all_there(tier)
        for name in NAMES[::5]:
            move_slot(cluster, FORMAT.redis_key(name))
        fill(tier, NAMES)
        check_all_there(tier)


def move_slot(cluster: RedisFleet, key: bytes) -> None:
    """Give the slot of a key, and the key, to the next primary."""
    clients = [redis.Redis(port=server.port) for server in cluster.servers[:3]]
    ids = [client.execute_command("CLUSTER MYID").decode() for client in clients]
    slot = clients[0].execute_command("CLUSTER KEYSLOT", key)
    (source,) = [number for number, one in enumerate(clients) if key in one.keys("apply-kv:*")]
    target = (source + 1) % 3
    clients[target].execute_command("CLUSTER SETSLOT", slot, "IMPORTING", ids[source])
    clients[source].execute_command("CLUSTER SETSLOT", slot, "MIGRATING", ids[target])
    port = cluster.servers[target].port
    clients[source].execute_command("MIGRATE", "127.0.0.1", port, key, 0, 5000)
    for number in (target, source, 3 - target - source):
        clients[number].execute_command("CLUSTER SETSLOT", slot, "NODE", ids[target])
    everyone = [redis.Redis(port=server.port) for server in cluster.servers]
    # Nodes that moved slots at the same time may hold to them for a moment, until epochs differ.
    wait_until(
        lambda: (
            all(owner_of(one, slot) == port for one in everyone)
            and len(epochs_of(everyone[0])) == len(clients)
        ),
        "all know of the move",
    )
    for client in everyone:
        client.close()
    for client in clients:
        client.close()


def epochs_of(client: redis.Redis) -> set[str]:
    """The configuration epochs of the primaries."""
    nodes = client.cluster("nodes").values()
    return {node["epoch"] for node in nodes if "master" in node["flags"]}


def owner_of(client: redis.Redis, slot: int) -> int | None:
    """The port of the node that this one takes for the slot's primary."""
    for address, node in client.cluster("nodes").items():
        for ends in node["slots"]:
            if int(ends[0]) <= slot <= int(ends[-1]):
                return int(address.rpartition(":")[2])
    return None


def test_a_chunk_on_its_way_to_another_node_is_a_miss(cluster: RedisFleet) -> None:
    with closing(tier_at(cluster.url)) as tier:
        fill(tier, NAMES)
        clients = [redis.Redis(port=server.port) for server in cluster.servers[:3]]
        key = FORMAT.redis_key(NAMES[4])
        (source,) = [n for n, one in enumerate(clients) if key in one.keys("apply-kv:*")]
        target = (source + 1) % 3
        ids = [client.execute_command("CLUSTER MYID").decode() for client in clients]
        slot = clients[0].execute_command("CLUSTER KEYSLOT", key)
        clients[target].execute_command("CLUSTER SETSLOT", slot, "IMPORTING", ids[source])
        clients[source].execute_command("CLUSTER SETSLOT", slot, "MIGRATING", ids[target])
        clients[source].execute_command("UNLINK", key)
        assert tier.match(NAMES, deadline()) == ([0] * 4, "ask")
        for client in clients:
            client.execute_command("CLUSTER SETSLOT", slot, "STABLE")
            client.close()
        fill(tier, NAMES)
        check_all_there(tier)


def test_counts_of_rates_are_shared(fleet: RedisFleet) -> None:
    check_counts(fleet.url)


def check_counts(url: str) -> None:
    async def scenario() -> None:
        counts = RedisCounts(parse_redis_url(url), timeout_s=5.0)
        async with counts:
            await check(counts)

    async def check(counts: RedisCounts) -> None:
        await counts.find_host()
        amounts = {"requests:{me}:1": 2, "requests:{me}:0": 0, "tokens:{me}:1": 30}
        for times in (1, 2):
            found = await counts.add(amounts, expires_in=60)
            assert found == {name: times * amount for name, amount in amounts.items()}
        assert await counts.hold("running:{me}", "one", now=100.0, lease_s=10.0) == 1
        assert await counts.hold("running:{me}", "two", now=101.0, lease_s=10.0) == 2
        await counts.release("running:{me}", "one")
        assert await counts.hold("running:{me}", "two", now=102.0, lease_s=10.0) == 1

    asyncio.run(scenario())


def config_of(model_dir: Path, url: str | None, *, secrets: tuple[bytes, ...] = ()) -> EngineConfig:
    cache = CacheConfig(
        memory_bytes=1 << 20,
        chunk_tokens=CHUNK_TOKENS,
        redis_url=url,
        timeout_s=5.0,
        secrets=secrets,
    )
    return EngineConfig(model_path=model_dir, kv_memory_bytes=1 << 18, cache=cache)


def answers(
    running: RunningEngine, after: Callable[[int], None] = lambda _: None
) -> list[tuple[int, ...]]:
    """The answer to each prompt, one after the other; `after` is told how many are done."""
    texts = []
    for number, prompt in enumerate(PROMPTS):
        request = EngineRequest(
            request_id=random.randbytes(8).hex(),
            prompt_token_ids=prompt,
            sampling=SamplingParams(max_tokens=8),
        )
        texts.append(tuple(running.run([request])[0].token_ids))
        after(number + 1)
    return texts


def num_hits(running: RunningEngine) -> int:
    return running.engine.stats().tiers[1].hit_tokens


def test_answers_stay_the_same_while_a_server_dies(
    fleet: RedisFleet, tiny_model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A tiny model computes faster than anything loads; without its speed the gate lets all in.
    monkeypatch.setattr(PrefixCache, "observe_step", lambda *_: None)
    with running_engine(config_of(tiny_model_dir, None)) as running:
        expected = answers(running)
    config = config_of(tiny_model_dir, fleet.url)
    with running_engine(config) as running:
        assert answers(running) == expected
        assert running.engine.wait_for_stores(20)
    assert sum(fleet.num_keys())
    with running_engine(config) as running:
        assert answers(running) == expected
        assert num_hits(running)

        def kill(num_done: int) -> None:
            if num_done == len(PROMPTS) // 2:
                fleet.servers[0].kill()

        assert answers(running, kill) == expected

    def is_found_again() -> bool:
        with running_engine(config_of(tiny_model_dir, fleet.several)) as later:
            assert answers(later) == expected
            later.engine.wait_for_stores(20)
            found = num_hits(later)
        return found >= len(PROMPTS) * CHUNK_TOKENS * (200 // CHUNK_TOKENS)

    wait_until(is_found_again, "the replica has taken over, and every chunk is found")


def test_tls_with_certificates_on_both_sides_and_an_account_with_few_rights(
    tmp_path: Path, tiny_model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PrefixCache, "observe_step", lambda *_: None)
    server = RedisProcess("--user", "apply", "on", ">hush", *ACL.split())
    with ExitStack() as stack:
        stack.callback(server.kill)
        tls_port = stack.enter_context(tls_before(server.port, tmp_path, asks_for_certificate=True))
        files = f"ssl_ca_certs={tmp_path}/cert.pem"
        own = f"&ssl_certfile={tmp_path}/cert.pem&ssl_keyfile={tmp_path}/key.pem"
        url = f"rediss://apply:hush@127.0.0.1:{tls_port}/0?{files}"
        with closing(tier_at(url)) as tier:
            assert tier.match(NAMES, deadline())[1] in ("connection", "protocol")
        with closing(tier_at(url + own)) as tier:
            assert tier.probe(NAMES[0], deadline()) is None
            assert tier.echo(deadline()) is None
            fill(tier, NAMES)
            check_all_there(tier)
        check_counts(url + own)
        with running_engine(config_of(tiny_model_dir, None)) as running:
            expected = answers(running)
        signed = config_of(tiny_model_dir, url + own, secrets=(b"key",))
        for _ in range(2):
            with running_engine(signed) as running:
                assert answers(running) == expected
                assert running.engine.wait_for_stores(20)
                hits = num_hits(running)
        assert hits
        for command in (["FLUSHALL"], ["SCAN", "0"], ["SET", "other", "1"], ["CONFIG", "GET", "*"]):
            with (
                redis.Redis(port=server.port, username="apply", password="hush") as client,
                pytest.raises(redis.exceptions.NoPermissionError),
            ):
                client.execute_command(*command)
