from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from oracles.edits.region_truth import region_truths


def test_a_part_that_covers_the_edit() -> None:
    original, expected = list("abcdef"), list("abXYdef")
    assert region_truths(original, expected, [list("bcd")]) == [list("bXYd")]
    assert region_truths(original, expected, [original]) == [expected]


def test_an_insertion_between_two_parts_goes_to_one_of_them() -> None:
    original, expected = list("abcdef"), list("abcXdef")
    assert region_truths(original, expected, [list("abc"), list("def")]) == [
        list("abcX"),
        list("def"),
    ]
    assert region_truths(original, expected, [list("def")]) == [list("Xdef")]
    assert region_truths(original, expected, [list("abc")]) == [list("abcX")]


def test_a_repeated_line_may_be_inserted_in_any_part_that_can_hold_it() -> None:
    original, expected = list("ab}}c"), list("ab}}}c")
    assert region_truths(original, expected, [list("ab}")]) == [list("ab}}")]
    assert region_truths(original, expected, [list("}c")]) == [list("}}c")]


def test_a_part_beside_the_edit_stays_as_it_is() -> None:
    original, expected = list("abcdef"), list("aXcdef")
    assert region_truths(original, expected, [list("de")]) == [list("de")]


lines = st.lists(st.sampled_from(["a", "b", "}", ""]), max_size=12)


@given(st.data())
def test_truths_put_together_are_the_expected_text(data: st.DataObject) -> None:
    original, gaps, parts, expected = [], [], [], []
    for number in range(data.draw(st.integers(1, 3))):
        gap, part, truth = data.draw(lines), data.draw(lines), data.draw(lines)
        gaps.append([f"gap {number}", *gap])
        parts.append([f"part {number}", *part])
        original += [*gaps[-1], *parts[-1]]
        expected += [*gaps[-1], f"part {number}", *truth]
    truths = region_truths(original, expected, parts)
    joined = [line for gap, truth in zip(gaps, truths, strict=True) for line in [*gap, *truth]]
    assert joined == expected
