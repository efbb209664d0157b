"""Cuts an update and its merges down to one part of a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apply_service.edit.place.placement import Placement, splice
from apply_service.edit.place.sent_part import SentPart
from apply_service.edit.read.marker_phrases import usual_marker
from apply_service.edit.read.markers import MarkerReader
from apply_service.edit.regions import Region

if TYPE_CHECKING:
    from apply_service.edit.place.merge import MergePlan


@dataclass(frozen=True, slots=True)
class RegionalUpdate:
    """The edit as the prompt of one region states it.

    `lines` is the update with markers, `segments` its text without them.
    """

    lines: tuple[str, ...]
    segments: tuple[tuple[str, ...], ...]


def regional_update(parts: Sequence[SentPart], region: Region, *, marker: str) -> RegionalUpdate:
    """The parts that stand in one region, as an update of that region.

    Every part must lie inside the region or wholly outside it.
    """
    lines: list[str] = []
    segments: list[tuple[str, ...]] = []
    position = region.start
    for part in sorted(parts, key=lambda one: (one.start, one.end)):
        if not (region.start <= part.start and part.end <= region.end):
            continue
        if part.start > position:
            lines.append(marker)
        lines += part.lines
        segments.append(part.lines)
        position = max(position, part.end)
    if position < region.end:
        lines.append(marker)
    return RegionalUpdate(tuple(lines), tuple(segments))


def regional_merge(
    original_lines: Sequence[str], placements: Sequence[Placement], region: Region
) -> tuple[str, ...] | None:
    """The lines of a region in a merge; None if a placement crosses the region's borders."""
    if any(
        one.start < border < one.end for one in placements for border in (region.start, region.end)
    ):
        return None
    inside = [one for one in placements if one.is_inside(region.start, region.end)]
    merged = splice(original_lines, inside)
    return tuple(merged[region.start : len(merged) - len(original_lines) + region.end])


def regional_merges(plan: MergePlan, region: Region) -> dict[tuple[str, ...], int]:
    """The texts of a region in the likely merges, each with the likeliest; the likeliest first."""
    here = {one.layer for one in plan.path() if one.is_inside(region.start, region.end)}
    found: dict[tuple[str, ...], int] = {}
    for number in plan.likely:
        path = plan.path(number)
        is_here = all(one.is_inside(region.start, region.end) for one in path if one.layer in here)
        text = regional_merge(plan.original_lines, path, region) if is_here else None
        if text is not None:
            found.setdefault(text, number)
    return found


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
