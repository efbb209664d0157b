"""How sure the model was of a merge, from the evidence that a constraint collects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from batching.events import RowEvidence


@dataclass(frozen=True, slots=True)
class Decision:
    """A choice that the model made among valid merges.

    `line` is that of the result, from 1; `chosen` and `alternatives` are lines as text.
    `probability` is that of the branch taken among the allowed ones, `outside_mass` that of
    everything that was not allowed.
    """

    line: int
    chosen: str
    alternatives: tuple[str, ...]
    probability: float
    outside_mass: float


def branch_probability(row: RowEvidence) -> float:
    """The probability of the token taken, normalised over those that were allowed."""
    largest = max(row.logprobs)
    weights = [math.exp(logprob - largest) for logprob in row.logprobs]
    return weights[row.allowed_token_ids.index(row.token_id)] / sum(weights)


def confidence_of(evidence: Sequence[RowEvidence]) -> float:
    """The least probability of a branch over all decisions; 1 where there was none."""
    decided = [branch_probability(row) for row in evidence if row.is_decision]
    return min(decided, default=1.0)


def disagreement_of(evidence: Sequence[RowEvidence]) -> float:
    """The largest probability that the model gave to what was not allowed."""
    return max((row.outside_mass for row in evidence), default=0.0)
