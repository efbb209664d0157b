"""Where a segment goes: the lines of the original that give way to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

# A place that fits this much worse than the best one is no choice: it is not offered to a model.
MAX_WEIGHT_GAP = 8.0

PlacementReason = Literal["explicit", "context", "symbol", "similar", "order", "border", "variant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Segment `segment` stands in the place of lines `[start, end)` of the original (from 0).

    `lines` is the segment as it will be written there, re-indented if need be. `weight` is how
    well it fits: the logarithm of an odds, to be added up and compared within one request only.
    `is_certain` says that this place is decided by anchors alone: no other place comes near, and
    no more than a few original lines are dropped between two adjacent lines of the segment.
    `features` are what the weight of a lazy segment was made of, and where it is not far behind
    the best what else is known of it (`placement_features`).
    """

    segment: int
    start: int
    end: int
    lines: tuple[str, ...]
    weight: float
    reason: PlacementReason
    is_certain: bool = False
    features: tuple[float, ...] = field(default=(), compare=False, repr=False)

    def is_idle_in(self, original_lines: Sequence[str]) -> bool:
        """Whether it leaves the original as it is."""
        return list(self.lines) == list(original_lines[self.start : self.end])

    def makes_same_text(self, other: Placement, original_lines: Sequence[str]) -> bool:
        """Whether another placement gives the same text, but for blank lines."""
        low, high = min(self.start, other.start), max(self.end, other.end)

        def made(placement: Placement) -> list[str]:
            before = original_lines[low : placement.start]
            behind = original_lines[placement.end : high]
            return [line for line in (*before, *placement.lines, *behind) if line.strip()]

        return made(self) == made(other)


@dataclass(frozen=True, slots=True)
class RemovedSpan:
    """Lines `[start, end)` of the original that a removal directive takes away."""

    start: int
    end: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePath:
    """One valid merge: a placement for every segment, in the order of the file."""

    placements: tuple[Placement, ...]
    removed: tuple[RemovedSpan, ...] = ()

    @property
    def weight(self) -> float:
        """How well the path fits as a whole."""
        return sum(placement.weight for placement in self.placements)
