"""What a merge writes in one place of the original."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """`lines` stand in the place of lines `[start, end)` of the original, counted from 0.

    `layer` is the number of the change in the file.
    """

    layer: int
    start: int
    end: int
    lines: tuple[str, ...]

    def is_inside(self, start: int, end: int) -> bool:
        """Whether it keeps to lines `[start, end)`."""
        return start <= self.start and self.end <= end


def splice(original_lines: Sequence[str], placements: Iterable[Placement]) -> list[str]:
    """The original with placements, in order; all other lines stay."""
    merged: list[str] = []
    place = 0
    for placement in placements:
        merged += original_lines[place : placement.start]
        merged += placement.lines
        place = placement.end
    return merged + list(original_lines[place:])
