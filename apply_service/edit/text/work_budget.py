"""Limits the comparisons of an edit by count instead of time, so the result is the same anywhere.

BudgetSpentError is raised where the work is done and caught where an answer can be given:
a plan becomes a question, a verdict asks for review.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

# A comparison is what a microsecond or two are enough for on a slow machine. Of the case files
# no plan takes more than a thirtieth of this.
MAX_COMPARISONS = 3_000_000


class BudgetSpentError(Exception):
    """An edit would take more comparisons than allowed."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the edit takes more than {limit} comparisons")
        self.limit = limit

    def __reduce__(self) -> tuple[type[BudgetSpentError], tuple[int]]:
        """The error's form between processes."""
        return type(self), (self.limit,)


@dataclass(slots=True)
class WorkBudget:
    """The comparisons that one stage of an edit may make, and those that it has made."""

    limit: int
    num_spent: int = 0

    def spend(self, num_comparisons: int) -> None:
        """Count comparisons before they are made. Raises BudgetSpentError beyond the limit."""
        self.num_spent += num_comparisons
        if self.num_spent > self.limit:
            raise BudgetSpentError(self.limit)


# Follows a stage through its functions; set by `limited_work` alone.
_CURRENT: ContextVar[WorkBudget | None] = ContextVar("work_budget", default=None)


@contextmanager
def limited_work(limit: int | None = None) -> Iterator[WorkBudget]:
    """Give the work inside the block a budget of its own, by default the usual one."""
    budget = WorkBudget(MAX_COMPARISONS if limit is None else limit)
    token = _CURRENT.set(budget)
    try:
        yield budget
    finally:
        _CURRENT.reset(token)


def spend(num_comparisons: int) -> None:
    """Count comparisons before they are made, if a budget is set.

    Raises BudgetSpentError.
    """
    budget = _CURRENT.get()
    if budget is not None:
        budget.spend(num_comparisons)
