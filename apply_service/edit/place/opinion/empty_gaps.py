"""Lowers the weight of placements that leave nothing for the marker between two segments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from apply_service.edit.place.opinion.path_search import PathSearch
from apply_service.edit.place.opinion.placement import Placement
from apply_service.edit.place.opinion.placement_change import change_of
from apply_service.edit.text.line_index import LineIndex

# What a placement loses that leaves nothing for the marker beside it, and one that takes lines away
# that the marker could stand for: of some 1,400 markers between two parts of updates each had some.
EMPTY_GAP_COST = 3.0
TAKEN_GAP_COST = 10.0


def without_empty_gaps(
    candidates: Sequence[Sequence[Placement]], order: Sequence[int], index: LineIndex
) -> list[list[Placement]]:
    """The candidates, with less weight for those that touch the best one of a neighbour.

    Of two neighbours it is the one that loses less by moving. Only where the best path leaves a
    marker nothing. What changes nothing stays as it is: it stands where it stood.
    """
    weighed = [list(one) for one in candidates]
    path = PathSearch([weighed[number] for number in order]).best_path() or ()
    for left, right in pairwise(path):
        if index.num_filled(left.end, right.start):
            continue
        apart_left = [bool(index.num_filled(one.end, right.start)) for one in weighed[left.segment]]
        apart_right = [
            bool(index.num_filled(left.end, one.start)) for one in weighed[right.segment]
        ]
        costs = (
            _cost_of_moving(left, weighed[left.segment], apart_left, index),
            _cost_of_moving(right, weighed[right.segment], apart_right, index),
        )
        moved, are_apart = (left, apart_left) if costs[0] <= costs[1] else (right, apart_right)
        if math.isfinite(min(costs)):
            weighed[moved.segment] = [
                one if is_apart or _is_idle(one, index) else _lighter(one, index)
                for one, is_apart in zip(weighed[moved.segment], are_apart, strict=True)
            ]
    return [sorted(one, key=lambda placement: -placement.weight) for one in weighed]


def _cost_of_moving(
    placement: Placement, others: Sequence[Placement], are_apart: Sequence[bool], index: LineIndex
) -> float:
    """The weight lost by the best candidate that leaves a gap; infinite if there is none."""
    if _is_idle(placement, index):
        return math.inf
    apart = (one.weight for one, is_apart in zip(others, are_apart, strict=True) if is_apart)
    return placement.weight - max(apart, default=-math.inf)


def _lighter(placement: Placement, index: LineIndex) -> Placement:
    if change_of(index.lines[placement.start : placement.end], placement.lines).lost:
        return replace(placement, weight=placement.weight - TAKEN_GAP_COST, is_certain=False)
    if placement.is_certain:
        return placement
    return replace(placement, weight=placement.weight - EMPTY_GAP_COST)


def _is_idle(placement: Placement, index: LineIndex) -> bool:
    return placement.is_idle_in(index.lines)
