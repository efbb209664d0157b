"""Who answers the cases of an accuracy run: the merge alone, a model here, or an endpoint."""

from __future__ import annotations

from typing import Protocol

from apply_service.evaluate.cases.case_file import Case
from apply_service.evaluate.cases.case_result import Answer


class Contender(Protocol):
    """Answers cases one after another; `close` gives back what it holds."""

    @property
    def name(self) -> str:
        """How reports call it."""

    def answer(self, case: Case) -> Answer:
        """The answer to one case. What goes wrong with a case is an answer too."""

    def close(self) -> None:
        """Nothing is answered afterwards."""
