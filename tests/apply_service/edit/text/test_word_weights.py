"""How much words tell, by how rare they are in a file."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_service.edit.text.word_weights import WordWeights

LINES = ["total = total + price", "total = 0", "price = 10", "", "return total"]
WORDS = st.lists(st.sampled_from(["total", "price", "return", "new", "other"]), max_size=8).map(
    Counter
)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("total = total + price", {"total": 2, "price": 1}),
        ("self._items[0] = 42", {"self": 1, "items": 1, "0": 1, "42": 1}),
        ("h264 über_2", {"h264": 1, "über_2": 1}),
        ("__init__", {"init__": 1}),
        ("} else {", {"else": 1}),
        ("});", {}),
        ("", {}),
    ],
)
def test_words_of_a_line(line: str, words: dict[str, int]) -> None:
    assert WordWeights(LINES).words(line) == Counter(words)


def test_words_of_several_lines_are_counted_together() -> None:
    assert WordWeights(LINES).of_lines(LINES[:2]) == Counter({"total": 3, "price": 1, "0": 1})
    assert WordWeights(LINES).of_lines([]) == Counter()


def test_the_end_of_a_very_long_line_is_not_read() -> None:
    weights = WordWeights(["a " * 100_000 + "last"])
    assert "last" not in weights.words("a " * 100_000 + "last")
    assert "last" not in weights.line_counts


def test_a_word_counts_once_for_each_line_it_stands_in() -> None:
    assert WordWeights(LINES).line_counts == Counter(
        {"total": 3, "price": 2, "0": 1, "10": 1, "return": 1}
    )


def test_the_places_of_a_word_are_known() -> None:
    assert WordWeights(LINES).places == {
        "total": [0, 1, 4],
        "price": [0, 2],
        "0": [1],
        "10": [2],
        "return": [4],
    }


def test_the_rarer_a_word_the_more_it_weighs() -> None:
    weights = WordWeights(LINES)
    assert 0 < weights.of("total") < weights.of("price") < weights.of("return") < weights.of("new")
    assert weights.of("return") == math.log(7 / 1.5)
    assert weights.weight(Counter({"total": 2})) == 2 * weights.of("total")
    assert weights.weight(Counter()) == 0.0


def test_a_word_in_every_line_still_weighs_something() -> None:
    assert WordWeights(["a"] * 1000).of("a") > 0
    assert WordWeights([]).of("a") > 0


@given(old=WORDS, new=WORDS)
def test_the_share_that_stays_is_between_0_and_1_and_whole_for_equal_words(
    old: Counter[str], new: Counter[str]
) -> None:
    weights = WordWeights(LINES)
    kept = weights.kept_share(old, new)
    assert 0 <= kept <= 1 + 1e-9
    whole = weights.weight(old)
    assert kept == pytest.approx(weights.weight(old & new) / whole if whole else 0.0)
    assert weights.kept_share(old, old) == (1.0 if old else 0.0)
    assert weights.kept_share(old, old + new) == pytest.approx(1.0 if old else 0.0)


def test_a_rare_word_that_goes_takes_more_away() -> None:
    weights = WordWeights(LINES)
    old = weights.words("return total")
    kept = [weights.kept_share(old, Counter([word])) for word in ("total", "return")]
    assert kept[0] < kept[1]
