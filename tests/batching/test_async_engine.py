"""The asyncio façade: events in order, an end for everyone, cancellation by leaving."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from batching.async_engine import AsyncEngine
from batching.config import EngineConfig
from batching.engine import build_engine
from batching.errors import EngineStoppedError, RequestTooLongError
from batching.events import Event, Failed, Finished, Tokens
from batching.request import EngineRequest, SamplingParams

WAIT_S = 30.0


def make_engine(tiny_model_dir: Path) -> AsyncEngine:
    return AsyncEngine(
        build_engine(EngineConfig(model_path=tiny_model_dir, kv_memory_bytes=2 << 20))
    )


def make_request(request_id: str, max_tokens: int) -> EngineRequest:
    return EngineRequest(
        request_id=request_id,
        prompt_token_ids=tuple(range(10, 60)),
        sampling=SamplingParams(max_tokens=max_tokens),
    )


def test_events_arrive_in_order_and_end_once(tiny_model_dir: Path) -> None:
    async def scenario() -> list[Event]:
        engine = make_engine(tiny_model_dir)
        engine.start()
        events = [event async for event in engine.submit(make_request("a", 20))]
        await engine.stop()
        return events

    events = asyncio.run(scenario())
    assert [type(event) for event in events] == [Tokens] * 20 + [Finished]


def test_leaving_the_iteration_cancels_and_frees(tiny_model_dir: Path) -> None:
    async def scenario() -> None:
        engine = make_engine(tiny_model_dir)
        engine.start()
        before = engine.stats().num_free_blocks
        async with engine.submit(make_request("a", 3000)) as handle:
            async for event in handle:
                assert isinstance(event, Tokens)
                break
        async with asyncio.timeout(WAIT_S):
            while engine.stats().cancelled == 0:
                await asyncio.sleep(0.01)
        assert engine.stats().num_free_blocks == before
        await engine.stop()

    asyncio.run(scenario())


def test_cancelling_the_task_that_reads_cancels_the_request(tiny_model_dir: Path) -> None:
    async def read(engine: AsyncEngine) -> None:
        async for _ in engine.submit(make_request("a", 3000)):
            pass

    async def scenario() -> None:
        engine = make_engine(tiny_model_dir)
        engine.start()
        task = asyncio.create_task(read(engine))
        async with asyncio.timeout(WAIT_S):
            while engine.stats().steps < 3:
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while engine.stats().cancelled == 0:
                await asyncio.sleep(0.01)
        await engine.stop()

    asyncio.run(scenario())


def test_draining_lets_live_requests_finish_and_refuses_new_ones(tiny_model_dir: Path) -> None:
    async def scenario() -> None:
        engine = make_engine(tiny_model_dir)
        engine.start()
        handle = engine.submit(make_request("a", 60))
        stopping = asyncio.create_task(engine.stop(drain_s=WAIT_S))
        await asyncio.sleep(0)
        with pytest.raises(EngineStoppedError):
            engine.submit(make_request("b", 5))
        events = [event async for event in handle]
        assert isinstance(events[-1], Finished)
        await stopping

    asyncio.run(scenario())


def test_stopping_without_draining_fails_live_requests(tiny_model_dir: Path) -> None:
    async def scenario() -> None:
        engine = make_engine(tiny_model_dir)
        engine.start()
        handle = engine.submit(make_request("a", 3000))
        stopping = asyncio.create_task(engine.stop())
        events = [event async for event in handle]
        await stopping
        assert isinstance(events[-1], Failed)
        assert isinstance(events[-1].error, EngineStoppedError)

    asyncio.run(scenario())


def test_refusals_leave_nothing_behind(tiny_model_dir: Path) -> None:
    async def scenario() -> None:
        engine = make_engine(tiny_model_dir)
        with pytest.raises(EngineStoppedError):
            engine.submit(make_request("early", 5))
        engine.start()
        with pytest.raises(RequestTooLongError):
            engine.submit(make_request("long", 5000))
        await asyncio.wait_for(engine.stop(drain_s=WAIT_S), timeout=WAIT_S / 2)

    asyncio.run(scenario())
