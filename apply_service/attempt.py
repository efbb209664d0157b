"""Which part of a file the model is asked to rewrite: first the least, then more, last all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from apply_service.edit.merge import MergePlan
from apply_service.edit.placement import Placement
from apply_service.edit.regions import Region, cells, choose_regions
from apply_service.edit_plan import EditPlan

Scope = Literal["file", "region"]

# A rival place is shown to the model if it fits almost as well as the best one.
MAX_RIVALS = 4
RIVAL_MARGIN = 3.0


@dataclass(frozen=True, slots=True)
class Attempt:
    """Regions of the original, in order and apart, that one try rewrites."""

    scope: Scope
    regions: tuple[Region, ...]


def attempts_of(plan: EditPlan) -> Iterator[Attempt]:
    """The tries that an edit is worth, each wider than the one before; none is repeated.

    With scope "auto" small files and those where no place was found are rewritten whole.
    """
    whole = Attempt("file", (Region(0, len(plan.original_lines)),))
    scope = plan.edit.scope
    grid = () if scope == "file" else cells(plan.original_lines, plan.tree)
    tried: list[Attempt] = []
    for regions in _region_choices(plan.merge, grid):
        is_whole = regions == whole.regions and scope == "auto"
        attempt = whole if is_whole else Attempt("region", regions)
        if attempt not in tried:
            tried.append(attempt)
            yield attempt
    if whole not in tried and (scope != "region" or not tried):
        yield whole


def _region_choices(
    merge: MergePlan | None, grid: Sequence[Region]
) -> Iterator[tuple[Region, ...]]:
    """The cells that the places touch, those of near rivals as well; then their neighbours."""
    if merge is None or merge.best is None or not grid:
        return
    spans = [_context_span(placement) for placement in merge.best.placements]
    spans += [(removed.start, removed.end) for removed in merge.best.removed]
    rivals = [
        _context_span(rival)
        for placement in merge.best.placements
        if not placement.is_certain
        for rival in merge.candidates[placement.segment][:MAX_RIVALS]
        if rival.weight > placement.weight - RIVAL_MARGIN
    ]
    regions = tuple(choose_regions(grid, [*spans, *rivals]))
    yield regions
    yield tuple(choose_regions(grid, _with_neighbours(regions, grid)))


def _context_span(placement: Placement) -> tuple[int, int]:
    """The lines that give way; a pure insertion shows the lines that it stands between."""
    if placement.start < placement.end:
        return placement.start, placement.end
    return max(placement.start - 1, 0), placement.end + 1


def _with_neighbours(
    regions: Sequence[Region], grid: Sequence[Region]
) -> list[tuple[int, int]]:
    """The regions with one more cell on both sides."""
    spans = [(region.start, region.end) for region in regions]
    for cell in grid:
        if any(cell.end == start or cell.start == end for start, end in spans[: len(regions)]):
            spans.append((cell.start, cell.end))
    return spans
