"""The faults of Redis with the embedded model. Needs `apply-service model prepare`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from engine_runs import running_engine
from fault_suite import FAULTS
from redis_process import RedisProcess, find_redis_server

from apply_service.models.store import resolve_model
from batching.config import CacheConfig, EngineConfig
from batching.request import EngineRequest, SamplingParams

pytestmark = [
    pytest.mark.redis,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(find_redis_server() is None, reason="no redis-server"),
]

NUM_FILES, NUM_REQUESTS = 2, 8
CHUNK_TOKENS = 32
VOCAB_SIZE = 49_000


def make_requests() -> list[EngineRequest]:
    """Eight prompts that begin as one of two files."""
    requests = []
    for number in range(NUM_REQUESTS):
        file = random.Random(number % NUM_FILES)
        own = random.Random(100 + number)
        prompt = [file.randrange(100, VOCAB_SIZE) for _ in range(3 * CHUNK_TOKENS)]
        prompt += [own.randrange(100, VOCAB_SIZE) for _ in range(8)]
        requests.append(
            EngineRequest(
                request_id=str(number),
                prompt_token_ids=tuple(prompt),
                sampling=SamplingParams(max_tokens=4),
            )
        )
    return requests


def make_config(url: str | None) -> EngineConfig:
    return EngineConfig(
        model_path=resolve_model("embedded").path,
        kv_memory_bytes=64 << 20,
        cache=CacheConfig(
            memory_bytes=0 if url is None else 12 << 20,
            chunk_tokens=CHUNK_TOKENS,
            redis_url=url,
            timeout_s=1.0,
        ),
    )


@pytest.fixture(scope="module")
def cold() -> list[list[int]]:
    """Each answer, computed alone with nothing in any cache."""
    with running_engine(make_config(None)) as running:
        salted = [
            replace(request, cache_salt=request.request_id.encode()) for request in make_requests()
        ]
        return [running.run([request])[0].token_ids for request in salted]


@pytest.fixture
def filled() -> Iterator[RedisProcess]:
    redis = RedisProcess()
    with running_engine(make_config(redis.url)) as running:
        running.run(make_requests()[:NUM_FILES])
        assert running.engine.wait_for_stores(60)
    yield redis
    redis.kill()


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_changes_no_token(name: str, filled: RedisProcess, cold: list[list[int]]) -> None:
    with FAULTS[name](filled) as url, running_engine(make_config(url)) as running:
        outcomes = running.run(make_requests())
        assert [outcome.token_ids for outcome in outcomes] == cold
        stats = running.engine.stats()
        assert stats.num_free_blocks == stats.num_blocks
        print(name, stats.tiers[1].hits, dict(stats.tiers[1].misses))
