"""A case as the pipeline plans it, before any model is asked."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from apply_service.apply.conclusion import conclude_decided, try_conclude_merge
from apply_service.apply.edit_request import Constraint, EditRequest, UseModel
from apply_service.apply.outcome import Outcome
from apply_service.apply.planning.edit_plan import EditPlan, plan_edit
from apply_service.edit.read.snippet import SnippetError
from apply_service.edit.syntax.languages import language_of
from apply_service.edit.text.text_file import TextFile
from apply_service.evaluate.cases.case_file import Case


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """The plan of a case; without one `refusal` says why its update cannot be read."""

    language: str | None
    plan: EditPlan | None = None
    refusal: str = ""

    @property
    def is_certain(self) -> bool:
        """True if the likeliest merge may be applied without a model."""
        merge = None if self.plan is None else self.plan.merge
        return merge is not None and merge.is_certain

    def conclude(self) -> Outcome | None:
        """The outcome that the service gives without a model; None if there is none."""
        if self.plan is None:
            return None
        if self.plan.decision is not None:
            return conclude_decided(self.plan)
        return try_conclude_merge(self.plan)


def edit_of_case(
    case: Case,
    *,
    has_fallback: bool = True,
    constraint: Constraint | None = None,
    use_model: UseModel = "always",
) -> EditRequest:
    """The edit of a case; by default the model answers every one."""
    return EditRequest(
        original=TextFile.from_text(case.original),
        update=case.update,
        instruction=case.instruction,
        path=case.path,
        language=case.language,
        has_fallback=has_fallback,
        constraint=constraint,
        use_model=use_model,
    )


def plan_case(case: Case) -> PlannedCase:
    """Read and place the update of a case, whatever its size. Raises TextFileError."""
    edit = edit_of_case(case)
    language = language_of(case.path, case.language, edit.original.lines)
    try:
        return PlannedCase(language, plan_edit(edit, max_file_bytes=sys.maxsize))
    except SnippetError as error:
        return PlannedCase(language, refusal=str(error))
