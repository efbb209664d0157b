"""Builds the service from its settings; imports judge, writer and engine when they are used."""

from __future__ import annotations

import logging
import os
import sys
from functools import partial
from typing import TYPE_CHECKING

from apply_service.apply.planning.text_work import TextWork
from apply_service.apply.run import PipelineLimits
from apply_service.config import Settings
from apply_service.http.compat.settings import CompatSettings, parse_aliases
from apply_service.models.found_model import FoundModel
from apply_service.observe.progress import Progress
from apply_service.service import ApplyService, BatchLimits, LoadedModel

if TYPE_CHECKING:
    from apply_service.apply.judge.judge import Judge
    from apply_service.apply.judge.judge import Observe as ObserveJudge
    from apply_service.apply.writer.writer import Observe as ObserveWriter
    from apply_service.apply.writer.writer import Writer

_LOGGER = logging.getLogger(__name__)


def service_of(settings: Settings, found: FoundModel | None) -> ApplyService:
    """The service, not started; `found` is its model where that is at hand."""
    return ApplyService(
        partial(_load_model, settings, found),
        model_name=settings.model if found is None else found.location.name,
        limits=PipelineLimits(
            max_file_bytes=settings.max_file_bytes,
            max_draft_tokens=settings.max_draft_tokens,
            allows_lossy=settings.lossy_acceptance == "allowed",
        ),
        default_deadline_s=settings.deadline_s,
        max_deadline_s=settings.max_deadline_s,
        drain_s=settings.drain_s,
        cache_sharing=settings.cache_sharing,
        default_use_model=settings.use_model,
        auto_use_model=settings.auto_use_model,
        auto_use_served_model=settings.auto_use_served_model,
        default_on_doubt=settings.on_doubt,
        stall_s=settings.stall_s,
        max_waiting=settings.max_waiting,
        batch_limits=BatchLimits(
            max_in_flight=settings.max_batch_in_flight,
            deadline_s=settings.batch_deadline_s,
            max_lines=settings.max_batch_lines,
            max_batch_s=settings.max_batch_s,
        ),
        compat=CompatSettings(
            review=settings.compat_review, model_aliases=parse_aliases(settings.model_aliases)
        ),
        text_work=TextWork(num_workers=settings.text_workers),
        make_judge=partial(_make_judge, settings),
        make_writer=partial(_make_writer, settings),
    )


def _make_judge(settings: Settings, observe: ObserveJudge) -> Judge | None:
    if settings.judge_url is None:
        return None
    from apply_service.apply.judge.from_settings import judge_of

    return judge_of(settings, os.environ, observe=observe)


def _make_writer(settings: Settings, observe: ObserveWriter) -> Writer | None:
    if settings.writer_url is None:
        return None
    from apply_service.apply.writer.from_settings import writer_of

    return writer_of(settings, os.environ, observe=observe)


def _load_model(settings: Settings, found: FoundModel | None) -> LoadedModel:
    progress = Progress(sys.stderr)
    progress.show_stage(f"loading the model {settings.model}; other edits are served meanwhile")
    try:
        return _loaded_model(settings, found)
    finally:
        progress.clear()


def _loaded_model(settings: Settings, found: FoundModel | None) -> LoadedModel:
    if not settings.in_process:
        from apply_service.models.remote_engine import launch_model

        return launch_model(settings, report=_LOGGER.info, found=found)
    # It brings torch, which takes seconds; edits that need no model are served meanwhile.
    from apply_service.models.loading import load_to_stay

    return load_to_stay(settings, report=_LOGGER.info, found=found)
