"""Prompts outlive their blocks, in host memory and for others in Redis, and no token changes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from engine_runs import RunningEngine, running_engine
from redis_process import RedisProcess, find_redis_server
from tiny_model import write_tiny_model

from batching.cache import lower_tiers
from batching.cache import value as cache_value
from batching.cache.kv_transfer import KVTransfer
from batching.cache.prefix_cache import PrefixCache
from batching.cache.stats import TierStats
from batching.config import CacheConfig, EngineConfig
from batching.engine import build_engine
from batching.errors import CacheConfigError, RedisUrlError
from batching.events import RequestStats
from batching.request import EngineRequest, SamplingParams
from benchmarks.cache.throttled_proxy import ThrottledProxy
from kernels.instruction_set import has_bfloat16

CHUNK_TOKENS = 32
PROMPT = tuple(random.Random(5).randrange(3, 259) for _ in range(300))
NUM_CHUNKS = len(PROMPT) // CHUNK_TOKENS
CACHED = NUM_CHUNKS * CHUNK_TOKENS

needs_redis = pytest.mark.skipif(find_redis_server() is None, reason="no redis-server")


@pytest.fixture(autouse=True)
def _always_worth_it(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tiny model computes faster than anything loads; without its speed the gate lets all in."""
    if "gate" not in request.node.name:
        monkeypatch.setattr(PrefixCache, "observe_step", lambda *_: None)


@pytest.fixture(scope="module")
def server() -> Iterator[RedisProcess]:
    redis = RedisProcess()
    yield redis
    redis.kill()


@pytest.fixture
def redis(server: RedisProcess) -> RedisProcess:
    server.call("FLUSHALL")
    return server


def make_config(model_dir: Path, url: str | None = None, **changes: Any) -> EngineConfig:
    cache = CacheConfig(
        memory_bytes=4 << 20, chunk_tokens=CHUNK_TOKENS, redis_url=url, timeout_s=5.0
    )
    return EngineConfig(
        model_path=model_dir, kv_memory_bytes=1 << 20, cache=replace(cache, **changes)
    )


def run(
    running: RunningEngine, prompt: tuple[int, ...] = PROMPT, *, salt: bytes = b""
) -> tuple[list[int], RequestStats]:
    """The answer to a prompt and its figures; what is to be kept is kept."""
    request = EngineRequest(
        request_id=random.randbytes(8).hex(),
        prompt_token_ids=prompt,
        sampling=SamplingParams(max_tokens=16),
        cache_salt=salt,
    )
    outcome = running.run([request])[0]
    assert running.engine.wait_for_stores(20)
    return outcome.token_ids, outcome.finished.stats


def run_alone(config: EngineConfig, **options: Any) -> tuple[list[int], RequestStats]:
    """The same in an engine of its own, with nothing in memory."""
    with running_engine(config) as running:
        return run(running, **options)


def redis_stats(running: RunningEngine) -> TierStats:
    return running.engine.stats().tiers[1]


@pytest.fixture(scope="module")
def cold(tiny_model_dir: Path) -> list[int]:
    config = EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=1 << 20)
    return run_alone(config)[0]


def other_prompts() -> list[tuple[int, ...]]:
    """Enough to take every block of the device."""
    generator = random.Random(9)
    return [tuple(generator.randrange(3, 259) for _ in range(1000)) for _ in range(5)]


def test_host_memory_outlives_the_blocks(tiny_model_dir: Path, cold: list[int]) -> None:
    with running_engine(make_config(tiny_model_dir)) as running:
        assert run(running)[0] == cold
        for prompt in other_prompts():
            run(running, prompt)
        token_ids, stats = run(running)
        host = running.engine.stats().tiers[0]
    assert token_ids == cold
    assert stats.num_cached_tokens == CACHED
    assert [lookup.decision for lookup in stats.prefix_lookups] == ["load"]
    assert host.hits == NUM_CHUNKS
    assert host.num_bytes <= 4 << 20


def test_copies_that_fail_cost_a_chunk_each_and_no_request(
    tiny_model_dir: Path, cold: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: Any, **_options: Any) -> None:
        raise RuntimeError("the device has no memory for a copy")

    with running_engine(make_config(tiny_model_dir)) as running:
        with monkeypatch.context() as broken:
            broken.setattr(KVTransfer, "copy_out", fail)
            assert run(running)[0] == cold
        assert running.engine.stats().tiers[0].drops == {"failed": NUM_CHUNKS}
        for prompt in (*other_prompts(), PROMPT, *other_prompts()):
            run(running, prompt)
        with monkeypatch.context() as broken:
            broken.setattr(KVTransfer, "copy_in", fail)
            assert run(running)[0] == cold
        assert running.engine.stats().tiers[0].drops == {"failed": NUM_CHUNKS + 1}
        stats = running.engine.stats()
        assert stats.num_free_blocks == stats.num_blocks
        running.engine._block_pool.check_invariants()


