"""A choice that a model made under a constraint, as a person reads it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Branch:
    """One way on from a decision: the line that it writes there, and where that comes from.

    `probability` is that of this way among all that were allowed. `same_text_share` is how much of
    it is for results that differ from the one taken in blank lines only.
    """

    text: str
    origin: str
    probability: float
    same_text_share: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A choice that the model made among valid merges.

    `line` is that of the result, from 1; the likelier alternatives come first. `outside_mass` is
    the probability of everything that was not allowed. `segments` of the update had their place at
    stake.
    """

    line: int
    chosen: Branch
    alternatives: tuple[Branch, ...]
    outside_mass: float
    segments: frozenset[int]

    @property
    def probability(self) -> float:
        """Of the way taken, among those that were allowed."""
        return self.chosen.probability

    @property
    def certainty(self) -> float:
        """Of the way taken and of those that differ from it in blank lines only, together."""
        same = sum(branch.probability * branch.same_text_share for branch in self.alternatives)
        return min(self.probability + same, 1.0)
