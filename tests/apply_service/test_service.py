"""A model that cannot be loaded ends the server, whatever the reason was."""

from __future__ import annotations

import asyncio

import pytest

from apply_service.pipeline import PipelineLimits
from apply_service.service import ApplyService, LoadedModel
from batching.errors import ModelLoadError


@pytest.mark.parametrize("error", [ModelLoadError("no weights"), ZeroDivisionError("a bug")])
def test_every_failure_to_load_is_told(error: Exception) -> None:
    def fail() -> LoadedModel:
        raise error

    async def scenario() -> ApplyService:
        service = ApplyService(
            fail,
            limits=PipelineLimits(max_file_bytes=1000, max_draft_tokens=8),
            default_deadline_s=1.0,
            drain_s=0.0,
        )
        told = asyncio.Event()
        service.on_load_failed(told.set)
        service.start()
        await asyncio.wait_for(told.wait(), timeout=30)
        await service.stop()
        return service

    service = asyncio.run(scenario())
    assert service.load_error is error
    assert not service.is_ready
