"""Who is let into the engine: never nobody, and nobody whom the others would make late."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from oracle_service import OracleService
from pipeline_session import session

from apply_service.apply.admission import Admission
from apply_service.apply.errors import OverloadedError
from batching.async_engine import AsyncEngine, RequestHandle
from batching.events import RequestStats
from batching.request import EngineRequest, Priority, SamplingParams

FINISHED = replace(RequestStats.total(()), num_prompt_tokens=3, num_output_tokens=4)
SLOW = replace(FINISHED, prefill_share_s=300.0, decode_share_s=300.0)


@pytest.fixture
def oracle(tiny_model_dir: Path) -> OracleService:
    oracle = OracleService(tiny_model_dir)
    oracle.runner.answer = tuple(range(10))
    return oracle


def request(name: str, *, deadline_s: float | None = 30.0, **changes: Any) -> EngineRequest:
    return replace(
        EngineRequest(
            request_id=name,
            prompt_token_ids=(1, 2, 3),
            sampling=SamplingParams(max_tokens=4),
            deadline=None if deadline_s is None else time.monotonic() + deadline_s,
        ),
        **changes,
    )


async def read(handles: tuple[RequestHandle, ...]) -> None:
    for handle in handles:
        async for _ in handle:
            pass


async def when_in_engine(engine: AsyncEngine, num_requests: int) -> None:
    while (stats := engine.stats()).num_running + stats.num_waiting < num_requests:
        await asyncio.sleep(0.005)


def test_an_idle_engine_takes_whatever_was_believed_of_it(oracle: OracleService) -> None:
    """Refused for its time, a request would never be observed, and nobody would know better."""

    async def scenario() -> None:
        async with session(oracle) as here:
            admission = Admission(here.engine)
            admission.observe(SLOW)
            for number in range(3):
                await read(admission.submit([request(f"r{number}")], num_answer_tokens=4))
                await here.wait_until_idle()

    asyncio.run(scenario())


def test_a_request_that_others_make_late_is_told_when_to_come_back(oracle: OracleService) -> None:
    async def scenario() -> None:
        async with session(oracle) as here:
            admission = Admission(here.engine)
            admission.observe(SLOW)
            oracle.runner.gate.clear()
            first = admission.submit([request("first")])
            await when_in_engine(here.engine, 1)
            with pytest.raises(
                OverloadedError, match=r"about [36]00\.0 s, and this one has"
            ) as caught:
                admission.submit([request("second")])
            assert 0 < caught.value.retry_after_s <= 120.0
            patient = admission.submit([request("patient", deadline_s=None)])
            oracle.runner.gate.set()
            await read(first + patient)

    asyncio.run(scenario())


def test_those_in_batch_priority_are_in_nobodys_way(oracle: OracleService) -> None:
    async def scenario() -> None:
        async with session(oracle) as here:
            admission = Admission(here.engine)
            admission.observe(SLOW)
            oracle.runner.gate.clear()
            first = admission.submit([request("first", priority=Priority.BATCH)])
            await when_in_engine(here.engine, 1)
            second = admission.submit([request("second")])
            oracle.runner.gate.set()
            await read(first + second)

    asyncio.run(scenario())


def test_what_comes_during_a_step_is_in_the_way_of_what_comes_next(oracle: OracleService) -> None:
    """A step may take seconds, and many requests come in the meantime."""

    async def scenario() -> None:
        async with session(oracle) as here:
            admission = Admission(here.engine)
            admission.observe(replace(FINISHED, prefill_share_s=10.0))
            oracle.runner.gate.clear()
            handles = admission.submit([request("first")])
            while not here.engine.stats().num_running:
                await asyncio.sleep(0.005)
            handles += admission.submit([request("second")])
            handles += admission.submit([request("third")])
            with pytest.raises(OverloadedError, match=r"about 25\.0 s"):
                admission.submit([request("fourth")], num_answer_tokens=4)
            oracle.runner.gate.set()
            await read(handles)

    asyncio.run(scenario())


def test_one_slow_request_is_soon_outweighed(oracle: OracleService) -> None:
    """The first request of a server may cost more than a hundred later ones."""

    async def scenario() -> None:
        async with session(oracle) as here:
            admission = Admission(here.engine)
            admission.observe(replace(FINISHED, prefill_share_s=60.0))
            for _ in range(10):
                admission.observe(replace(FINISHED, prefill_share_s=0.5))
            oracle.runner.gate.clear()
            first = admission.submit([request(f"r{number}") for number in range(4)])
            await when_in_engine(here.engine, 4)
            second = admission.submit([request("second")])
            oracle.runner.gate.set()
            await read(first + second)

    asyncio.run(scenario())
