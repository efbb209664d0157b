"""A request that waits for Redis keeps nobody else waiting, and can be withdrawn like any other."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_runs import RunningEngine, running_engine

from batching.config import CacheConfig, EngineConfig
from batching.errors import DeadlineExceededError
from batching.events import Cancelled, Failed, Finished
from batching.request import EngineRequest, SamplingParams

CHUNK_TOKENS = 32
TIMEOUT_S = 1.0


@pytest.fixture
def running(tiny_model_dir: Path) -> Iterator[RunningEngine]:
    """An engine whose Redis takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        cache = CacheConfig(
            memory_bytes=4 << 20,
            chunk_tokens=CHUNK_TOKENS,
            redis_url=f"redis://127.0.0.1:{listener.getsockname()[1]}",
            timeout_s=TIMEOUT_S,
            connect_timeout_s=TIMEOUT_S,
        )
        config = EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=1 << 20, cache=cache)
        with running_engine(config) as engine:
            yield engine


def make_request(name: str, num_tokens: int, deadline_s: float | None = None) -> EngineRequest:
    generator = random.Random(num_tokens)
    return EngineRequest(
        request_id=name,
        prompt_token_ids=tuple(generator.randrange(3, 259) for _ in range(num_tokens)),
        sampling=SamplingParams(max_tokens=4),
        deadline=None if deadline_s is None else time.monotonic() + deadline_s,
    )


def test_others_go_ahead(running: RunningEngine) -> None:
    running.submit(make_request("waits", 100))
    running.submit(make_request("runs", CHUNK_TOKENS))
    order: list[str] = []
    while len(order) < 2:
        event = running.take_event()
        if isinstance(event, Finished):
            order.append(event.request_id)
    assert order == ["runs", "waits"]
    stats = running.outcomes["waits"].finished.stats
    assert stats.load_s >= TIMEOUT_S / 2
    assert stats.prefix_lookups[1].reason == "timeout"
    assert running.outcomes["runs"].finished.stats.prefix_lookups == ()
    assert running.outcomes["runs"].finished.stats.load_s == 0.0


def test_a_loading_request_can_be_withdrawn(running: RunningEngine) -> None:
    running.submit(make_request("waits", 100))
    running.engine.cancel("waits")
    running.wait_all()
    assert isinstance(running.outcomes["waits"].last, Cancelled)
    # Its search is still under way; whatever it finds goes back.
    assert running.run([make_request("next", 20)])[0].finished.reason == "length"
    running.engine.stop()
    lower = running.engine._prefix_cache._lower
    assert lower is not None
    lower._host.check_invariants()


def test_a_deadline_passes_while_loading(running: RunningEngine) -> None:
    running.submit(make_request("waits", 100, deadline_s=TIMEOUT_S / 4))
    running.wait_all()
    last = running.outcomes["waits"].last
    assert isinstance(last, Failed)
    assert isinstance(last.error, DeadlineExceededError)


def test_a_stop_ends_loading_requests(running: RunningEngine) -> None:
    running.submit(make_request("waits", 100))
    running.engine.stop()
    running.wait_all()
    assert isinstance(running.outcomes["waits"].last, Failed)
