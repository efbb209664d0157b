"""The share of letters in common, at any length."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_service.edit.text.likeness import likeness
from apply_service.edit.text.work_budget import BudgetSpentError, limited_work

TEXTS = st.text(alphabet="ab\u0301\U0001f600", max_size=12)


def num_common(left: str, right: str) -> int:
    """By trying: the longest text that both become by leaving letters out."""
    if not left or not right:
        return 0
    if left[0] == right[0]:
        return 1 + num_common(left[1:], right[1:])
    return max(num_common(left[1:], right), num_common(left, right[1:]))


@given(TEXTS, TEXTS)
def test_letters_in_the_same_order_count(left: str, right: str) -> None:
    num_letters = len(left) + len(right)
    expected = 2 * num_common(left, right) / num_letters if num_letters else 0.0
    assert likeness(left, right) == pytest.approx(expected)


@given(TEXTS, TEXTS, st.sampled_from([0, 700, 5_000]), st.sampled_from([0, 700, 5_000]))
def test_long_texts_are_compared_where_they_differ(
    left: str, right: str, num_before: int, num_after: int
) -> None:
    head, tail = "ab" * num_before, "ba" * num_after
    num_letters = len(left) + len(right) + 2 * len(head) + 2 * len(tail)
    num_equal = num_common(left, right) + len(head) + len(tail)
    expected = 2 * num_equal / num_letters if num_letters else 0.0
    # Letters before and after may match those between as well, so it is never less.
    assert likeness(head + left + tail, head + right + tail) >= expected - 1e-9
    if not (left and right):
        assert likeness(head + left + tail, head + right + tail) == pytest.approx(expected)


def test_what_costs_too_much_is_not_begun() -> None:
    left, right = "ab" * 300_000, "ba" * 299_999 + "cc"
    with limited_work() as budget, pytest.raises(BudgetSpentError):
        likeness("x" + left, right + "y")
    assert budget.num_spent > budget.limit
    with limited_work() as budget:
        assert likeness(left, left + "y") > 0.99
    assert budget.num_spent < 10
