"""A choice that a model made under a constraint, in a form for people to read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Branch:
    """One branch of a decision: the line that it writes there, and the source of the line.

    `probability` is the branch's share of all that was allowed. `same_text_share` is the part of
    it for results that differ from the one taken in blank lines only.
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
        """The probability of the branch taken, among the allowed ones."""
        return self.chosen.probability

    @property
    def certainty(self) -> float:
        """The probability of the branch taken plus those that differ only in blank lines."""
        same = sum(branch.probability * branch.same_text_share for branch in self.alternatives)
        return min(self.probability + same, 1.0)
