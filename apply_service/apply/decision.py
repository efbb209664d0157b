"""A choice that a model made under a constraint, in a form for people to read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Branch:
    """One branch of a decision: the line that it writes there, and the source of the line.

    `probability` is the branch's share of all that was allowed.
    """

    text: str
    origin: str
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A choice that the model made among valid merges.

    `line` is that of the result, from 1; the likelier alternatives come first. `outside_mass` is
    the probability of everything that was not allowed.
    """

    line: int
    chosen: Branch
    alternatives: tuple[Branch, ...]
    outside_mass: float

    @property
    def probability(self) -> float:
        """The probability of the branch taken, among the allowed ones."""
        return self.chosen.probability