def test_without_lower_tiers_only_blocks_are_kept(tiny_model_dir: Path, cold: list[int]) -> None:
    config = make_config(tiny_model_dir, memory_bytes=0)
    with running_engine(config) as running:
        assert run(running)[0] == cold
        for prompt in other_prompts():
            run(running, prompt)
        token_ids, stats = run(running)
        assert running.engine.stats().tiers == ()
    assert (token_ids, stats.num_cached_tokens) == (cold, 0)
    assert stats.prefix_lookups == ()


@needs_redis
@pytest.mark.redis
def test_a_second_engine_computes_only_the_rest(
    redis: RedisProcess, tiny_model_dir: Path, cold: list[int]
) -> None:
    config = make_config(tiny_model_dir, redis.url)
    assert run_alone(config)[0] == cold
    assert len(redis.all_keys("apply-kv:*")) == NUM_CHUNKS
    with running_engine(config) as running:
        token_ids, stats = run(running)
        tier = redis_stats(running)
    assert (token_ids, stats.num_cached_tokens) == (cold, CACHED)
    assert (tier.hits, tier.hit_tokens, tier.stores) == (NUM_CHUNKS, CACHED, 0)
    lookup = stats.prefix_lookups[1]
    assert (lookup.tier, lookup.decision, lookup.num_tokens) == ("redis", "load", CACHED)
    assert 0 <= stats.load_s <= stats.queue_s


@needs_redis
@pytest.mark.redis
def test_a_longer_prompt_loads_its_beginning_and_stores_its_end(
    redis: RedisProcess, tiny_model_dir: Path
) -> None:
    config = make_config(tiny_model_dir, redis.url)
    run_alone(config)
    longer = PROMPT[:CACHED] + other_prompts()[0][:200]
    expected = run_alone(make_config(tiny_model_dir, memory_bytes=0), prompt=longer)[0]
    with running_engine(config) as running:
        token_ids, stats = run(running, longer)
        assert redis_stats(running).stores == len(longer) // CHUNK_TOKENS - NUM_CHUNKS
    assert (token_ids, stats.num_cached_tokens) == (expected, CACHED)


@needs_redis
@pytest.mark.redis
def test_two_engines_write_a_prefix_once(redis: RedisProcess, tiny_model_dir: Path) -> None:
    config = make_config(tiny_model_dir, redis.url)
    with running_engine(config) as first, running_engine(config) as second:
        requests = [
            EngineRequest(
                request_id=name,
                prompt_token_ids=PROMPT,
                sampling=SamplingParams(max_tokens=1),
            )
            for name in ("a", "b")
        ]
        first.submit(requests[0])
        second.submit(requests[1])
        first.wait_all()
        second.wait_all()
        for running in (first, second):
            assert running.engine.wait_for_stores(20)
        written = sum(redis_stats(running).stores for running in (first, second))
        for running in (first, second):
            run(running)
        assert sum(redis_stats(running).stores for running in (first, second)) == written
    assert NUM_CHUNKS <= written <= 2 * NUM_CHUNKS


@needs_redis
@pytest.mark.redis
def test_values_expire(redis: RedisProcess, tiny_model_dir: Path) -> None:
    run_alone(make_config(tiny_model_dir, redis.url, ttl_s=77))
    for key in redis.all_keys():
        assert 70 <= int(redis.call("TTL", key)[1:]) <= 77


@needs_redis
@pytest.mark.redis
def test_tenants_do_not_share(redis: RedisProcess, tiny_model_dir: Path, cold: list[int]) -> None:
    config = make_config(tiny_model_dir, redis.url)
    run_alone(config, salt=b"one")
    for salt, num_cached in ((b"two", 0), (b"", 0), (b"one", CACHED)):
        token_ids, stats = run_alone(config, salt=salt)
        assert (token_ids, stats.num_cached_tokens) == (cold, num_cached)


