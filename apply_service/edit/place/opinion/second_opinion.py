"""What a merger of another principle makes of the same update."""

from __future__ import annotations

from dataclasses import dataclass

from apply_service.edit.place.candidates.original_facts import OriginalFacts
from apply_service.edit.place.opinion.merge_planner import MergePlanner
from apply_service.edit.place.opinion.path_search import PathSearch
from apply_service.edit.place.opinion.placement import MergePath
from apply_service.edit.place.opinion.splice import splice
from apply_service.edit.read.segment import EXPLICIT_FORMATS, Snippet


@dataclass(frozen=True, slots=True)
class OtherMerge:
    """The lines of a merge, whether each place is the only one, and what it doubts."""

    lines: tuple[str, ...]
    is_unique: bool
    num_doubts: int


def second_opinion(original: OriginalFacts, snippet: Snippet) -> OtherMerge | None:
    """None where it finds no merge, or where the update names the lines that it replaces."""
    if snippet.format in EXPLICIT_FORMATS:
        return None
    drawn = MergePlanner(original.all_lines, snippet, original.tree).draw()
    if any(finding.severity == "error" for finding in drawn.findings):
        return None
    best = PathSearch([drawn.candidates[number] for number in drawn.order]).best_path()
    if best is None:
        return None
    path = MergePath(placements=best, removed=drawn.removed)
    return OtherMerge(
        lines=tuple(splice(original.all_lines, path)),
        is_unique=not drawn.findings and all(one.is_certain for one in best),
        num_doubts=len(drawn.findings),
    )
