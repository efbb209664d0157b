"""How alike lines are, against a slow computation of the same."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_service.edit.text.similarity import (
    EVEN_PAIR,
    MAX_COMPARED_CHARS,
    SAME_KEY_RATIO,
    SAME_NAME_RATIO,
    Similarity,
    likeness,
)
from apply_service.edit.text.work_budget import BudgetSpentError, limited_work

# Lines without a value or a definition, of words that are often shared and keywords.
WORDS = st.sampled_from(["load", "load", "path", "paths", "count", "return", "if", "self", "x"])
LINES = st.lists(WORDS, max_size=8).map(" ".join)
TEXTS = st.text(alphabet="ab\u0301\U0001f600", max_size=12)


def ratio_reference(left: str, right: str) -> float:
    """What lines are alike by where neither key nor name nor a common beginning tells."""
    letters = (Counter(left) & Counter(right)).total()
    words, others = map(telling, (left, right))
    smaller = min(words, others, key=Counter.total)
    shared = words & others
    if letters < 0.3 * (len(left) + len(right)):
        return 0.0
    if smaller.total() >= 2 and shared == smaller:
        return SAME_KEY_RATIO
    total = words.total() + others.total()
    by_words = 2 * shared.total() / total if total else 1.0
    by_letters = 2 * num_common(left, right) / (len(left) + len(right))
    bound = letters / (len(left) + len(right)) + by_words / 2
    return 0.0 if bound <= EVEN_PAIR else (by_letters + by_words) / 2


def num_common(left: str, right: str) -> int:
    """The letters of the longest text that both become by leaving letters out."""
    best = [0] * (len(right) + 1)
    for letter in left:
        row = [0]
        for place, other in enumerate(right):
            longer = best[place] + 1 if letter == other else max(best[place + 1], row[-1])
            row.append(longer)
        best = row
    return best[-1]


def telling(line: str) -> Counter[str]:
    return Counter(word for word in line.split() if word not in ("return", "if", "self"))


@given(LINES, LINES)
def test_lines_are_alike_by_letters_and_words(left: str, right: str) -> None:
    similarity = Similarity()
    ratio = similarity.ratio(left, right)
    if not left or not right:
        assert ratio == 0.0
    elif left == right:
        assert ratio == 1.0
    elif min(len(left), len(right)) >= 12 and (left.startswith(right) or right.startswith(left)):
        assert ratio == SAME_KEY_RATIO
    else:
        assert ratio == pytest.approx(ratio_reference(left, right))
    assert similarity.ratio(left, right) == ratio, "what is remembered"


def test_a_key_says_more_than_its_value_unless_it_stands_everywhere() -> None:
    old, new = "display: grid;", "display: none !important"
    assert Similarity([old]).ratio(old, new) == SAME_KEY_RATIO
    assert Similarity([old] * 3).ratio(old, new) != SAME_KEY_RATIO


def test_definitions_of_one_name_are_alike_whatever_else_they_say() -> None:
    assert Similarity().ratio("def load(path):", "async def load(self, x, y, z):") == (
        SAME_NAME_RATIO
    )


def test_a_new_line_is_compared_with_its_old_names_too() -> None:
    renames = {"fetch": "load", "where": "path"}
    plain, renamed = Similarity(), Similarity(renames=renames)
    old, new = "    load(path, 1)".strip(), "fetch(where, 1)"
    assert renamed.with_old_names(new) == old
    assert renamed.ratio(old, new) == 1.0
    assert plain.ratio(old, new) < 1.0


def test_only_the_beginning_of_a_long_line_is_compared() -> None:
    head = " ".join(f"word{number}" for number in range(60))[:MAX_COMPARED_CHARS]
    assert Similarity().ratio(head + "a" * 5_000, head + "b" * 5_000) == SAME_KEY_RATIO


@given(st.lists(LINES, max_size=5), st.lists(LINES, max_size=5))
def test_pairs_have_the_largest_sum(old: list[str], new: list[str]) -> None:
    similarity = Similarity()
    pairs = similarity.pairs(old, new)
    assert all(left[0] < right[0] and left[1] < right[1] for left, right in pairwise(pairs))
    assert all(ratio == similarity.ratio(old[a], new[b]) > EVEN_PAIR for a, b, ratio in pairs)
    gained = sum(ratio - EVEN_PAIR for _, _, ratio in pairs)
    assert gained == pytest.approx(best_sum(similarity, old, new))


def best_sum(similarity: Similarity, old: list[str], new: list[str]) -> float:
    if not old or not new:
        return 0.0
    gain = max(similarity.ratio(old[0], new[0]) - EVEN_PAIR, 0.0)
    return max(
        gain + best_sum(similarity, old[1:], new[1:]),
        best_sum(similarity, old[1:], new),
        best_sum(similarity, old, new[1:]),
    )


def num_common_letters(left: str, right: str) -> int:
    """By trying: the longest text that both become by leaving letters out."""
    if not left or not right:
        return 0
    if left[0] == right[0]:
        return 1 + num_common_letters(left[1:], right[1:])
    return max(num_common_letters(left[1:], right), num_common(left, right[1:]))


@given(TEXTS, TEXTS)
def test_letters_in_the_same_order_count(left: str, right: str) -> None:
    num_letters = len(left) + len(right)
    expected = 2 * num_common_letters(left, right) / num_letters if num_letters else 0.0
    assert likeness(left, right) == pytest.approx(expected)


@given(TEXTS, TEXTS, st.sampled_from([0, 700, 5_000]), st.sampled_from([0, 700, 5_000]))
def test_long_texts_are_compared_where_they_differ(
    left: str, right: str, num_before: int, num_after: int
) -> None:
    head, tail = "ab" * num_before, "ba" * num_after
    num_letters = len(left) + len(right) + 2 * len(head) + 2 * len(tail)
    num_equal = num_common_letters(left, right) + len(head) + len(tail)
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
