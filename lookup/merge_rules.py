"""The rules of a merge grammar: lines as token ids, and the places of each segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

from lookup.constraint import InvalidRulesError


@dataclass(frozen=True, slots=True, kw_only=True)
class GrammarPlacement:
    """One place of a segment: `lines` replace lines `[start, end)` of the original.

    `weight` is the logarithm of an odds, summed over a path. Where `optional` (one entry a line)
    is true the line may be left out; each line left out adds `omission_weight`.
    """

    start: int
    end: int
    lines: Sequence[Sequence[int]]
    weight: float = 0.0
    optional: Sequence[bool] | None = None
    omission_weight: float = 0.0


@dataclass(frozen=True, slots=True)
class GrammarSegment:
    """One segment of the snippet; exactly one of its placements is taken."""

    placements: Sequence[GrammarPlacement]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeRules:
    """The valid merges of an original and a snippet, as token ids.

    A valid merge is the original with a span of every segment replaced by the segment's lines.
    Spans do not overlap, but may touch. They follow each other in the order of the segments, or,
    unless `is_ordered`, in any order (equal empty spans then in either). Lines `[start, end)` of
    `removed` are cut out wherever no segment replaces them. `end_token_ids` close the answer.
    A line is never empty: it holds at least its newline. Bytes serve as token ids as well.
    `prior_scale` is how much the weights count at a decision beside the model's log-probabilities.
    """

    original: Sequence[Sequence[int]]
    segments: Sequence[GrammarSegment] = ()
    removed: Sequence[tuple[int, int]] = ()
    end_token_ids: Sequence[int] = ()
    is_ordered: bool = True
    prior_scale: float = 0.0

    def check(self) -> None:
        """Raise `InvalidRulesError` if lines are empty or spans lie outside of the original."""
        num_lines = len(self.original)
        if not (isfinite(self.prior_scale) and self.prior_scale >= 0):
            raise InvalidRulesError(
                f"prior_scale is {self.prior_scale}; it must be finite and not below 0"
            )
        if not all(self.original):
            number = next(at for at, line in enumerate(self.original) if not line)
            raise InvalidRulesError(f"line {number} of the original has no token; give its newline")
        for start, end in self.removed:
            if not 0 <= start <= end <= num_lines:
                raise InvalidRulesError(_outside(f"removed span [{start}, {end})", num_lines))
        for number, segment in enumerate(self.segments):
            if not segment.placements:
                raise InvalidRulesError(f"segment {number} has no placement; give at least one")
            for placement in segment.placements:
                _check_placement(placement, number, num_lines)


def _check_placement(placement: GrammarPlacement, segment: int, num_lines: int) -> None:
    where = f"placement [{placement.start}, {placement.end}) of segment {segment}"
    if not 0 <= placement.start <= placement.end <= num_lines:
        raise InvalidRulesError(_outside(where, num_lines))
    if not all(placement.lines):
        raise InvalidRulesError(f"{where} has a line without a token; give its newline")
    if not (isfinite(placement.weight) and isfinite(placement.omission_weight)):
        raise InvalidRulesError(
            f"{where} weighs {placement.weight} and {placement.omission_weight} a line left out; "
            "weights must be finite"
        )
    if placement.optional is not None and len(placement.optional) != len(placement.lines):
        raise InvalidRulesError(
            f"{where} has {len(placement.optional)} flags for {len(placement.lines)} lines; "
            "give one a line"
        )


def _outside(where: str, num_lines: int) -> str:
    return f"{where} is not within the {num_lines} lines of the original; clip it"
