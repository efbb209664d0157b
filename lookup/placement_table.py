"""Placements that can still be taken, and the weight of the best way to place the rest.

The segments left to place are a mask: bit n stands for segment n.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import accumulate
from math import inf

from lookup.constraint import InvalidRulesError, NoPathError
from lookup.merge_rules import GrammarPlacement, MergeRules

MAX_FREE_ENTRANCES = 50_000


@dataclass(frozen=True, slots=True)
class Entrances:
    """Placements that may come next and leave room for all others, by ascending `start`.

    `tracks` are their numbers in the table. `best` is over an entry and all behind
    it: the weight of the heaviest way to place everything left.
    """

    starts: list[int]
    tracks: list[int]
    best: list[float]


NO_ENTRANCES = Entrances([], [], [])


class PlacementTable:
    """All placements in one list, and for every mask that can occur its entrances.

    Segments in any order are free only among those whose places lie in reach of each other; far
    apart, the file decides. So masks are counted per group of neighbours.
    """

    __slots__ = ("_entrances", "_segments", "all_segments", "placements", "segment_of")

    def __init__(self, rules: MergeRules) -> None:
        """Raises `NoPathError`, or `InvalidRulesError` if too much may stand in any order."""
        self.placements: list[GrammarPlacement] = []
        self.segment_of: list[int] = []
        self._segments: list[range] = []
        for number, segment in enumerate(rules.segments):
            first = len(self.placements)
            self.placements += segment.placements
            self.segment_of += [number] * len(segment.placements)
            self._segments.append(range(first, len(self.placements)))
        self.all_segments = (1 << len(rules.segments)) - 1
        self._entrances = {0: NO_ENTRANCES}
        groups = [[number] for number in range(len(rules.segments))]
        if not rules.is_ordered:
            groups = self._neighbours()
            self._check_size(groups)
        self._fill(groups)

    def entrances(self, mask: int) -> Entrances:
        """The placements that may come next if the segments of `mask` are left."""
        return self._entrances[mask]

    def best_from(self, mask: int, line: int) -> float:
        """The weight of the heaviest way to place `mask` at or behind `line`; -inf if none."""
        if not mask:
            return 0.0
        entrances = self._entrances[mask]
        at = bisect_left(entrances.starts, line)
        return entrances.best[at] if at < len(entrances.best) else -inf

    def number_of(self, track: int) -> int:
        """The number of a track's placement within its segment."""
        return track - self._segments[self.segment_of[track]].start

    def _neighbours(self) -> list[list[int]]:
        """Groups of segments, by place: one group's places all end before the next's begin."""

        def reach(number: int) -> tuple[int, int]:
            placements = [self.placements[track] for track in self._segments[number]]
            return min(p.start for p in placements), max(p.end for p in placements)

        groups: list[list[int]] = []
        group_end = -1
        for start, end, number in sorted((*reach(n), n) for n in range(len(self._segments))):
            if groups and start <= group_end:
                groups[-1].append(number)
            else:
                groups.append([number])
            group_end = max(group_end, end)
        return groups

    def _check_size(self, groups: list[list[int]]) -> None:
        for group in groups:
            num_placements = sum(len(self._segments[number]) for number in group)
            num_entrances = num_placements << (len(group) - 1)
            if num_entrances > MAX_FREE_ENTRANCES:
                raise InvalidRulesError(
                    f"{len(group)} segments with {num_placements} placements in any order make "
                    f"{num_entrances} entrances, the limit is {MAX_FREE_ENTRANCES}; "
                    "give fewer placements or keep the order"
                )

    def _fill(self, groups: list[list[int]]) -> None:
        """Entrances of every mask, from the last group to the first, small masks first."""
        later = 0
        for group in reversed(groups):
            for chosen in range(1, 1 << len(group)):
                left = [number for bit, number in enumerate(group) if chosen >> bit & 1]
                mask = later | sum(1 << number for number in left)
                self._entrances[mask] = self._feasible(mask, left)
            later |= sum(1 << number for number in group)
            if not self._entrances[later].starts:
                raise NoPathError(
                    f"segments {sorted(group)} cannot all be placed before those that follow; "
                    "give them more placements, or leave out what contradicts"
                )

    def _feasible(self, mask: int, next_segments: list[int]) -> Entrances:
        """Placements of `next_segments` that leave room for the rest of `mask`."""
        found: list[tuple[int, int, float]] = []
        for number in next_segments:
            rest = mask & ~(1 << number)
            for track in self._segments[number]:
                placement = self.placements[track]
                after = self.best_from(rest, placement.end)
                if after > -inf:
                    weight = placement.weight + best_omissions(placement) + after
                    found.append((placement.start, track, weight))
        found.sort()
        return Entrances(
            starts=[start for start, _, _ in found],
            tracks=[track for _, track, _ in found],
            best=list(accumulate((weight for _, _, weight in reversed(found)), max))[::-1],
        )


def best_omissions(placement: GrammarPlacement) -> float:
    """The most weight that leaving out its optional lines can add."""
    if not placement.optional:
        return 0.0
    return max(0.0, placement.omission_weight) * sum(map(bool, placement.optional))
