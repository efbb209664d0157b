"""Two ranks are one model, and end together. `oracles.engine.tensor_parallel` has more of them."""

from __future__ import annotations

import logging
import os
import random
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from drafter_texts import texts
from engine_runs import running_engine
from rank_processes import rank_ids
from remote_engines import wait_until
from tiny_model import write_tiny_model

from batching.config import CacheConfig, EngineConfig, SchedulerConfig
from batching.errors import EngineLostError
from batching.events import Failed
from batching.recipes import EditDrafts
from batching.request import EngineRequest, SamplingParams


def make_requests(*, has_drafts: bool) -> list[EngineRequest]:
    """Greedy and sampled texts behind prompts of several chunks."""
    generator = random.Random(5)
    return [
        EngineRequest(
            request_id=f"case-{case}",
            prompt_token_ids=tuple(generator.randrange(3, 259) for _ in range(90)),
            sampling=SamplingParams(max_tokens=12, temperature=0.8 * (case % 2), seed=case),
            proposer=EditDrafts(original=(), snippet_segments=()) if has_drafts else None,
        )
        for case in range(8)
    ]


def test_two_ranks_write_what_one_process_writes_and_end_together(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_tiny_model(tmp_path, seed=0, num_heads=8, num_kv_heads=4)
    config = EngineConfig(
        model_path=tmp_path,
        kv_memory_bytes=1 << 18,  # so little that prompts come back from host memory
        num_threads=1,
        cache=CacheConfig(memory_bytes=8 << 20, chunk_tokens=32),
        scheduler=SchedulerConfig(max_running=8, max_tokens_per_step=128),
    )
    with running_engine(config) as one:
        expected = texts(one, make_requests(has_drafts=False))
        info = one.engine.model_info
    parallel = replace(config, tensor_parallel=2, kv_memory_bytes=1 << 17)
    with running_engine(parallel) as running:
        assert texts(running, make_requests(has_drafts=False)) == expected
        assert texts(running, make_requests(has_drafts=True)) == expected
        (host,) = running.engine.stats().tiers
        assert host.hit_tokens > 0
        assert running.engine.model_info.num_parameters == info.num_parameters
        assert running.engine.model_info.kv_bytes_per_token == info.kv_bytes_per_token

        (rank,) = rank_ids(os.getpid())
        for case, request in enumerate(make_requests(has_drafts=False)[:2]):
            # What is not in host memory would be copied there at the end.
            prompt = (100 + case, *request.prompt_token_ids)
            long = replace(request.sampling, max_tokens=200)
            running.submit(replace(request, prompt_token_ids=prompt, sampling=long))
        running.take_event()
        caplog.clear()
        os.kill(rank, signal.SIGKILL)
        for outcome in running.wait_all().values():
            assert isinstance(outcome.last, Failed)
            assert isinstance(outcome.last.error, EngineLostError)
            assert "rank 1 of 2 ended by signal 9; all ranks stop" in str(outcome.last.error)
        wait_until(lambda: running.engine.is_lost)
        assert running.engine.stalled_s() == float("inf")
    (line,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert line.getMessage() == "rank 1 of 2 ended by signal 9, so all ranks stop"
