"""What a merger of another principle makes of the same update: the one without fitted merges."""

from __future__ import annotations

from dataclasses import dataclass

from apply_service.edit.place.candidates.original_facts import OriginalFacts
from apply_service.edit.place.merge import plan_merge
from apply_service.edit.place.splice import splice
from apply_service.edit.read.segment import Snippet


@dataclass(frozen=True, slots=True)
class OtherMerge:
    """The lines of a merge, whether each place is the only one, and what it doubts."""

    lines: tuple[str, ...]
    is_unique: bool
    num_doubts: int


def second_opinion(original: OriginalFacts, snippet: Snippet) -> OtherMerge | None:
    """None where it finds no merge."""
    plan = plan_merge(original.all_lines, snippet, tree=original.tree)
    if plan.best is None:
        return None
    return OtherMerge(
        lines=tuple(splice(original.all_lines, plan.best)),
        is_unique=plan.is_unique,
        num_doubts=len(plan.findings),
    )
