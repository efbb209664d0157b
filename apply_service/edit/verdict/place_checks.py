"""Checks that the result is one of the merges of the update, and the one that is meant."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from apply_service.edit.finding import Finding
from apply_service.edit.verdict.comparison import shown

if TYPE_CHECKING:
    from apply_service.edit.place.merge import MergePlan
    from apply_service.edit.place.placement import Placement


def check_place(
    plan: MergePlan, number: int, *, confirmed: Collection[Placement]
) -> Iterator[Finding]:
    """Doubts about a result that is merge `number` of a plan.

    There is none if the likeliest merge is certain, or if the result was chosen with all that is
    likely in sight: the `confirmed` placements.
    """
    is_first = number == 0 and plan.is_certain
    is_chosen = bool(confirmed) and plan.open_placements <= set(confirmed)
    if not (is_first or is_chosen):
        yield _ambiguous_place(plan, number)


def _ambiguous_place(plan: MergePlan, number: int) -> Finding:
    """The doubt about a merge, with the first line in which the likeliest other one differs."""
    percent = f"{100 * plan.certainty:.0f} %"
    which = f"the likeliest merge, right with {percent}" if number == 0 else "a less likely merge"
    hint = "add an unchanged line before and after each part, or a marker where lines stay"
    result = plan.merges[number]
    others = (*plan.merges[:number], *plan.merges[number + 1 :])
    if not others:
        return Finding(
            code="ambiguous_place",
            severity="warning",
            message=f"the result is {which}; no other place for the update was found",
            hint=hint,
        )
    place = num_equal_lines(result, others[0])
    lines = [_line(text, place) for text in (result, others[0])]
    return Finding(
        code="ambiguous_place",
        severity="warning",
        message=f"the result is {which}; another one has {lines[1]} on line {place + 1}, where it"
        f" has {lines[0]}",
        hint=hint,
        line=min(place + 1, max(len(result), 1)),
    )


def _line(text: Sequence[str], place: int) -> str:
    if place == len(text):
        return "its end"
    return shown(text[place]) if text[place].strip() else "a blank line"


def check_membership(result_lines: Sequence[str], plan: MergePlan) -> Iterator[Finding]:
    """The finding for a result that is no merge of the plan, where it leaves the likeliest one."""
    if plan.best is None:
        return
    place = num_equal_lines(result_lines, plan.best)
    is_end = place == len(result_lines)
    what = "ends" if is_end else f"goes on with {shown(result_lines[place])}"
    yield Finding(
        code="not_a_merge",
        severity="warning",
        message="the result is not a valid merge of the update; it equals the likeliest merge for"
        f" {place} lines, then it {what}",
        hint="compare the result with the update from that line on",
        line=None if is_end else place + 1,
    )


def num_equal_lines(left: Sequence[str], right: Sequence[str]) -> int:
    """How many lines two texts have in common at the start."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((place for place, pair in pairs if pair[0] != pair[1]), min(len(left), len(right)))