@needs_redis
@pytest.mark.redis
def test_a_value_under_the_key_of_another_tenant_is_refused(
    redis: RedisProcess, tiny_model_dir: Path, cold: list[int]
) -> None:
    config = make_config(tiny_model_dir, redis.url)
    run_alone(config, salt=b"one")
    values = {key: redis.get(key) for key in redis.all_keys()}
    run_alone(config, salt=b"two")
    for key in redis.all_keys():
        if key not in values:
            redis.call("SET", key, next(iter(values.values())))
    token_ids, stats = run_alone(config, salt=b"two")
    assert (token_ids, stats.num_cached_tokens) == (cold, 0)
    assert stats.prefix_lookups[1].reason == "key"


@needs_redis
@pytest.mark.redis
def test_other_weights_numbers_and_payloads_do_not_share(
    redis: RedisProcess, tiny_model_dir: Path, tmp_path: Path
) -> None:
    config = make_config(tiny_model_dir, redis.url)
    run_alone(config)
    write_tiny_model(tmp_path, seed=1)
    others = [
        replace(config, model_path=tmp_path),
        replace(config, dtype="bfloat16" if has_bfloat16() else "int8"),
        make_config(tiny_model_dir, redis.url, payload="float16"),
        make_config(tiny_model_dir, redis.url, payload="int8"),
        make_config(tiny_model_dir, redis.url, secrets=(b"key",)),
        make_config(tiny_model_dir, redis.url, chunk_tokens=64),
    ]
    for other in others:
        assert run_alone(other)[1].num_cached_tokens == 0
        assert run_alone(other)[1].num_cached_tokens > 0
    assert run_alone(config)[1].num_cached_tokens == CACHED


@needs_redis
@pytest.mark.redis
def test_what_others_plant_in_redis_is_refused_and_counted(
    redis: RedisProcess, tiny_model_dir: Path, cold: list[int]
) -> None:
    config = make_config(tiny_model_dir, redis.url, secrets=(b"ours",))
    run_alone(config)
    ours = {key: redis.get(key) for key in redis.all_keys()}
    redis.call("FLUSHALL")
    run_alone(make_config(tiny_model_dir, redis.url, secrets=(b"forger's",)))
    forged = {redis.get(key) for key in redis.all_keys()}
    redis.call("FLUSHALL")
    run_alone(config, salt=b"another tenant")
    of_tenant = {redis.get(key) for key in redis.all_keys()}
    first, second = list(ours)[:2]
    header, payload = slice(0, cache_value.HEADER_BYTES), slice(cache_value.HEADER_BYTES, None)
    planted = {
        "key": [next(iter(forged)), ours[second], next(iter(of_tenant))],
        "checksum": [ours[first][header] + ours[second][payload]],
        "code": [recounted(ours[first][header] + ours[second][payload])],
    }
    for reason, values in planted.items():
        for value in values:
            for key in ours:
                redis.call("SET", key, value if key == first else ours[key])
            with running_engine(config) as running:
                token_ids, _ = run(running)
                misses = redis_stats(running).misses
            assert token_ids == cold
            # The chunk is not the first of the prompt in every run, and nothing behind it counts.
            assert misses[reason] == 1


def recounted(value: bytes) -> bytes:
    """The value with the checksum that fits, which needs no secret."""
    changed = memoryview(bytearray(value))
    form = cache_value.ValueFormat(b"", num_tokens=1, payload_bytes=1)
    start = cache_value._CHECKSUM_OFFSET
    cache_value._CHECKSUM.pack_into(changed, start, form._checksum(changed))
    return bytes(changed)


@needs_redis
@pytest.mark.redis
def test_a_secret_can_be_replaced_without_losing_what_is_there(
    redis: RedisProcess, tiny_model_dir: Path, cold: list[int]
) -> None:
    old, both, new = (
        make_config(tiny_model_dir, redis.url, secrets=secrets)
        for secrets in ((b"old",), (b"new", b"old"), (b"new",))
    )
    run_alone(old)
    assert run_alone(new)[1].num_cached_tokens == 0
    redis.call("FLUSHALL")
    run_alone(old)
    for config, num_cached in ((both, CACHED), (both, CACHED), (new, CACHED), (old, CACHED)):
        token_ids, stats = run_alone(config)
        assert (token_ids, stats.num_cached_tokens) == (cold, num_cached)
    assert len(redis.all_keys()) == 2 * NUM_CHUNKS


