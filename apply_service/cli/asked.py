"""Lets judge and writer of the settings settle an edit without a model that is loaded."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from apply_service.apply.conclusion import settle_doubt
from apply_service.apply.events import NO_READER
from apply_service.apply.judge.from_settings import judge_of
from apply_service.apply.judge.second_opinion import SecondOpinion
from apply_service.apply.outcome import Outcome
from apply_service.apply.planning.edit_plan import EditPlan
from apply_service.apply.planning.text_work import TextWork
from apply_service.apply.writer.from_settings import writer_of
from apply_service.apply.writer.writing import Writing
from apply_service.config import Settings


def hear_judge(
    plan: EditPlan, outcome: Outcome, settings: Settings, environment: Mapping[str, str]
) -> Outcome:
    """The outcome, or what the judge makes of it. Raises RemoteUrlError."""
    return asyncio.run(_hear(plan, outcome, settings, environment))


def let_write(
    plan: EditPlan, settings: Settings, environment: Mapping[str, str]
) -> tuple[EditPlan, Outcome | None]:
    """What the writer makes of an edit, or the plan without it. Raises RemoteUrlError."""
    return asyncio.run(_write(plan, settings, environment))


async def _hear(
    plan: EditPlan, outcome: Outcome, settings: Settings, environment: Mapping[str, str]
) -> Outcome:
    judge = judge_of(settings, environment)
    if judge is None:
        return outcome
    try:
        return await SecondOpinion(judge, TextWork()).on(plan, outcome)
    finally:
        await judge.close()


async def _write(
    plan: EditPlan, settings: Settings, environment: Mapping[str, str]
) -> tuple[EditPlan, Outcome | None]:
    writer = writer_of(settings, environment)
    if writer is None:
        return plan, None
    writing = Writing(writer, TextWork(), otherwise=settings.auto_use_served_model)
    try:
        outcome = await writing.on(plan, NO_READER)
    finally:
        await writer.close()
    if outcome is None:
        return writing.without(plan), None
    return plan, settle_doubt(plan, outcome)
