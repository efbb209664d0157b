"""Attempts at a result: model rewrites from the narrowest to the whole file, or the merge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from apply_service.apply.outcome import Source
from apply_service.apply.planning.edit_plan import EditPlan
from apply_service.edit.place.merge import MergePlan
from apply_service.edit.place.placement import Placement
from apply_service.edit.regions import Region, cells, choose_regions, estimate_tokens
from apply_service.edit.verdict.verdict import AnswerEnding

if TYPE_CHECKING:  # they are only of what a model is asked, and cost those who ask none
    from apply_service.apply.confidence import Testimony
    from apply_service.apply.region_prompt import RegionPrompt, Scope

# The size of a cell in the grid of each try, and of a region of neighbours, in cells. What a model
# need not copy takes no time and cannot go wrong; see docs/benchmarks.md.
CELL_TOKENS = (20, 60, 250)
MAX_JOINED_CELLS = 2.5
# Every region has a prompt of its own: with more of them a coarser grid is taken.
MAX_REGIONS = 16

Regions = tuple[Region, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt at a result: regions for the model to rewrite, or lines known without a model.

    `regions` of the original are in order and do not overlap; there are none where no model is
    asked. `prompts`, one a region, are set from when they are written until they are answered. The
    attempt `lacks_constraint` if the model writes freely though valid merges were wanted.

    `lines` are those of the whole file, None until there is an answer. `ending` says how the
    answer ended, and `testimony` is the model's judgement of it under a constraint. The attempt
    `is_over_ceiling` if it needs more tokens than the caller allows.
    """

    source: Source
    scope: Scope = "file"
    regions: Regions = ()
    prompts: tuple[RegionPrompt, ...] = ()
    lacks_constraint: bool = False
    lines: tuple[str, ...] | None = None
    ending: AnswerEnding = "complete"
    testimony: Testimony | None = None
    is_over_ceiling: bool = False


def try_merge(plan: EditPlan) -> Attempt | None:
    """The best deterministic merge, or None if there is none."""
    if plan.merge is None or plan.merge.best is None:
        return None
    return Attempt(source="merge", lines=plan.merge.best)


def attempts_of(plan: EditPlan, *, max_region_tokens: int | None) -> Iterator[Attempt]:
    """The model's attempts at an edit, from narrow to wide; none is repeated.

    Where places compete, regions that show all of them come first. `max_region_tokens` is the
    estimated size that a region's prompt should stay under; None is for a model that rewrites
    whole files and is shown a part only where the file does not fit.
    """
    whole = Attempt(source="model", regions=(Region(0, len(plan.original_lines)),))
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
            narrow = Attempt(source="model", scope="region", regions=regions)
            yield whole if is_whole else narrow
    if whole.regions not in tried and (scope == "auto" or not tried):
        yield whole


def _region_choices(plan: EditPlan, max_tokens: int | None) -> Iterator[Regions]:
    """The cells of all likely places; then those of the best ones, in coarser and coarser grids."""
    if plan.merge is None or plan.merge.best is None:
        return
    spans = _spans_of(plan.merge, plan.merge.path())
    placements = {one for number in plan.merge.likely for one in plan.merge.path(number)}
    likely = sorted(placements, key=lambda one: one.layer)
    with_rivals = _spans_of(plan.merge, likely)
    for cell_tokens in CELL_TOKENS:
        grid = cells(plan.original_lines, plan.tree, max_tokens=cell_tokens)
        is_last = cell_tokens == CELL_TOKENS[-1]
        regions = _regions(plan, grid, spans, cell_tokens)
        if len(regions) > MAX_REGIONS and not is_last:
            continue
        if with_rivals:
            contested = _regions(plan, grid, with_rivals, cell_tokens)
            if max_tokens is None or _largest(contested, plan.original_lines) <= max_tokens:
                yield contested
            with_rivals = []
        yield regions


def _regions(
    plan: EditPlan, grid: Sequence[Region], spans: Sequence[tuple[int, int]], cell_tokens: int
) -> Regions:
    limit = int(MAX_JOINED_CELLS * cell_tokens)
    return choose_regions(grid, spans, lines=plan.original_lines, max_tokens=limit)


def _spans_of(merge: MergePlan, placements: Sequence[Placement]) -> list[tuple[int, int]]:
    """The spans that a model has to see: those of the parts as sent, and of each layer.

    The model can choose among the placements of a layer only if one prompt shows them all.
    """
    spans = [_context_span(part.start, part.end) for part in merge.parts]
    for _, group in groupby(placements, key=lambda one: one.layer):
        shown = [_context_span(one.start, one.end) for one in group]
        spans.append((min(start for start, _ in shown), max(end for _, end in shown)))
    return spans


def _context_span(start: int, end: int) -> tuple[int, int]:
    """Replaced lines; for a pure insertion the lines before and after it."""
    return (start, end) if start < end else (max(start - 1, 0), end + 1)


def _largest(regions: Regions, lines: Sequence[str]) -> float:
    """The tokens of the largest region, by estimate."""
    return max(sum(map(estimate_tokens, lines[part.start : part.end])) for part in regions)
