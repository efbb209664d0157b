"""Keeps the lines around a directive, because they say where the removed definition stood."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace

from apply_service.edit.place.opinion.placement import Placement, RemovedSpan
from apply_service.edit.read.segment import Removal
from apply_service.edit.text.line_index import LineIndex

# How far a segment that adjoins what is removed, and changes nothing, is ahead of other places.
ADJOINING_GAIN = 8.0


def with_removal_context(
    candidates: Sequence[Sequence[Placement]],
    removals: Iterable[Removal],
    removed: Sequence[RemovedSpan],
    index: LineIndex,
) -> list[list[Placement]]:
    """The candidates of all segments; beside a directive its context is certain.

    That is a segment that stands in the original just as it is, next to the lines of `removed`.
    """
    befores = {removal.before_segment - 1 for removal in removals}
    starts, ends = [span.start for span in removed], [span.end for span in removed]
    settled: list[list[Placement]] = []
    for number, layer in enumerate(candidates):
        context = [
            one
            for one in layer
            if one.is_idle_in(index.lines)
            and (
                (number in befores and _is_above(one.end, starts, index))
                or (number - 1 in befores and _is_below(one.start, ends, index))
            )
        ]
        settled.append(_ahead(context[0], layer) if context else list(layer))
    return settled


def _is_above(border: int, starts: Sequence[int], index: LineIndex) -> bool:
    """Whether only blank lines stand between `border` and the next of the rising `starts`."""
    place = bisect_left(starts, border)
    return place < len(starts) and not index.num_filled(border, starts[place])


def _is_below(border: int, ends: Sequence[int], index: LineIndex) -> bool:
    """Whether only blank lines stand between the last of the rising `ends` and `border`."""
    place = bisect_right(ends, border) - 1
    return place >= 0 and not index.num_filled(ends[place], border)


def _ahead(first: Placement, layer: Sequence[Placement]) -> list[Placement]:
    """The placements of a segment with `first` ahead of all others."""
    weight = max(one.weight for one in layer) + ADJOINING_GAIN
    others = [replace(one, is_certain=False) for one in layer if one is not first]
    return [replace(first, weight=weight, is_certain=True), *others]
