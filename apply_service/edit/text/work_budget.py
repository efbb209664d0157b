"""Limits what an edit may cost by count instead of time, so the result is the same anywhere.

BudgetSpentError is raised where the work is done and caught where an answer can be given:
a plan becomes a question, a verdict asks for review. TextTooLargeError refuses the edit.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

# A comparison is what a microsecond or two are enough for on a slow machine. Of the case files
# no plan takes more than a thirtieth of this.
MAX_COMPARISONS = 3_000_000
# Texts of an edit that are held at once.
MAX_TEXTS = 8
# Lines take memory and time however short they are.
CHARACTERS_PER_LINE = 16


class BudgetSpentError(Exception):
    """An edit would take more comparisons than allowed."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"the edit takes more than {limit} comparisons")
        self.limit = limit

    def __reduce__(self) -> tuple[type[BudgetSpentError], tuple[int]]:
        """The error's form between processes."""
        return type(self), (self.limit,)


class TextTooLargeError(Exception):
    """A text that an edit stands for has more of a `unit` than allowed; it was not written."""

    def __init__(self, value: int, unit: str, limit: int) -> None:
        super().__init__(value, unit, limit)
        self.value = value
        self.unit = unit
        self.limit = limit


@dataclass(slots=True)
class WorkBudget:
    """The comparisons that one stage of an edit may make, and those that it has made.

    `max_characters` bounds each text that is written from less: by repetition or indentation.
    """

    limit: int
    num_spent: int = 0
    max_characters: int | None = None
    num_added: int = 0

    def spend(self, num_comparisons: int) -> None:
        """Count comparisons before they are made. Raises BudgetSpentError beyond the limit."""
        self.num_spent += num_comparisons
        if self.num_spent > self.limit:
            raise BudgetSpentError(self.limit)

    def check_size(self, num_characters: int, num_lines: int = 0) -> None:
        """Check a text before it is written. Raises TextTooLargeError beyond `max_characters`."""
        if self.max_characters is None:
            return
        if num_characters > self.max_characters:
            raise TextTooLargeError(num_characters, "characters", self.max_characters)
        if num_lines > self.max_characters // CHARACTERS_PER_LINE:
            limit = self.max_characters // CHARACTERS_PER_LINE
            raise TextTooLargeError(num_lines, "lines", limit)

    def add(self, num_characters: int) -> None:
        """Count what is added to lines, for `MAX_TEXTS` texts. Raises TextTooLargeError."""
        self.num_added += num_characters
        self.check_size(self.num_added // MAX_TEXTS)


# Follows a stage through its functions; set by `limited_work` alone.
_CURRENT: ContextVar[WorkBudget | None] = ContextVar("work_budget", default=None)


@contextmanager
def limited_work(
    limit: int | None = None, *, max_characters: int | None = None
) -> Iterator[WorkBudget]:
    """Give the work inside the block a budget of its own, by default the usual one."""
    budget = WorkBudget(MAX_COMPARISONS if limit is None else limit, max_characters=max_characters)
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


def check_size(num_characters: int, num_lines: int = 0) -> None:
    """Check a text before it is written from less. Raises TextTooLargeError."""
    budget = _CURRENT.get()
    if budget is not None:
        budget.check_size(num_characters, num_lines)


def add_characters(num_characters: int) -> None:
    """Count what indentation adds before it is written. Raises TextTooLargeError."""
    budget = _CURRENT.get()
    if budget is not None:
        budget.add(num_characters)
