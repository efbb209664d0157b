"""What drafts have cost and brought lately, so that guesses about them cannot lose much time."""

from __future__ import annotations

# Bounds of the balance. What was gained long ago does not pay for losses now, and a workload that
# has become good again need not make up for a whole day.
_MOST, _LEAST = 1.0, -1.0


class DraftAccount:
    """A balance in steps: tokens that held, less the time that drafts took.

    One step is the time that the step at hand would take without drafts; a token that holds is
    worth its share of it. Drafts may be long while the balance is above 0; below, only probes are
    paid for, and those that hold bring it back.
    """

    def __init__(self) -> None:
        self._balance = _MOST
        self._token_worth = 0.0

    @property
    def is_open(self) -> bool:
        """Whether drafts have paid for themselves so far."""
        return self._balance > 0.0

    def charge(self, extra_ms: float, *, step_ms: float, num_certain: int, income: float) -> None:
        """A step of `step_ms` and `num_certain` tokens takes `extra_ms` longer for its drafts.

        `income` is the part of a step that may be lost anyway.
        """
        self._token_worth = 1.0 / num_certain
        self._add(income - extra_ms / step_ms)

    def earn(self, num_tokens: int) -> None:
        """So many drafted tokens of the step that was charged last have held."""
        self._add(num_tokens * self._token_worth)

    def _add(self, num_steps: float) -> None:
        self._balance = min(max(self._balance + num_steps, _LEAST), _MOST)
