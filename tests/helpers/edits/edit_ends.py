"""What becomes of a case without a model."""

from __future__ import annotations

from apply_service.apply.conclusion import try_conclude_alone
from apply_service.apply.edit_request import EditRequest
from apply_service.apply.planning.edit_plan import plan_edit
from apply_service.edit.read.snippet_error import SnippetError
from apply_service.edit.text.text_file import TextFile
from apply_service.evaluate.cases.case_file import Case


def end_of(case: Case) -> tuple[str, bool]:
    """The status without a model, and whether the file is the expected one."""
    edit = EditRequest(
        original=TextFile.from_text(case.original),
        update=case.update,
        path=case.path,
        use_model="never",
    )
    try:
        outcome = try_conclude_alone(plan_edit(edit, max_file_bytes=1 << 20))
    except SnippetError:
        return "refused", False
    assert outcome is not None
    return outcome.verdict.status, outcome.file.join(outcome.lines) == case.expected
