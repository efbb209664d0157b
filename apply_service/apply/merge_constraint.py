"""The valid merges of a region as a constraint on the tokens of its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apply_service.edit.place.merge import MergePlan
from apply_service.edit.place.placement import MAX_WEIGHT_GAP, Placement
from apply_service.edit.place.placement_change import change_of
from apply_service.edit.regions import Region
from apply_service.prompts.merge_form import AnyMergeGrammar, MergeForm
from apply_service.prompts.prompt import Prompt
from lookup.constraint import GrammarError
from lookup.merge_rules import GrammarPlacement, GrammarSegment, MergeRules

MAX_ALTERNATIVES = 12


@dataclass(frozen=True, slots=True)
class MergeConstraint:
    """A grammar of merges, with the placements behind it: one tuple for each segment."""

    rules: MergeRules
    placements: tuple[tuple[Placement, ...], ...]
    form: MergeForm

    def grammar(self) -> AnyMergeGrammar:
        """A fresh grammar at the start of an answer."""
        return self.form.grammar(self.rules)


def try_constrain(plan: MergePlan, region: Region, prompt: Prompt) -> MergeConstraint | None:
    """The constraint of one region; None where there is no merge or the answer is free text.

    A segment belongs to the region of its best placement. Its rivals are offered as far
    as they lie in the region too, unless the place is certain.
    """
    path = plan.best
    form = prompt.merge_form
    if path is None or form is None:
        return None
    here = [one for one in path.placements if _is_inside(one.start, one.end, region)]
    offered = tuple(_offered(best, plan, region) for best in here)
    rules = MergeRules(
        original=form.lines(plan.original_lines[region.start : region.end]),
        segments=[
            GrammarSegment([_lower(one, region, form) for one in group]) for group in offered
        ],
        removed=[
            (span.start - region.start, span.end - region.start)
            for span in path.removed
            if _is_inside(span.start, span.end, region)
        ],
        end_token_ids=form.end,
        prior_scale=form.calibration.prior_scale,
    )
    constraint = MergeConstraint(rules, offered, form)
    try:
        constraint.grammar()
    except GrammarError:
        return None
    return constraint


def _offered(best: Placement, plan: MergePlan, region: Region) -> tuple[Placement, ...]:
    """The best placement of a segment and the rivals that the model may choose instead."""
    if best.is_certain:
        return (best,)
    rivals = [
        one
        for one in plan.candidates[best.segment]
        if one != best
        and one.weight >= best.weight - MAX_WEIGHT_GAP
        and _is_inside(one.start, one.end, region)
        and not _is_wild(one, best, plan.original_lines)
    ]
    return (best, *rivals[: MAX_ALTERNATIVES - 1])


def _is_wild(rival: Placement, best: Placement, original_lines: Sequence[str]) -> bool:
    """True if a rival would drop lines that no anchor holds, where the best one has anchors."""
    if rival.reason != "similar" or best.reason == "similar":
        return False
    change = change_of(original_lines[rival.start : rival.end], rival.lines)
    return bool(change.lost) and not (change.has_head or change.has_tail or change.num_kept)


def _lower(placement: Placement, region: Region, form: MergeForm) -> GrammarPlacement:
    return GrammarPlacement(
        start=placement.start - region.start,
        end=placement.end - region.start,
        lines=form.lines(placement.lines),
        weight=placement.weight,
    )


def _is_inside(start: int, end: int, region: Region) -> bool:
    return region.start <= start and end <= region.end
