"""Pure insertions: which lines of the original stand around new ones."""

from __future__ import annotations

import pytest

from apply_service.edit.place.insertions import MAX_INSERTIONS, Insertion, InsertionFinder
from apply_service.edit.text.line_index import LineIndex

ORIGINAL = ["def a():", "    return 1", "", "def b():", "    return 2"]


def found(
    original: list[str], texts: list[str], *, is_first: bool = False, is_last: bool = False
) -> list[Insertion]:
    index = LineIndex(original)
    return InsertionFinder(texts, index, is_first=is_first, is_last=is_last).find()


def test_lines_on_both_sides_come_first() -> None:
    assert found(ORIGINAL, ["    return 1", "", "new()", "", "def b():"])[0] == Insertion(1, 4, 2)


def test_a_new_block_may_begin_like_the_one_that_follows() -> None:
    original = ["{", "  kind: 1,", "  name: a,", "}"]
    texts = ["{", "  kind: 1,", "  name: new,", "}", "{", "  kind: 1,", "  name: a,"]
    spans = {(one.start, one.end): one for one in found(original, texts)}
    assert spans[0, 3].num_after == 1
    assert spans[0, 1] == Insertion(0, 1, 1)


def test_one_side_alone_is_enough() -> None:
    assert found(ORIGINAL, ["    return 2", "", "new()"]) == [Insertion(4, 5, 1)]
    assert found(ORIGINAL, ["new()", "", "def a():"]) == [Insertion(0, 1, 0)]


@pytest.mark.parametrize(
    ("texts", "is_first", "is_last", "span"),
    [
        (["import new", "def a():"], True, False, (0, 1)),
        (["    return 2", "new()"], False, True, (4, 5)),
    ],
)
def test_a_border_of_the_file_is_a_side(
    texts: list[str], is_first: bool, is_last: bool, span: tuple[int, int]
) -> None:
    spans = [
        (one.start, one.end) for one in found(ORIGINAL, texts, is_first=is_first, is_last=is_last)
    ]
    assert spans == [span]


def test_nothing_is_inserted_without_new_lines_or_in_another_indentation() -> None:
    assert found(ORIGINAL, ["    return 1", "", "def b():"])[0].num_after == 0
    assert not found(ORIGINAL, ["        return 1", "new()"])
    assert not found(ORIGINAL, ORIGINAL[1:2])


def test_limits_are_told() -> None:
    finder = InsertionFinder(["x", "new"], LineIndex(["x"] * 500), is_first=False, is_last=False)
    assert len(finder.find()) == MAX_INSERTIONS
    assert finder.is_limited
