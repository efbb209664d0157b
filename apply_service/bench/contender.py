"""Who answers the cases of an accuracy run: the merge alone, a model here, or an endpoint."""

from __future__ import annotations

from typing import Protocol

from apply_service.bench.case_result import Answer
from apply_service.bench.cases import Case


class Contender(Protocol):
    """Answers cases one after another; `close` gives back what it holds."""

    @property
    def name(self) -> str:
        """How reports call it."""

    def answer(self, case: Case) -> Answer:
        """The answer to one case. What goes wrong with a case is an answer too."""

    def close(self) -> None:
        """Nothing is answered afterwards."""
