"""Paths through the placements of all segments: the best, the next best, how many there are."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apply_service.edit.placement import Placement

NO_PATH = float("-inf")


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
            counts.append(counts[-1] + count)
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
        """How many paths there are."""
        return self._layers[0].counts[0] if self._layers else 1

    @property
    def best_weight(self) -> float:
        """The weight of the best path, minus infinity without any."""
        return self._layers[0].best[0] if self._layers else 0.0

    def paths(self) -> Iterator[tuple[Placement, ...]]:
        """All paths, the heaviest first."""
        queue: list[tuple[float, int, float, tuple[Placement, ...]]] = []
        number = 0
        if self.best_weight > NO_PATH:
            queue.append((-self.best_weight, number, 0.0, ()))
        while queue:
            _, _, weight, path = heapq.heappop(queue)
            if len(path) == len(self._layers):
                yield path
                continue
            place = path[-1].end if path else 0
            for placement, onward in self._steps(len(path), place):
                number += 1
                reached = weight + placement.weight
                heapq.heappush(queue, (-reached - onward, number, reached, (*path, placement)))

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
