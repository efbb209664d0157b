"""Paths through the placements of all segments: the best, the next best, how many there are."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from apply_service.edit.place.opinion.placement import Placement
from apply_service.edit.text.work_budget import spend

NO_PATH = float("-inf")
# Paths are counted up to here.
MAX_COUNTED = 1_000_000
# Sums of the same weights in another order are the same to this many decimals.
_DECIMALS = 6


@dataclass(frozen=True, slots=True)
class _Layer:
    """The placements of one segment by rising start.

    `best[i]` is the weight of the best way on from the placements `i` and later, `counts[i]` how
    many ways there are.
    """

    placements: tuple[Placement, ...]
    starts: tuple[int, ...]
    best: tuple[float, ...]
    counts: tuple[int, ...]

    def first_from(self, place: int) -> int:
        """The first placement that starts at `place` or behind it."""
        return bisect_left(self.starts, place)


class _Walk(NamedTuple):
    """The beginning of a path; sorted by the weight it can reach, then the longest first.

    `order` is that weight, negative, and `depth` the number of placements, negative; `number`
    keeps the rest from being compared.
    """

    order: float
    depth: int
    number: int
    reached: float
    placement: Placement | None
    previous: _Walk | None

    def path(self) -> tuple[Placement, ...]:
        """The placements from the first on."""
        placements: list[Placement] = []
        walk: _Walk | None = self
        while walk is not None:
            if walk.placement is not None:
                placements.append(walk.placement)
            walk = walk.previous
        return tuple(reversed(placements))


class PathSearch:
    """Choices of one placement a segment that rise and do not overlap.

    `layers` are the placements a segment, segments in the order of the file.
    """

    def __init__(self, layers: Sequence[Sequence[Placement]]) -> None:
        self._layers: list[_Layer] = []
        for placements in reversed(layers):
            self._layers.append(self._layer(placements))
        self._layers.reverse()

    def _layer(self, placements: Sequence[Placement]) -> _Layer:
        ordered = tuple(sorted(placements, key=lambda one: (one.start, one.end)))
        best, counts = [NO_PATH], [0]
        for placement in reversed(ordered):
            weight, count = self._onward(placement.end)
            best.append(max(best[-1], placement.weight + weight))
            counts.append(min(counts[-1] + count, MAX_COUNTED))
        starts = tuple(placement.start for placement in ordered)
        return _Layer(ordered, starts, tuple(best[::-1]), tuple(counts[::-1]))

    def _onward(self, place: int) -> tuple[float, int]:
        """Weight of the best way, and number of ways, through the layers built so far."""
        if not self._layers:
            return 0.0, 1
        layer = self._layers[-1]
        first = layer.first_from(place)
        return layer.best[first], layer.counts[first]

    @property
    def num_paths(self) -> int:
        """How many paths there are, counted up to `MAX_COUNTED`."""
        return self._layers[0].counts[0] if self._layers else 1

    @property
    def best_weight(self) -> float:
        """The weight of the best path, minus infinity without any."""
        return self._layers[0].best[0] if self._layers else 0.0

    def best_path(self) -> tuple[Placement, ...] | None:
        """The heaviest path, or None."""
        if self.best_weight == NO_PATH:
            return None
        path: list[Placement] = []
        place = 0
        for depth in range(len(self._layers)):
            heaviest = max(self._steps(depth, place), key=lambda step: step[0].weight + step[1])
            path.append(heaviest[0])
            place = heaviest[0].end
        return tuple(path)

    def paths(self) -> Iterator[tuple[Placement, ...]]:
        """All paths, the heaviest first."""
        first = self.best_path()
        if first is None:
            return
        yield first
        number = 0
        queue = [_Walk(-round(self.best_weight, _DECIMALS), 0, number, 0.0, None, None)]
        while queue:
            walk = heapq.heappop(queue)
            if -walk.depth == len(self._layers):
                path = walk.path()
                if path != first:
                    yield path
                continue
            place = walk.placement.end if walk.placement is not None else 0
            spend(1 + len(self._layers[-walk.depth].placements))
            for placement, onward in self._steps(-walk.depth, place):
                number += 1
                reached = walk.reached + placement.weight
                order = -round(reached + onward, _DECIMALS)
                heapq.heappush(
                    queue, _Walk(order, walk.depth - 1, number, reached, placement, walk)
                )

    def _steps(self, depth: int, place: int) -> Iterator[tuple[Placement, float]]:
        layer = self._layers[depth]
        for placement in layer.placements[layer.first_from(place) :]:
            if depth + 1 == len(self._layers):
                yield placement, 0.0
                continue
            following = self._layers[depth + 1]
            onward = following.best[following.first_from(placement.end)]
            if onward > NO_PATH:
                yield placement, onward
