"""Who answers the cases of an accuracy run: the merge alone, a model here, or an endpoint."""

from __future__ import annotations

import time
from typing import Protocol

from apply_service.evaluate.cases.case_file import Case
from apply_service.evaluate.cases.case_result import CaseAnswer, notes_of
from apply_service.evaluate.cases.planned_case import plan_case


class Contender(Protocol):
    """Answers cases one after another; `close` gives back what it holds."""

    @property
    def name(self) -> str:
        """How reports call it."""

    def answer(self, case: Case) -> CaseAnswer:
        """The answer to one case. What goes wrong with a case is an answer too."""

    def close(self) -> None:
        """Nothing is answered afterwards."""


class MergeContender:
    """Answers as the service does where it cannot ask its model.

    A merge that no model has confirmed is applied only with unique anchors.
    """

    name = "merge alone"

    def answer(self, case: Case) -> CaseAnswer:
        """The merge of one case with its verdict."""
        started = time.perf_counter()
        planned = plan_case(case)
        outcome = planned.conclude()
        seconds = time.perf_counter() - started
        if outcome is None:
            notes = (planned.refusal or "no place was found for the update",)
            return CaseAnswer(status="rejected", notes=notes, seconds=seconds)
        return CaseAnswer(
            status=outcome.verdict.status,
            text=outcome.merged,
            notes=notes_of(outcome.verdict.findings),
            source=outcome.source,
            seconds=seconds,
        )

    def close(self) -> None:
        """It holds nothing."""
