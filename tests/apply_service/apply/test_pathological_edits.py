"""Edits that are dear to plan end after a bounded number of steps, with an answer.

The limits are on what is counted: comparisons, and calls of functions, Python's own included, so
that a loop that forgets to count is found as well. One without an end ends with the test's time.
"""

from __future__ import annotations

import cProfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from pathological_shapes import LEAN_SIZES, SHAPES

from apply_service.apply.conclusion import try_conclude_alone
from apply_service.apply.planning.edit_plan import plan_edit
from apply_service.edit.read.snippet_error import SnippetError

MAX_FILE_BYTES = 1 << 20
MAX_CALLS = 6_000_000


@contextmanager
def limited_calls(limit: int) -> Iterator[None]:
    """Fail if what is done inside made more calls than that."""
    profile = cProfile.Profile()
    profile.enable()
    try:
        yield
    finally:
        profile.disable()
    num_calls = sum(entry.callcount for entry in profile.getstats())
    assert num_calls <= limit


@pytest.mark.parametrize("name", SHAPES)
def test_it_ends_with_an_answer(name: str) -> None:
    edit = SHAPES[name](LEAN_SIZES[name]).edit
    outcome = None
    with limited_calls(MAX_CALLS), suppress(SnippetError):
        outcome = try_conclude_alone(plan_edit(edit, max_file_bytes=MAX_FILE_BYTES))
    if outcome is not None and outcome.verdict.status == "rejected":
        assert outcome.verdict.findings[0].hint


@pytest.mark.parametrize("limit", [1, 100, 1_000])
@pytest.mark.parametrize("name", ["equal_segments", "one_line_of_json", "many_renamed_definitions"])
def test_a_spent_budget_is_a_question_and_changes_nothing(
    name: str, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apply_service.edit.text.work_budget.MAX_COMPARISONS", limit)
    edit = SHAPES[name](0.05).edit
    outcome = try_conclude_alone(plan_edit(edit, max_file_bytes=MAX_FILE_BYTES))
    assert outcome is not None
    assert outcome.verdict.status == "rejected"
    (finding,) = outcome.verdict.findings
    assert finding.code == "too_much_to_compare"
    assert f"the limit is {limit}" in finding.message
    assert outcome.lines == edit.original.lines
