"""Whoever waits for a model goes on when it comes, and is told when it does not."""

from __future__ import annotations

import asyncio
import time

import pytest

from apply_service.apply.errors import BusyError, ModelFailedError, NotReadyError
from apply_service.models.slot import ModelSlot, model_failed


async def waiting_for(slot: ModelSlot[str], count: int) -> list[asyncio.Task[str]]:
    """So many that wait already."""
    tasks = [asyncio.create_task(slot.wait(until=None)) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


def test_all_who_wait_get_the_model() -> None:
    async def scenario() -> None:
        slot: ModelSlot[str] = ModelSlot(max_waiting=3)
        with pytest.raises(NotReadyError):
            slot.get()
        tasks = await waiting_for(slot, 3)
        assert slot.state == "loading"
        slot.put("model")
        assert await asyncio.gather(*tasks) == ["model"] * 3
        assert (slot.state, slot.get()) == ("ready", "model")
        assert await slot.wait(until=0.0) == "model", "what is there needs no time"

    asyncio.run(scenario())


def test_all_who_wait_or_come_later_get_an_error_of_their_own() -> None:
    async def scenario() -> None:
        slot: ModelSlot[str] = ModelSlot(max_waiting=2)
        tasks = await waiting_for(slot, 2)
        slot.fail(model_failed)
        errors = await asyncio.gather(*tasks, slot.wait(until=None), return_exceptions=True)
        assert [type(error) for error in errors] == [ModelFailedError] * 3
        assert len(set(map(id, errors))) == 3
        assert slot.state == "failed"

    asyncio.run(scenario())


def test_a_failure_after_the_model_takes_nothing_away() -> None:
    async def scenario() -> None:
        slot: ModelSlot[str] = ModelSlot(max_waiting=1)
        slot.put("model")
        slot.fail(model_failed)
        assert (slot.state, await slot.wait(until=None)) == ("ready", "model")

    asyncio.run(scenario())


def test_a_deadline_and_a_withdrawal_make_room() -> None:
    async def scenario() -> None:
        slot: ModelSlot[str] = ModelSlot(max_waiting=1)
        with pytest.raises(NotReadyError, match="needs the model"):
            await slot.wait(until=time.monotonic())
        (task,) = await waiting_for(slot, 1)
        with pytest.raises(BusyError, match="the limit is 1"):
            await slot.wait(until=None)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(NotReadyError):
            await slot.wait(until=time.monotonic())

    asyncio.run(scenario())
