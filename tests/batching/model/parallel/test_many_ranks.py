"""Ranks with drafters, and an engine's process whose rank is killed."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import pytest
from drafter_checkpoints import make_drafter_config
from drafter_texts import make_requests, texts
from engine_runs import running_engine
from rank_processes import rank_ids
from redis_process import RedisProcess, find_redis_server
from remote_engines import Ends, make_request, wait_until
from tiny_model import write_tiny_model

from apply_service.config import Settings
from apply_service.prompts.tokenizer import PromptTokenizer
from batching.config import CacheConfig, DrafterConfig, EngineConfig, SchedulerConfig
from batching.engine import build_engine
from batching.errors import EngineLostError, ModelLoadError
from batching.events import Failed, Finished
from batching.remote.engine_client import EngineClient
from batching.remote.engine_process import OwnedProcess, python_command

# Of processes that import torch beside others.
START_S = 150.0

pytestmark = [pytest.mark.fleet, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("eight-heads")
    write_tiny_model(path, seed=0, num_heads=8, num_kv_heads=4)
    return path


def make_config(model_dir: Path, **options: object) -> EngineConfig:
    config = EngineConfig(
        model_path=model_dir,
        kv_memory_bytes=1 << 20,
        num_threads=1,
        scheduler=SchedulerConfig(max_running=16),
    )
    return replace(config, **options)  # type: ignore[arg-type]


def test_drafters_that_ask_for_embeddings_and_logits_change_no_text(
    model_dir: Path, tmp_path: Path
) -> None:
    tokens = PromptTokenizer.from_dir(model_dir)
    kinds = ("eagle", "hydra", "token-recycling")
    drafters = tuple(make_drafter_config(kind, model_dir, tmp_path) for kind in kinds)
    plain = make_config(model_dir, tensor_parallel=4)
    with running_engine(plain, tokens=tokens) as running:
        expected = texts(running, make_requests("sampled", count=16, has_drafts=False))
    with running_engine(replace(plain, drafters=drafters), tokens=tokens) as running:
        assert texts(running, make_requests("sampled", count=16, has_drafts=True)) == expected
        assert {"eagle", "hydra"} & running.engine.stats().by_reference.keys()


@pytest.mark.redis
@pytest.mark.skipif(find_redis_server() is None, reason="no redis-server")
def test_ranks_share_chunks_with_as_many_ranks_alone(model_dir: Path) -> None:
    redis = RedisProcess()
    cache = CacheConfig(
        memory_bytes=8 << 20,
        chunk_tokens=32,
        redis_url=redis.url,
        timeout_s=20.0,
        secrets=(b"ours",),
    )

    def run(num_ranks: int) -> tuple[list[list[int]], int]:
        """The texts, and the tokens that came from Redis."""
        config = make_config(model_dir, tensor_parallel=num_ranks, cache=cache)
        with running_engine(config) as running:
            written = texts(running, make_requests("greedy", count=12, has_drafts=True))
            assert running.engine.wait_for_stores(20.0)
            _, of_redis = running.engine.stats().tiers
            return written, of_redis.hit_tokens

    try:
        first, second, one = run(2), run(2), run(1)
    finally:
        redis.kill()
    assert first[0] == second[0] == one[0]
    assert first[1] == one[1] == 0
    assert second[1] > 0


def test_layer_skip_is_refused_and_leaves_no_rank_behind(model_dir: Path) -> None:
    config = make_config(
        model_dir, tensor_parallel=2, drafters=(DrafterConfig("layer-skip", number=1),)
    )
    with pytest.raises(ModelLoadError, match="several ranks share them"):
        build_engine(config)
    assert rank_ids(os.getpid()) == []


def test_a_rank_that_cannot_load_says_why(model_dir: Path, tmp_path: Path) -> None:
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        (tmp_path / name).write_bytes((model_dir / name).read_bytes())
    with pytest.raises(ModelLoadError, match="could not be loaded"):
        build_engine(make_config(tmp_path, tensor_parallel=2))
    assert rank_ids(os.getpid()) == []


def test_an_engine_whose_rank_is_killed_comes_back(model_dir: Path) -> None:
    settings = Settings(
        model=str(model_dir),
        device="cpu",
        dtype="float32",
        threads=1,
        draft_budget="fixed",
        tensor_parallel=2,
    )
    links: list[OwnedProcess] = []

    def connect() -> OwnedProcess:
        command = python_command("apply_service.models.engine_main")
        links.append(OwnedProcess.start(command, msgspec.json.encode(settings)))
        return links[-1]

    client, ends = EngineClient(connect), Ends()
    client.start(ends.take)
    try:
        for name in ("first", "second", "third"):
            client.submit(make_request(name, max_tokens=3000))
        wait_until(lambda: ends.num_tokens.get("third", 0) > 0)
        (rank,) = rank_ids(links[0].process.pid)
        os.kill(rank, signal.SIGKILL)
        wait_until(lambda: len(ends.ends) == 3)
        for end in ends.ends.values():
            assert isinstance(end, Failed)
            assert isinstance(end.error, EngineLostError)
        wait_until(lambda: len(links) == 2 and client.is_up, limit_s=START_S)
        assert links[0].process.poll() is not None
        (rank,) = rank_ids(links[1].process.pid)
        client.submit(make_request("again"))
        wait_until(lambda: "again" in ends.ends)
        assert isinstance(ends.ends["again"], Finished)
    finally:
        client.stop()
    wait_until(partial(_has_ended, rank))


def _has_ended(process_id: int) -> bool:
    return not Path(f"/proc/{process_id}").exists()
