"""How alike two texts are letter by letter."""

from __future__ import annotations

from rapidfuzz.distance import LCSseq

from apply_service.edit.text.work_budget import spend

# Pairs of letters that count as one comparison: 64 of them take one operation.
LETTER_PAIRS = 100_000
# Texts with fewer pairs of letters are compared as they are.
_SMALL = 1_000_000


def likeness(left: str, right: str) -> float:
    """The share of the letters of two texts that stand in both in the same order.

    Raises BudgetSpentError for texts that are too long and differ in too long a part.
    """
    num_letters = len(left) + len(right)
    if left == right:
        return 1.0 if left else 0.0
    num_equal = 0
    if len(left) * len(right) > _SMALL:
        head = _num_equal(left, right, is_head=True)
        left, right = left[head:], right[head:]
        tail = _num_equal(left, right, is_head=False)
        left, right = left[: len(left) - tail], right[: len(right) - tail]
        num_equal = head + tail
    spend(1 + len(left) * len(right) // LETTER_PAIRS)
    return 2 * (num_equal + LCSseq.similarity(left, right)) / num_letters


def _num_equal(left: str, right: str, *, is_head: bool) -> int:
    """How many letters two texts begin with, or end with, in common."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if is_head:
            is_equal = left.startswith(right[low:middle], low)
        else:
            is_equal = left.endswith(
                right[len(right) - middle : len(right) - low], 0, len(left) - low
            )
        low, high = (middle, high) if is_equal else (low, middle - 1)
    return low
