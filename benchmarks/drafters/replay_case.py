"""A case in the tokens of a profile, for those who answer it without a model."""

from __future__ import annotations

from dataclasses import dataclass

from apply_service.apply.merge_constraint import MergeConstraint, try_constrain
from apply_service.edit.read.markers import split_segments
from apply_service.edit.regions import Region
from apply_service.edit.text.text_file import TextFile
from apply_service.evaluate.cases.case_file import Case
from apply_service.evaluate.cases.planned_case import PlannedCase, plan_case
from apply_service.prompts.profile import Profile, Prompt, PromptRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayCase:
    """A case in tokens: its prompt, its answer with the end tokens, and what the merge predicts.

    The whole file is asked for. `predicted` is empty without a merge, `rival` without another one.
    """

    case: Case
    planned: PlannedCase
    prompt: Prompt
    answer: tuple[int, ...]
    predicted: tuple[int, ...]
    rival: tuple[int, ...]

    @property
    def style(self) -> str:
        """How the update was written."""
        return self.case.style or "unknown"

    @property
    def is_sent_whole(self) -> bool:
        """True if the update is the expected file as a whole, so that no model is asked."""
        plan = self.planned.plan
        expected = TextFile.from_text(self.case.expected).lines
        return (
            plan is not None
            and plan.decision is not None
            and plan.decision.source == "update"
            and plan.decision.lines == expected
        )

    def try_constrain(self) -> MergeConstraint | None:
        """The valid merges of the file; None where the update cannot be read or placed."""
        plan = self.planned.plan
        if plan is None or plan.merge is None:
            return None
        return try_constrain(plan.merge, Region(0, len(plan.original_lines)), self.prompt)


def to_tokens(case: Case, profile: Profile, *, has_merge: bool) -> ReplayCase:
    """A case as the profile writes it. Raises TextNotEncodableError and TextFileError."""
    original = TextFile.from_text(case.original).lines
    update = TextFile.from_text(case.update).lines
    prompt = profile.build(
        PromptRequest(
            original_lines=original,
            update_lines=update,
            segments=split_segments(update, original),
            instruction=case.instruction,
        )
    )
    expected = TextFile.from_text(case.expected).lines
    planned = plan_case(case)
    merged = planned.conclude() if has_merge else None
    merge = None if planned.plan is None or merged is None else planned.plan.merge
    rival = () if merge is None else merge.merges[1:2]
    return ReplayCase(
        case=case,
        planned=planned,
        prompt=prompt,
        answer=(*prompt.answer_token_ids(expected), *prompt.end_token_ids),
        predicted=() if merged is None else prompt.answer_token_ids(merged.lines),
        rival=prompt.answer_token_ids(rival[0]) if rival else (),
    )
