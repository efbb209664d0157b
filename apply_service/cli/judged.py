"""Lets the judge of the settings settle an edit that needs no model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from apply_service.apply.judge.from_settings import judge_of
from apply_service.apply.outcome import Outcome
from apply_service.apply.planning.edit_plan import EditPlan
from apply_service.apply.planning.text_work import TextWork
from apply_service.apply.second_opinion import SecondOpinion
from apply_service.config import Settings


def hear_judge(
    plan: EditPlan, outcome: Outcome, settings: Settings, environment: Mapping[str, str]
) -> Outcome:
    """The outcome, or what the judge makes of it. Raises JudgeUrlError."""
    return asyncio.run(_hear(plan, outcome, settings, environment))


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
