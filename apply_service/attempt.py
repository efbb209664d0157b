"""Which part of a file the model is asked to rewrite: first the least, then more, last all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from apply_service.edit.placement import MergePath, Placement
from apply_service.edit.regions import Region, cells, choose_regions, estimate_tokens
from apply_service.edit_plan import EditPlan

# A rival place is shown to the model if it fits almost as well as the best one.
MAX_RIVALS = 4
RIVAL_MARGIN = 3.0

Regions = tuple[Region, ...]


@dataclass(frozen=True, slots=True)
class Attempt:
    """Regions of the original, in order and apart, that one try rewrites."""

    scope: Literal["file", "region"]
    regions: Regions


def attempts_of(plan: EditPlan, *, max_region_tokens: int | None) -> Iterator[Attempt]:
    """The tries that an edit is worth, from the least text to the file; none is repeated.

    Where places compete, one region with all of them comes first. `max_region_tokens` is what the
    prompt of a region should stay under, by estimate; None is for a model that rewrites whole
    files and is shown a part only where the file does not fit.
    """
    whole = Attempt("file", (Region(0, len(plan.original_lines)),))
    scope = plan.edit.scope
    if scope == "file":
        yield whole
        return
    tried = set[Regions]()
    if scope == "auto" and max_region_tokens is None:
        tried.add(whole.regions)
        yield whole
    for regions in _region_choices(plan, max_region_tokens):
        if regions not in tried:
            tried.add(regions)
            is_whole = regions == whole.regions and scope == "auto"
            yield whole if is_whole else Attempt("region", regions)
    if whole.regions not in tried and (scope == "auto" or not tried):
        yield whole


def _region_choices(plan: EditPlan, max_tokens: int | None) -> Iterator[Regions]:
    """The cells of all likely places, of the best ones if that is much; then their neighbours."""
    path = None if plan.merge is None else plan.merge.best
    if plan.merge is None or path is None:
        return
    lines = plan.original_lines
    grid = cells(lines, plan.tree)
    spans = _spans_of(path)
    regions = choose_regions(grid, spans, lines=lines)
    rivals = [
        _context_span(rival)
        for placement in path.placements
        if not placement.is_certain
        for rival in plan.merge.candidates[placement.segment][:MAX_RIVALS]
        if rival.weight > placement.weight - RIVAL_MARGIN
    ]
    if rivals:
        # The model can choose a place only if one prompt shows them all.
        all_spans = [*spans, *rivals]
        hull = (min(start for start, _ in all_spans), max(end for _, end in all_spans))
        contested = choose_regions(grid, [hull], lines=lines)
        if max_tokens is None or _num_tokens(contested, lines) <= max_tokens:
            yield contested
    yield regions
    yield choose_regions(grid, _with_neighbours(regions, grid), lines=lines)


def _spans_of(path: MergePath) -> list[tuple[int, int]]:
    removed = [(span.start, span.end) for span in path.removed]
    return [*map(_context_span, path.placements), *removed]


def _context_span(placement: Placement) -> tuple[int, int]:
    """The lines that give way; a pure insertion shows the lines that it stands between."""
    if placement.start < placement.end:
        return placement.start, placement.end
    return max(placement.start - 1, 0), placement.end + 1


def _num_tokens(regions: Regions, lines: Sequence[str]) -> float:
    return sum(estimate_tokens(line) for part in regions for line in lines[part.start : part.end])


def _with_neighbours(regions: Regions, grid: Sequence[Region]) -> list[tuple[int, int]]:
    """The regions with one more cell on both sides, each as one span."""
    return [
        (
            min([cell.start for cell in grid if cell.end == region.start], default=region.start),
            max([cell.end for cell in grid if cell.start == region.end], default=region.end),
        )
        for region in regions
    ]
