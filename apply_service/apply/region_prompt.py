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
    predicted_rival,
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
    update = _update_for(plan, region, scope)
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
    predicted = prompt.answer_token_ids(update.predicted) if update.predicted else ()
    constraint = None
    is_wanted = (edit.constraint or profile.default_constraint) == "merge"
    if is_wanted and plan.merge is not None:
        constraint = try_constrain(plan.merge, region, prompt)
    is_lacking = is_wanted and constraint is None
    rival: tuple[str, ...] = ()
    if constraint is None and plan.merge is not None:
        rival = predicted_rival(plan.merge, region)
    return RegionPrompt(
        region,
        prompt,
        tuple(predicted),
        constraint,
        is_lacking,
        tuple(prompt.answer_token_ids(rival)) if rival else (),
    )


def _update_for(plan: EditPlan, region: Region, scope: Scope) -> RegionalUpdate:
    """The update of a region; for a whole file the caller's own one if it is lazy."""
    assert plan.snippet is not None, "an attempt follows a plan"
    assert plan.merge is not None, "an attempt follows a plan"
    original, path = plan.original_lines, plan.merge.best
    written = None
    if path is not None:
        directive_by_name = {
            removal.name: plan.update_lines[removal.number - 1].strip()
            for removal in plan.snippet.removals
        }
        written = regional_update(
            original,
            path,
            region,
            marker=marker_of(plan.update_lines, original, plan.language),
            directives=[directive_by_name[removed.name] for removed in path.removed],
        )
    is_as_sent = scope == "file" and plan.snippet.format in ("lazy", "fragment")
    if written is not None and not is_as_sent:
        return written
    return RegionalUpdate(
        plan.update_lines,
        tuple(tuple(segment) for segment in split_segments(plan.update_lines, original)),
        () if written is None else written.predicted,
    )
