"""Applies one edit with a model that is loaded for it alone."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass

from apply_service.apply.events import RegionText, RunEvent
from apply_service.apply.judge.from_settings import judge_of
from apply_service.apply.outcome import Outcome
from apply_service.apply.planning.edit_plan import EditPlan
from apply_service.apply.run import ApplyPipeline, PipelineLimits
from apply_service.config import Settings
from apply_service.http.problems import answer_of
from apply_service.http.schemas import ApplyBody, ApplyResult
from apply_service.models.found_model import FoundModel
from apply_service.models.loading import load_served_model
from apply_service.observe.progress import Progress
from apply_service.service import LoadedModel
from batching.async_engine import AsyncEngine


def apply_locally(
    settings: Settings,
    body: ApplyBody,
    plan: EditPlan,
    *,
    found: FoundModel,
    progress: Progress,
) -> ApplyResult:
    """The result of a planned edit.

    Raises RejectedError, ApplyError, PromptError or EngineError.
    """
    progress.show_stage(f"loading the model {settings.model}")
    loaded = load_served_model(settings, report=progress.show_stage, found=found)
    progress.show_stage("reading the file")
    outcome = asyncio.run(run_plan(loaded, settings, plan, progress=progress))
    fingerprint = loaded.engine.model_info.fingerprint
    return answer_of(body, outcome, model=loaded.name, fingerprint=fingerprint)


async def run_plan(
    loaded: LoadedModel, settings: Settings, plan: EditPlan, *, progress: Progress
) -> Outcome:
    """One edit on a model that is in memory; its engine is stopped afterwards."""
    engine = AsyncEngine(loaded.engine)
    engine.start()
    limits = PipelineLimits(
        max_file_bytes=settings.max_file_bytes, max_draft_tokens=settings.max_draft_tokens
    )
    judge = judge_of(settings, os.environ)
    pipeline = ApplyPipeline.on_engine(engine, loaded.profile, limits, judge=judge)
    try:
        return await pipeline.run(plan, _ShownText(progress))
    finally:
        await engine.stop()
        if judge is not None:
            await judge.close()


@dataclass(frozen=True, slots=True)
class _ShownText:
    """A sink that shows how far the answer is."""

    progress: Progress

    def put(self, event: RunEvent) -> None:
        """Show a text that grows."""
        if isinstance(event, RegionText):
            self.progress.show_text(event.text)