@needs_redis
@pytest.mark.redis
def test_old_and_new_replicas_share_one_redis(
    redis: RedisProcess,
    tiny_model_dir: Path,
    cold: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = make_config(tiny_model_dir, redis.url)
    run_alone(config)
    new_format = partial(cache_value.ValueFormat, version=cache_value.FORMAT_VERSION + 1)
    with monkeypatch.context() as upgraded:
        upgraded.setattr(lower_tiers, "ValueFormat", new_format)
        for num_cached in (0, CACHED):
            token_ids, stats = run_alone(config)
            assert (token_ids, stats.num_cached_tokens) == (cold, num_cached)
    token_ids, stats = run_alone(config)
    assert (token_ids, stats.num_cached_tokens) == (cold, CACHED)
    assert len(redis.all_keys()) == 2 * NUM_CHUNKS


@needs_redis
@pytest.mark.redis
def test_damage_is_repaired(redis: RedisProcess, tiny_model_dir: Path, cold: list[int]) -> None:
    config = make_config(tiny_model_dir, redis.url)
    run_alone(config)
    key = redis.all_keys()[3]
    good = redis.get(key)
    redis.call("SETRANGE", key, str(len(good) // 2), "????")
    damaged = redis.get(key)
    token_ids, stats = run_alone(config)
    assert token_ids == cold
    assert stats.num_cached_tokens < CACHED
    assert stats.prefix_lookups[1].reason == "checksum"
    # The last bits of float32 depend on the rows that were computed together.
    assert len(redis.get(key)) == len(good)
    assert redis.get(key) != damaged
    assert run_alone(config)[1].num_cached_tokens == CACHED


@needs_redis
@pytest.mark.redis
def test_a_slow_link_is_left_alone_by_the_gate(
    redis: RedisProcess, tiny_model_dir: Path, cold: list[int]
) -> None:
    run_alone(make_config(tiny_model_dir, redis.url))
    with ThrottledProxy(("127.0.0.1", redis.port), bytes_per_s=5e4) as proxy:
        url = f"redis://127.0.0.1:{proxy.port}"
        with running_engine(make_config(tiny_model_dir, url, timeout_s=1.0)) as running:
            for prompt in other_prompts()[:2]:
                run(running, prompt)
            token_ids, stats = run(running)
            tier = redis_stats(running)
    assert (token_ids, stats.num_cached_tokens) == (cold, 0)
    assert stats.prefix_lookups[1].decision == "compute"
    assert tier.bandwidth is not None
    assert tier.drops.keys() & {"paused", "timeout", "breaker_open", "stopped"}


@needs_redis
@pytest.mark.redis
def test_small_payloads_are_loaded_too(redis: RedisProcess, tiny_model_dir: Path) -> None:
    sizes = {}
    for payload in ("exact", "float16", "int8"):
        redis.call("FLUSHALL")
        config = make_config(tiny_model_dir, redis.url, payload=payload)
        run_alone(config)
        sizes[payload] = len(redis.get(redis.all_keys()[0]))
        assert run_alone(config)[1].num_cached_tokens == CACHED
    assert sizes["int8"] < sizes["float16"] < sizes["exact"]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"memory_bytes": 100},
            CacheConfigError,
            "100 bytes holds no chunk, and a chunk of 32 tokens",
        ),
        ({"memory_bytes": 0}, CacheConfigError, "0 bytes, and values from Redis"),
        ({"chunk_tokens": 40}, CacheConfigError, "40 tokens; take a multiple of 16"),
        ({"redis_url": "redis+sentinel://a"}, RedisUrlError, "names no master"),
    ],
)
def test_what_cannot_work_is_refused(
    tiny_model_dir: Path, changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    config = make_config(tiny_model_dir, "redis://127.0.0.1:1")
    with pytest.raises(error, match=message):
        build_engine(replace(config, cache=replace(config.cache, **changes)))


def test_an_open_redis_elsewhere_is_warned_about(
    tiny_model_dir: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = build_engine(make_config(tiny_model_dir, "redis://:pw@192.0.2.1"))
    engine.stop()
    assert "no TLS" in caplog.text
    assert "pw" not in caplog.text


def test_keys_and_values_are_those_of_a_single_pass(tiny_model_dir: Path) -> None:
    """What comes back to the device is bit by bit what was computed."""
    with running_engine(make_config(tiny_model_dir)) as running:
        run(running)
        runner = running.engine._runner
        before = runner._paged_kv.keys.clone()
        chain = running.engine._prefix_cache.new_chain(b"")
        blocks = running.engine._block_pool.match(chain.extend(PROMPT, CACHED // 16))
        assert len(blocks) == CACHED // 16
        for prompt in other_prompts():
            run(running, prompt)
        run(running)
        moved = running.engine._block_pool.match(chain.block_hashes[: CACHED // 16])
        assert torch.equal(runner._paged_kv.keys[:, moved], before[:, blocks])
