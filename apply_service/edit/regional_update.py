"""Rewrites an update for one part of a file: only the segments that are placed there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apply_service.edit.place.placement import MergePath, Placement, RemovedSpan
from apply_service.edit.place.splice import splice
from apply_service.edit.read.marker_phrases import usual_marker
from apply_service.edit.read.markers import MarkerReader
from apply_service.edit.regions import Region

if TYPE_CHECKING:
    from apply_service.edit.place.merge import MergePlan

# Merges that are looked at, the best one included, for one with another text.
MAX_RIVAL_PATHS = 5


@dataclass(frozen=True, slots=True)
class RegionalUpdate:
    """The edit as the prompt of one region states it.

    `lines` is the update with markers, `segments` its text without them, `predicted` the region
    as the deterministic merge would leave it.
    """

    lines: tuple[str, ...]
    segments: tuple[tuple[str, ...], ...]
    predicted: tuple[str, ...]


def regional_update(
    original_lines: Sequence[str],
    path: MergePath,
    region: Region,
    *,
    marker: str,
    directives: Sequence[str] = (),
) -> RegionalUpdate:
    """The part of a merge that falls into one region, as an update of that region.

    Every placement and removal of `path` must lie inside the region or wholly outside it.
    `directives` are the removal directives of `path.removed`; several may come from one line.
    """
    pieces: list[tuple[int, int, tuple[str, ...], bool]] = [
        (placement.start, placement.end, placement.lines, False)
        for placement in path.placements
        if _is_inside(placement, region)
    ]
    pieces += [
        (removed.start, removed.end, (directive,), True)
        for removed, directive in zip(path.removed, directives, strict=True)
        if _is_inside(removed, region)
    ]
    pieces.sort(key=lambda piece: piece[:2])
    lines: list[str] = []
    predicted: list[str] = []
    position = region.start
    for start, end, text, is_removal in pieces:
        if start > position:
            lines.append(marker)
        if not is_removal or lines[-1:] != list(text):
            lines.extend(text)
        predicted.extend(original_lines[position:start])
        predicted.extend(() if is_removal else text)
        position = max(position, end)
    if position < region.end:
        lines.append(marker)
    predicted.extend(original_lines[position : region.end])
    segments = tuple(text for _, _, text, is_removal in pieces if text and not is_removal)
    return RegionalUpdate(tuple(lines), segments, tuple(predicted))


def predicted_rival(plan: MergePlan, region: Region) -> tuple[str, ...]:
    """The second-likeliest merge of a region: the likeliest one with a different text.

    Empty if there is only one merge, or if none of the next few merges keeps to the region.
    """
    if plan.is_unique:
        return ()
    texts = [_merged_region(plan, path, region) for path in plan.paths(MAX_RIVAL_PATHS)]
    return next((text for text in texts[1:] if text and text != texts[0]), ())


def _merged_region(plan: MergePlan, path: MergePath, region: Region) -> tuple[str, ...]:
    """The text of a region in one merge; empty if a change crosses the region's borders."""
    changes: tuple[Placement | RemovedSpan, ...] = (*path.placements, *path.removed)
    if any(
        one.start < border < one.end for one in changes for border in (region.start, region.end)
    ):
        return ()
    inside = MergePath(
        placements=tuple(one for one in path.placements if _is_inside(one, region)),
        removed=tuple(one for one in path.removed if _is_inside(one, region)),
    )
    merged = splice(plan.original_lines, inside)
    return tuple(merged[region.start : len(merged) - len(plan.original_lines) + region.end])


def _is_inside(change: Placement | RemovedSpan, region: Region) -> bool:
    return region.start <= change.start and change.end <= region.end


def marker_of(
    update_lines: Sequence[str], original_lines: Sequence[str], language: str | None
) -> str:
    """The marker that the update itself uses, or else the usual one of the language."""
    reader = MarkerReader(original_lines)
    for line in update_lines:
        marker = reader.read(line)
        if marker is not None and marker.kind == "keep":
            return line.strip()
    return usual_marker(language)
