"""Edits that agents wrote for files of their own: how many the rules alone merge as meant.

Those of `agent_edits` and `fitting_agent_edits` are what the merge was mended with and
its trees were fitted to. Nothing is fitted to the others. Those of `unseen_agent_edits` and
`further_agent_edits` were counted before a few that went wrong were looked at; those of
`later_agent_edits` were counted alone: their share is what a user may expect.

Evenly spread ones of each file are tried, of all styles; with `pytest -m slow` all are.
"""

from __future__ import annotations

from collections import Counter

import pytest
from case_files import case_file

from apply_service.apply.conclusion import try_conclude_alone
from apply_service.apply.edit_request import EditRequest
from apply_service.apply.planning.edit_plan import plan_edit
from apply_service.edit.read.snippet_error import SnippetError
from apply_service.edit.text.text_file import TextFile
from apply_service.evaluate.cases.case_file import Case, read_cases


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


@pytest.mark.parametrize(
    ("name", "step", "num_right", "num_silent"),
    [
        ("agent_edits", 3, 71, 0),
        ("fitting_agent_edits", 11, 157, 0),
        ("unseen_agent_edits", 2, 49, 0),
        # An instruction in a comment stays in the file ("# Add the permission for pushing here").
        ("further_agent_edits", 3, 33, 1),
        ("later_agent_edits", 4, 113, 0),
        pytest.param("agent_edits", 1, 210, 0, marks=pytest.mark.slow),
        pytest.param("fitting_agent_edits", 1, 1698, 0, marks=pytest.mark.slow),
        pytest.param("unseen_agent_edits", 1, 100, 0, marks=pytest.mark.slow),
        pytest.param("further_agent_edits", 1, 99, 1, marks=pytest.mark.slow),
        pytest.param("later_agent_edits", 1, 448, 0, marks=pytest.mark.slow),
    ],
)
def test_most_are_merged_as_meant(name: str, step: int, num_right: int, num_silent: int) -> None:
    cases = list(read_cases(case_file(name)))[::step]
    ends = Counter(end_of(case) for case in cases)
    assert sum(count for (_, is_right), count in ends.items() if is_right) >= num_right
    assert ends["applied", False] <= num_silent
