"""Everyday edits as agents send them, in many languages: the merge by rules gets them right."""

from __future__ import annotations

import pytest
from case_files import case_file

from apply_service.apply.conclusion import try_conclude_alone
from apply_service.apply.edit_request import EditRequest
from apply_service.apply.planning.edit_plan import plan_edit
from apply_service.edit.text.text_file import TextFile
from apply_service.evaluate.cases.case_file import Case, read_cases

CASES = list(read_cases(case_file("everyday_edits")))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_merge_is_the_expected_file(case: Case) -> None:
    edit = EditRequest(
        original=TextFile.from_text(case.original),
        update=case.update,
        path=case.path,
        use_model="never",
    )
    outcome = try_conclude_alone(plan_edit(edit, max_file_bytes=1 << 20))
    assert outcome is not None
    assert outcome.verdict.status in ("applied", "needs_review")
    assert "\n".join(outcome.lines) + "\n" == case.expected
