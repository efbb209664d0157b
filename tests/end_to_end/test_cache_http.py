"""Over HTTP: what was cached is told, counted, and kept apart by API key."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis_process import RedisProcess, find_redis_server
from server_thread import serving

from apply_service.apply.run import PipelineLimits
from apply_service.apply.tenant import CacheSharing
from apply_service.config import Settings
from apply_service.models.loading import load_served_model
from apply_service.service import ApplyService
from batching.cache.prefix_cache import PrefixCache

WAIT_S = 60.0
EDIT: dict[str, Any] = {
    "original": "".join(f"line_{number} = {number}\n" for number in range(40)),
    "update": "# ... existing code ...\nline_38 = 38\nline_39 = 40\n",
    "scope": "file",
    "constraint": "none",
    "checks": "off",
    "sampling": {"max_tokens": 4},
}


def say_nothing(_stage: str) -> None:
    """Loading a tiny model has no stages worth telling."""


def make_service(
    model_dir: Path, sharing: CacheSharing, *, redis_url: str | None = None
) -> ApplyService:
    settings = Settings(
        model=str(model_dir),
        profile="embedded",
        threads=1,
        kv_memory=8 << 20,
        device="cpu",
        cache_memory=4 << 20,
        cache_chunk_tokens=64,
        cache_timeout_s=WAIT_S,
        redis_url=redis_url,
    )
    return ApplyService(
        partial(load_served_model, settings, report=say_nothing),
        model_name=model_dir.name,
        limits=PipelineLimits(max_file_bytes=20_000, max_draft_tokens=64),
        default_deadline_s=WAIT_S,
        drain_s=5.0,
        default_use_model="always",
        cache_sharing=sharing,
    )


def post(url: str, key: str | None) -> dict[str, Any]:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    response = httpx.post(f"{url}/v1/apply", json=EDIT, headers=headers, timeout=WAIT_S)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


@pytest.mark.parametrize("sharing", ["key", "all"])
def test_api_keys_share_or_do_not(tiny_model_dir: Path, sharing: CacheSharing) -> None:
    with serving(make_service(tiny_model_dir, sharing)) as url:
        answers = [post(url, key) for key in ("one", "one", "two", None)]
    cached = [answer["usage"]["cached_tokens"] for answer in answers]
    num_prompt = answers[0]["usage"]["prompt_tokens"]
    is_shared = [False, True, sharing == "all", sharing == "all"]
    assert [count > 0.9 * num_prompt for count in cached] == is_shared
    assert [count == 0 for count in cached] == [not shared for shared in is_shared]
    assert len({answer["merged"] for answer in answers}) == 1


@pytest.mark.redis
@pytest.mark.skipif(find_redis_server() is None, reason="no redis-server")
def test_replicas_share_with_the_same_key_alone(
    tiny_model_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A tiny model computes faster than anything loads; without its speed the gate lets all in.
    monkeypatch.setattr(PrefixCache, "observe_step", lambda *_: None)
    redis = RedisProcess()
    try:
        answers = []
        for key in ("one", "two", None, "one", "two", None):
            with serving(make_service(tiny_model_dir, "key", redis_url=redis.url)) as url:
                answers.append(post(url, key))
                until = time.monotonic() + WAIT_S
                metrics = httpx.get(f"{url}/metrics", timeout=WAIT_S).text
                while 'queue_depth{tier="redis"} 0.0' not in metrics:
                    assert time.monotonic() < until
                    metrics = httpx.get(f"{url}/metrics", timeout=WAIT_S).text
    finally:
        redis.kill()
    assert [answer["usage"]["cached_tokens"] > 0 for answer in answers] == [False] * 3 + [True] * 3
    for answer in answers[:3]:
        assert answer["usage"]["cached_tokens"] == 0
        lookups = answer["timing"]["prefix_lookups"]
        assert [lookup["reason"] for lookup in lookups] == ["absent", "absent"]
        assert [lookup["tokens"] for lookup in lookups] == [0, 0]
    assert len({answer["merged"] for answer in answers}) == 1


def test_searches_are_told_and_counted(tiny_model_dir: Path) -> None:
    with serving(make_service(tiny_model_dir, "key")) as url:
        timing = post(url, None)["timing"]
        metrics = httpx.get(f"{url}/metrics", timeout=WAIT_S).text
    assert timing["load"] <= timing["queue"]
    (lookup,) = timing["prefix_lookups"]
    assert (lookup["tier"], lookup["decision"], lookup["reason"]) == ("host", "miss", "absent")
    assert lookup["load_estimate"] is None
    for line in (
        'apply_cache_lookups_total{tier="host"} 1.0',
        'apply_cache_misses_total{reason="absent",tier="host"} 1.0',
        'apply_cache_decisions_total{decision="miss",tier="host"} 1.0',
        'apply_cache_breaker{state="closed",tier="host"} 1.0',
        'apply_cache_queue_depth{tier="host"} 0.0',
    ):
        assert line in metrics
    assert 'apply_cache_stores_total{tier="host"} 0.0' not in metrics
