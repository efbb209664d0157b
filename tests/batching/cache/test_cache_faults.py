"""Whatever happens to Redis, every request ends with the tokens of a cold run, nothing grows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_runs import RunningEngine, running_engine
from fault_suite import FAULTS
from redis_process import RedisProcess, find_redis_server

from batching.cache.prefix_cache import PrefixCache
from batching.cache.stats import TierStats
from batching.config import CacheConfig, EngineConfig
from batching.request import EngineRequest, SamplingParams

pytestmark = [
    pytest.mark.redis,
    pytest.mark.skipif(find_redis_server() is None, reason="no redis-server"),
]

CHUNK_TOKENS = 32
NUM_FILES = 12
CONCURRENCY = 8
MAX_TOKENS = 4
NUM_REQUESTS = 32
NUM_SOAK_REQUESTS = 200
TIMEOUT_S = 0.25
# Where Redis works, a busy machine may not make it look broken.
PATIENT_S = 20.0
SOUND = ("no_fault", "garbage_keys")
# Room for the chunks of two prompts, and on the device for four requests at a time.
CACHE_BYTES, KV_BYTES = 280_000, 600_000
MAX_GROWTH = 1.05


def make_prompt(number: int) -> tuple[int, ...]:
    """A file that many prompts share, and a snippet of its own."""
    file = random.Random(number % NUM_FILES)
    own = random.Random(1000 + number)
    return (
        *(file.randrange(3, 259) for _ in range(180 + 17 * (number % NUM_FILES))),
        *(own.randrange(3, 259) for _ in range(20)),
    )


def make_request(number: int, prompt_number: int) -> EngineRequest:
    return EngineRequest(
        request_id=str(number),
        prompt_token_ids=make_prompt(prompt_number),
        sampling=SamplingParams(max_tokens=MAX_TOKENS),
    )


def make_config(
    model_dir: Path, url: str, *, is_small: bool = True, is_sound: bool = False
) -> EngineConfig:
    timeout_s = PATIENT_S if is_sound else TIMEOUT_S
    return EngineConfig(
        model_path=model_dir,
        kv_memory_bytes=KV_BYTES if is_small else 4 << 20,
        cache=CacheConfig(
            memory_bytes=CACHE_BYTES if is_small else 8 << 20,
            chunk_tokens=CHUNK_TOKENS,
            redis_url=url,
            timeout_s=timeout_s,
            connect_timeout_s=timeout_s,
        ),
    )


@pytest.fixture(autouse=True)
def _always_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tiny model computes faster than anything loads; without its speed the gate lets all in."""
    monkeypatch.setattr(PrefixCache, "observe_step", lambda *_: None)


def cold_answers(model_dir: Path, num_prompts: int) -> dict[int, list[int]]:
    """The answer to each prompt, computed without the tiers, one at a time."""
    config = EngineConfig(model_path=model_dir, kv_memory_bytes=4 << 20)
    with running_engine(config) as running:
        return {
            number: running.run([make_request(number, number)])[0].token_ids
            for number in range(num_prompts)
        }


@pytest.fixture(scope="module")
def cold(tiny_model_dir: Path) -> dict[int, list[int]]:
    return cold_answers(tiny_model_dir, NUM_REQUESTS)


@pytest.fixture(scope="module")
def soak_cold(tiny_model_dir: Path) -> dict[int, list[int]]:
    return cold_answers(tiny_model_dir, NUM_SOAK_REQUESTS)


@pytest.fixture(scope="module")
def server() -> Iterator[RedisProcess]:
    redis = RedisProcess()
    yield redis
    redis.kill()


@pytest.fixture(scope="module")
def values(server: RedisProcess, tiny_model_dir: Path) -> dict[bytes, bytes]:
    """The chunks of every file under their keys."""
    config = make_config(tiny_model_dir, server.url, is_small=False, is_sound=True)
    with running_engine(config) as running:
        running.run([make_request(number, number) for number in range(NUM_FILES)])
        assert running.engine.wait_for_stores(3 * PATIENT_S)
    values = {key: server.get(key) for key in server.all_keys()}
    assert len(values) > NUM_FILES
    return values


@pytest.fixture
def filled(server: RedisProcess, values: dict[bytes, bytes]) -> Iterator[RedisProcess]:
    """A server with the chunks of every file."""
    server.call("FLUSHALL")
    for key, value in values.items():
        server.call("SET", key, value)
    yield server
    server.kill()
    server.start()


def run_requests(
    running: RunningEngine, num_requests: int, cold: dict[int, list[int]], *, seed: int
) -> None:
    """Keep some requests live at all times; each must write what the cold run wrote."""
    order = random.Random(seed)
    prompt_numbers = {number: order.randrange(num_requests) for number in range(num_requests)}
    waiting = list(prompt_numbers)
    num_live = 0
    while waiting or num_live:
        while waiting and num_live < CONCURRENCY:
            number = waiting.pop(0)
            running.submit(make_request(number, prompt_numbers[number]))
            num_live += 1
        event = running.take_event()
        num_live -= running.outcomes[event.request_id].last is not None
    for number, prompt_number in prompt_numbers.items():
        outcome = running.outcomes.pop(str(number))
        assert outcome.finished.reason == "length"
        assert outcome.token_ids == cold[prompt_number], number


def check_books(running: RunningEngine) -> None:
    """Every block and every buffer has been given back."""
    engine = running.engine
    stats = engine.stats()
    assert stats.num_free_blocks == stats.num_blocks
    engine._block_pool.check_invariants()
    assert engine.wait_for_stores(20)
    lower = engine._prefix_cache._lower
    assert lower is not None
    lower.close()
    lower._host.check_invariants()
    assert lower._host.num_bytes <= CACHE_BYTES


def redis_stats(running: RunningEngine) -> TierStats:
    return running.engine.stats().tiers[1]


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_changes_no_token(
    name: str, filled: RedisProcess, tiny_model_dir: Path, cold: dict[int, list[int]]
) -> None:
    with (
        FAULTS[name](filled) as url,
        running_engine(make_config(tiny_model_dir, url, is_sound=name in SOUND)) as running,
    ):
        run_requests(running, NUM_REQUESTS, cold, seed=1)
        stats = redis_stats(running)
        assert stats.lookups > 0
        if name in SOUND:
            assert stats.hits > NUM_FILES
        else:
            assert stats.misses.keys() | stats.drops.keys()
        check_books(running)


def resident_bytes() -> int:
    """Memory of this process."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) << 10


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_lasts_and_nothing_grows(
    name: str, filled: RedisProcess, tiny_model_dir: Path, soak_cold: dict[int, list[int]]
) -> None:
    with (
        FAULTS[name](filled) as url,
        running_engine(make_config(tiny_model_dir, url, is_sound=name in SOUND)) as running,
    ):
        run_requests(running, NUM_SOAK_REQUESTS, soak_cold, seed=2)
        before = resident_bytes()
        run_requests(running, NUM_SOAK_REQUESTS, soak_cold, seed=3)
        growth = resident_bytes() / before
        assert growth <= MAX_GROWTH
        stats = redis_stats(running)
        print(f"{name}: {2 * NUM_SOAK_REQUESTS} requests, growth {growth:.3f}, {stats}")
        check_books(running)
