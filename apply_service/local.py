"""Applies one edit with a model that is loaded for it alone."""

from __future__ import annotations

import asyncio

from apply_service.config import Settings
from apply_service.model_loading import load_model
from apply_service.outcome import Outcome
from apply_service.pipeline import ApplyPipeline, PipelineLimits
from apply_service.problems import Problem, RejectedError
from apply_service.progress import Progress
from apply_service.schemas import ApplyBody, ApplyResult, edit_of, result_of
from apply_service.service import LoadedModel
from batching.async_engine import AsyncEngine


def apply_locally(
    settings: Settings, body: ApplyBody, *, progress: Progress
) -> ApplyResult | Problem:
    """The result of an edit, or why it was rejected.

    Raises ModelStoreError, ApplyError, TextFileError, PromptError or EngineError.
    """
    progress.show_stage(f"loading the model {settings.model}")
    loaded = load_model(settings, report=progress.show_stage)
    progress.show_stage("reading the file")
    return asyncio.run(run_edit(loaded, settings, body, progress=progress))


async def run_edit(
    loaded: LoadedModel, settings: Settings, body: ApplyBody, *, progress: Progress
) -> ApplyResult | Problem:
    """One edit on a model that is in memory; its engine is stopped afterwards."""
    engine = AsyncEngine(loaded.engine)
    engine.start()
    limits = PipelineLimits(
        max_file_bytes=settings.max_file_bytes, max_draft_tokens=settings.max_draft_tokens
    )
    try:
        pipeline = ApplyPipeline(engine, loaded.profile, limits)
        run = await pipeline.start(edit_of(body, default_deadline_s=None))
        async for item in run:
            if isinstance(item, str):
                progress.show_text(item)
                continue
            return _answer_of(body, item, loaded.name, engine.model_info.fingerprint)
    finally:
        await engine.stop()
    raise AssertionError("a run ends in its outcome")


def _answer_of(
    body: ApplyBody, outcome: Outcome, model: str, fingerprint: str
) -> ApplyResult | Problem:
    if outcome.verdict.status == "rejected" and body.checks == "on":
        return RejectedError(outcome).problem
    return result_of(body, outcome, model=model, fingerprint=fingerprint)
