"""A budget counts what is compared inside it, and ends it."""

from __future__ import annotations

import pickle

import pytest

from apply_service.edit.text.alignment import bounded_hunks, changed_hunks
from apply_service.edit.text.work_budget import BudgetSpentError, limited_work, spend


def test_work_inside_counts_and_work_outside_does_not() -> None:
    spend(10**12)
    with limited_work(10) as outer:
        spend(4)
        with limited_work(100) as inner:
            spend(50)
        spend(6)
        with pytest.raises(BudgetSpentError, match="more than 10 comparisons"):
            spend(1)
    assert (outer.num_spent, inner.num_spent) == (11, 50)
    spend(10**12)


def test_the_error_crosses_processes() -> None:
    assert pickle.loads(pickle.dumps(BudgetSpentError(7))).limit == 7


def test_a_diff_beyond_the_budget_is_coarse_and_right(monkeypatch: pytest.MonkeyPatch) -> None:
    old = ["a", "b", "c", "d", "e"]
    new = ["a", "x", "c", "y", "e"]
    assert bounded_hunks(old, new) == changed_hunks(old, new)
    assert len(changed_hunks(old, new)) == 2
    monkeypatch.setattr("apply_service.edit.text.work_budget.MAX_COMPARISONS", 0)
    (hunk,) = bounded_hunks([*old, "z"] * 3, [*new, "z"] * 3)
    assert (hunk.old_start, hunk.new_start) == (1, 1)
    assert (hunk.old_end, hunk.new_end) == (16, 16)
