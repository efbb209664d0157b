"""Is the result a merge of the update at all, and is each segment where it belongs?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from apply_service.edit.comparison import Comparison, shown
from apply_service.edit.finding import Finding

if TYPE_CHECKING:
    from apply_service.edit.merge import MergePlan
    from apply_service.edit.placement import MergePath


def check_place(plan: MergePlan, _path: MergePath) -> Iterator[Finding]:
    """What is open about the place of the segments, for a result that is a valid merge."""
    if not plan.is_unique:
        yield from plan.findings


def check_membership(comparison: Comparison, plan: MergePlan) -> Iterator[Finding]:
    """What to say of a result that is no valid merge."""
    if plan.best is None:
        yield from plan.findings
        return
    yield Finding(
        code="not_a_merge",
        severity="warning",
        message="the result is none of the ways to merge the update into the original",
        hint="compare the result with the update; what follows or stands before says where",
        line=None,
    )
    _ = comparison, shown


MERGE_CHECKS: Sequence[str] = ()
