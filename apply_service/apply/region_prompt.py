"""The prompts of an attempt: one a region, with the probable answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from apply_service.apply.merge_constraint import MergeConstraint, try_constrain
from apply_service.apply.planning.edit_plan import EditPlan
from apply_service.edit.read.markers import split_segments
from apply_service.edit.regional_update import (
    RegionalUpdate,
    marker_of,
    regional_merges,
    regional_update,
)
from apply_service.edit.regions import Region
from apply_service.edit.text.text_file import split_lines
from apply_service.prompts.profile import Profile, Prompt, PromptRequest

Scope = Literal["file", "region"]


@dataclass(frozen=True, slots=True)
class RegionPrompt:
    """A region, its prompt, and the tokens of the answer that the merge predicts (or none).

    `rival_token_ids` are the likeliest other answer, if the region is written freely.
    With a constraint the answer is one of the valid merges; without one though it was wanted, it
    `lacks_constraint`.
    """

    region: Region
    prompt: Prompt
    predicted_token_ids: tuple[int, ...]
    constraint: MergeConstraint | None = None
    lacks_constraint: bool = False
    rival_token_ids: tuple[int, ...] = ()


def build_prompts(
    plan: EditPlan, profile: Profile, *, regions: Sequence[Region], scope: Scope
) -> tuple[RegionPrompt, ...]:
    """One prompt for each region that the edit touches. Raises PromptError."""
    return tuple(_build_prompt(plan, profile, region, scope) for region in regions)


def _build_prompt(plan: EditPlan, profile: Profile, region: Region, scope: Scope) -> RegionPrompt:
    edit = plan.edit
    update = update_for(plan, region, scope)
    prediction = None
    if edit.prediction is not None and scope == "file":
        prediction = split_lines(edit.prediction)[0]
    prompt = profile.build(
        PromptRequest(
            original_lines=plan.original_lines[region.start : region.end],
            update_lines=update.lines,
            segments=update.segments,
            instruction=edit.instruction,
            prediction_lines=prediction,
        )
    )
    merges = list(() if plan.merge is None else regional_merges(plan.merge, region))
    predicted = prompt.answer_token_ids(merges[0]) if merges else ()
    constraint = None
    is_wanted = (edit.constraint or profile.default_constraint) == "merge"
    if is_wanted and plan.merge is not None:
        constraint = try_constrain(plan.merge, region, prompt)
    is_lacking = is_wanted and constraint is None
    rival = merges[1] if constraint is None and len(merges) > 1 else ()
    return RegionPrompt(
        region,
        prompt,
        tuple(predicted),
        constraint,
        is_lacking,
        tuple(prompt.answer_token_ids(rival)) if rival else (),
    )


def update_for(plan: EditPlan, region: Region, scope: Scope) -> RegionalUpdate:
    """The update of a region: as it was sent where all of it stands there, if it is lazy."""
    assert plan.snippet is not None, "an attempt follows a plan"
    assert plan.merge is not None, "an attempt follows a plan"
    parts, original = plan.merge.parts, plan.original_lines
    is_lazy = plan.snippet.format in ("lazy", "fragment")
    has_all = all(region.start <= one.start and one.end <= region.end for one in parts)
    if not parts or (is_lazy and (scope == "file" or has_all)):
        segments = split_segments(plan.update_lines, original)
        return RegionalUpdate(plan.update_lines, tuple(map(tuple, segments)))
    marker = marker_of(plan.update_lines, original, plan.language)
    return regional_update(parts, region, marker=marker)
