"""Two ranks are one model; heavier tests have the mark `fleet`."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from drafter_texts import make_requests, texts
from engine_runs import RunningEngine, running_engine
from rank_processes import processes_of_ranks
from remote_engines import make_request, wait_until
from tiny_model import write_tiny_model

from batching.config import CacheConfig, EngineConfig, SchedulerConfig
from batching.errors import EngineLostError, ModelLoadError
from batching.events import Failed

NUM_TEXTS = 12


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("eight-heads")
    write_tiny_model(path, seed=0, num_heads=8, num_kv_heads=4)
    return path


def make_config(model_dir: Path, num_ranks: int) -> EngineConfig:
    """Few blocks, so that prompts come back from host memory."""
    return EngineConfig(
        model_path=model_dir,
        kv_memory_bytes=(1 << 20) // num_ranks,
        num_threads=1,
        cache=CacheConfig(memory_bytes=8 << 20, chunk_tokens=32),
        scheduler=SchedulerConfig(max_running=8, max_tokens_per_step=128),
        tensor_parallel=num_ranks,
    )


@pytest.fixture(scope="module")
def two_ranks(model_dir: Path) -> Iterator[RunningEngine]:
    with running_engine(make_config(model_dir, 2)) as running:
        yield running


def test_two_ranks_write_what_one_process_writes(
    model_dir: Path, two_ranks: RunningEngine
) -> None:
    def all_texts(running: RunningEngine, *, has_drafts: bool) -> list[list[list[int]]]:
        return [
            texts(running, make_requests(name, count=NUM_TEXTS, has_drafts=has_drafts))
            for name in ("greedy", "sampled")
        ]

    with running_engine(make_config(model_dir, 1)) as one:
        expected = all_texts(one, has_drafts=False)
        info = one.engine.model_info
    assert all_texts(two_ranks, has_drafts=False) == expected
    assert all_texts(two_ranks, has_drafts=True) == expected
    (host,) = two_ranks.engine.stats().tiers
    assert host.num_hit_tokens > 0
    assert two_ranks.engine.model_info.num_parameters == info.num_parameters
    assert two_ranks.engine.model_info.kv_bytes_per_token == info.kv_bytes_per_token


def test_a_rank_that_is_killed_ends_all_requests_and_all_ranks(model_dir: Path) -> None:
    with running_engine(make_config(model_dir, 2)) as running:
        (rank,) = processes_of_ranks(os.getpid(), but=other_ranks())
        for name in ("first", "second"):
            running.submit(make_request(name, max_tokens=900))
        running.take_event()
        os.kill(rank, signal.SIGKILL)
        outcomes = running.wait_all()
        for outcome in outcomes.values():
            assert isinstance(outcome.last, Failed)
            assert isinstance(outcome.last.error, EngineLostError)
            assert "rank 1 of 2 ended by signal 9; all ranks stop" in str(outcome.last.error)
        wait_until(lambda: running.engine.is_lost)
        assert running.engine.stalled_s() == float("inf")
