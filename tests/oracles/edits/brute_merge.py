"""All valid merges of a small original, by trying every place for every segment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement, pairwise, product

from oracles.edits.valid_merge import ValidPlaces

from apply_service.edit.place.placement import Placement


def valid_spans(
    original: Sequence[str],
    segment: Sequence[str],
    *,
    is_first: bool = False,
    is_last: bool = False,
) -> set[tuple[int, int]]:
    """Every `(start, end)` that is valid for one segment."""
    places = ValidPlaces(original, segment, is_first=is_first, is_last=is_last)
    borders = range(len(original) + 1)
    return {
        (start, end)
        for start, end in combinations_with_replacement(borders, 2)
        if places.is_valid(start, end)
    }


def all_paths(layers: Sequence[Sequence[Placement]]) -> Iterator[tuple[Placement, ...]]:
    """Every choice of one placement a segment that rises and does not overlap."""
    for path in product(*layers):
        if all(left.end <= right.start for left, right in pairwise(path)):
            yield path


def result_of(original: Sequence[str], path: Sequence[Placement]) -> tuple[str, ...]:
    """The original with the lines of each placement in their place, line by line."""
    result: list[str] = []
    for border in range(len(original) + 1):
        for placement in path:
            if placement.start == border:
                result.extend(placement.lines)
        is_gone = any(one.start <= border < one.end for one in path)
        if border < len(original) and not is_gone:
            result.append(original[border])
    return tuple(result)
