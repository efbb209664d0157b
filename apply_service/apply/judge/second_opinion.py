"""Lets a judge answer a question before the caller is asked it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from apply_service.apply.choices import Choice
from apply_service.apply.conclusion import heed, is_question
from apply_service.apply.edit_request import EditRequest
from apply_service.apply.errors import ApplyError
from apply_service.apply.judge.word import Word
from apply_service.apply.outcome import Outcome
from apply_service.apply.planning.edit_plan import EditPlan
from apply_service.apply.planning.text_work import TextWork, WorkTerms
from apply_service.observe.request_record import stage
from batching.errors import EngineError

# So long concluding what the judge named may take, within the deadline of the edit.
_RESERVE_S = 0.5


class Asks(Protocol):
    """Whoever can be asked which choice is meant."""

    @property
    def accuracy(self) -> float:
        """The probability that what it names is meant."""

    async def ask(
        self, edit: EditRequest, choices: Sequence[Choice], *, left_s: float | None = None
    ) -> Word | None:
        """What is meant, or None if there is no answer in time; raises nothing."""


class SecondOpinion:
    """Asks a judge about results in doubt; whatever fails, the result stays the question it was."""

    def __init__(self, judge: Asks, text_work: TextWork) -> None:
        self._judge = judge
        self._text_work = text_work

    async def on(self, plan: EditPlan, outcome: Outcome) -> Outcome:
        """The outcome, or what the judge makes of it if it is a question that it can settle."""
        if not self._can_settle(plan, outcome):
            return outcome
        with stage("judge"):
            left_s = None
            if plan.deadline is not None:
                left_s = plan.deadline - time.monotonic() - _RESERVE_S
            word = await self._judge.ask(plan.edit, outcome.choices, left_s=left_s)
            if word is None:
                return outcome
            terms = WorkTerms.of(plan.edit, started_at=plan.started_at)
            try:
                return await self._text_work.run(terms, heed, plan, outcome, word)
            except (ApplyError, EngineError):
                return outcome

    def _can_settle(self, plan: EditPlan, outcome: Outcome) -> bool:
        """True if there is a question, and an answer could make the likeliest merge certain."""
        if not plan.edit.may_ask_judge or not is_question(plan, outcome):
            return False
        assert plan.merge is not None, "a question has merges"
        return plan.merge.told(0, accuracy=self._judge.accuracy).is_certain
