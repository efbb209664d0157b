"""Plans an edit, and answers it if no model is needed."""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from functools import partial

from apply_service.apply.conclusion import (
    may_conclude_alone,
    settle_doubt,
    try_conclude_alone,
)
from apply_service.apply.edit_request import EditRequest
from apply_service.apply.outcome import Outcome
from apply_service.apply.planning.edit_plan import EditPlan, plan_edit, plan_edit_again
from apply_service.apply.planning.plan_memory import PlanMemory
from apply_service.apply.planning.text_work import TextWork, WorkTerms
from apply_service.observe.private_text import TEXT_LOGGER
from apply_service.observe.request_record import stage
from batching.errors import DeadlineExceededError

# So long the choices of a result may take after its deadline.
SETTLING_GRACE_S = 0.5


class Intake:
    """Plans edits, and answers those that need no model; knows neither model nor engine.

    `text_work` runs the planning and the judging.
    """

    def __init__(self, *, max_file_bytes: int, text_work: TextWork | None = None) -> None:
        self._max_file_bytes = max_file_bytes
        self._text_work = text_work or TextWork()
        self._plans = PlanMemory()

    async def plan(self, edit: EditRequest) -> EditPlan:
        """Check and understand an edit. Raises ApplyError, SnippetError or TextFileError."""
        terms = WorkTerms.of(edit, started_at=time.monotonic())
        self._text_work.check_room(terms)
        with stage("plan"):
            plan = await self._plan(edit, terms)
        if TEXT_LOGGER.isEnabledFor(logging.INFO):
            TEXT_LOGGER.info("edit", extra={"id": plan.request_id, **_texts_of(edit)})
        return plan

    async def try_alone(self, plan: EditPlan) -> Outcome | None:
        """The outcome of a plan that needs no model; None if a model is needed."""
        with stage("verdict"):
            if not may_conclude_alone(plan):
                return None
            terms = WorkTerms.of(plan.edit, started_at=plan.started_at)
            return await self._text_work.run(terms, try_conclude_alone, plan)

    async def settle(self, plan: EditPlan, outcome: Outcome) -> Outcome:
        """The outcome as the caller wants it where it is in doubt.

        A deadline that is near or has passed does not undo it; choices that take longer than the
        grace are left out.
        """
        if outcome.verdict.status not in ("needs_review", "rejected"):
            return outcome
        with stage("verdict"):
            terms = WorkTerms.of(plan.edit, started_at=plan.started_at)
            if terms.deadline is not None:
                end = max(terms.deadline, time.monotonic() + SETTLING_GRACE_S)
                terms = replace(terms, deadline=end)
            settle = partial(settle_doubt, plan, outcome)
            try:
                return await self._text_work.run_here(terms, settle)
            except DeadlineExceededError:
                return settle(offers_choices=False)

    async def _plan(self, edit: EditRequest, terms: WorkTerms) -> EditPlan:
        known = self._plans.recall(edit)
        if known is not None:
            return plan_edit_again(known, edit)
        plan = await self._text_work.run(
            terms,
            plan_edit,
            edit,
            max_file_bytes=self._max_file_bytes,
            started_at=terms.started_at,
        )
        self._plans.keep(plan)
        return plan


def _texts_of(edit: EditRequest) -> dict[str, str | None]:
    return {
        "original": edit.original.decode(),
        "update": edit.update,
        "instruction": edit.instruction,
        "path": edit.path,
    }
