"""A marker between two segments stands for something: hardly do they follow one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from apply_service.edit.line_index import LineIndex
from apply_service.edit.path_search import PathSearch
from apply_service.edit.placement import Placement

# What a placement loses that leaves nothing for the marker beside it.
EMPTY_GAP_COST = 3.0


def without_empty_gaps(
    candidates: Sequence[Sequence[Placement]], order: Sequence[int], index: LineIndex
) -> list[list[Placement]]:
    """The candidates of all segments, those lighter that touch the best ones of the neighbours.

    Only where the best path leaves a marker nothing. What is certain stays as it is, and so does
    what changes nothing: it stands where it stood.
    """
    weighed = [list(one) for one in candidates]
    path = PathSearch([weighed[number] for number in order]).best_path() or ()
    for left, right in pairwise(path):
        if index.num_filled(left.end, right.start):
            continue
        weighed[left.segment] = [
            _lighter(one, index, touches=not index.num_filled(one.end, right.start))
            for one in weighed[left.segment]
        ]
        weighed[right.segment] = [
            _lighter(one, index, touches=not index.num_filled(left.end, one.start))
            for one in weighed[right.segment]
        ]
    return [sorted(one, key=lambda placement: -placement.weight) for one in weighed]


def _lighter(placement: Placement, index: LineIndex, *, touches: bool) -> Placement:
    is_idle = placement.lines == tuple(index.lines[placement.start : placement.end])
    if placement.is_certain or is_idle or not touches:
        return placement
    return replace(placement, weight=placement.weight - EMPTY_GAP_COST)
