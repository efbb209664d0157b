"""Contenders of an accuracy run: their protocol, and the deterministic merge as one of them."""

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
        """The contender's name in reports."""

    def answer(self, case: Case) -> CaseAnswer:
        """The answer to one case; an error is an answer with a status of its own."""

    def close(self) -> None:
        """Release everything; no case is answered afterwards."""


class MergeContender:
    """Answers as the service does where it cannot ask its model.

    A merge that no model has confirmed is applied only if it is certain.
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
        """Do nothing: the merge holds no resources."""
