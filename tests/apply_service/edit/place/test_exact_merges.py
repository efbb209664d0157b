"""Merges of updates that name the lines they replace."""

from __future__ import annotations

import math
from difflib import SequenceMatcher

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from apply_service.edit.place.exact_merges import (
    MAX_DOUBTFUL,
    MAX_MATCHES,
    OverlapError,
    exact_merges,
    merge_everywhere,
)
from apply_service.edit.read.segment import Segment, SegmentLine

FILE = ["start()", "    go()", "", "start()", "    go()", "stop()"]


def hunk(old: list[str], new: list[str], hint: int | None = None) -> Segment:
    lines = tuple(SegmentLine(text, number) for number, text in enumerate(new, start=1))
    return Segment(lines=lines, old=tuple(old), old_line_hint=hint)


lines_of_file = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=12)


@given(lines_of_file, lines_of_file)
def test_hunks_with_their_whole_surroundings_give_the_new_text(
    old: list[str], new: list[str]
) -> None:
    """As many lines of context as there are: each hunk is the whole file."""
    assume(old != new)
    found = exact_merges(old, [hunk(old, new, 1)])
    assert found is not None
    assert found.merges == (tuple(new),)
    assert found.certainty == 1.0


@given(st.permutations([f"line {number}" for number in range(9)]), st.data())
def test_hunks_of_unique_lines_give_the_new_text_in_any_order(
    original: list[str], data: st.DataObject
) -> None:
    new = [
        line
        for text in original
        for line in data.draw(st.sampled_from([[text], [], [text + "!"], [text, "more"]]))
    ]
    hunks = [
        hunk(original[low:high], new[start:end])
        for tag, low, high, start, end in SequenceMatcher(None, original, new).get_opcodes()
        if tag in ("replace", "delete")
    ]
    added = [
        (low, new[start:end])
        for tag, low, _, start, end in SequenceMatcher(None, original, new).get_opcodes()
        if tag == "insert"
    ]
    assume(not added and hunks)
    found = exact_merges(original, data.draw(st.permutations(hunks)))
    assert found is not None
    assert found.merges == (tuple(new),)


@pytest.mark.parametrize("indent", ["", "  ", "        "])
def test_old_lines_are_found_whatever_their_indentation(indent: str) -> None:
    found = exact_merges(FILE, [hunk([f"{indent}stop()"], [f"{indent}end()"])])
    assert found is not None
    assert found.merges == ((*FILE[:-1], "end()"),)
    assert found.certainty == 1.0


def test_old_lines_are_found_whatever_their_blank_lines() -> None:
    found = exact_merges(FILE, [hunk(["    go()", "start()"], ["start()"])])
    assert found is not None
    assert found.merges == (("start()", "start()", "    go()", "stop()"),)


@pytest.mark.parametrize(("hint", "place"), [(2, 1), (5, 4)])
def test_a_line_number_comes_first_among_equal_places_and_is_not_certain(
    hint: int, place: int
) -> None:
    found = exact_merges(FILE, [hunk(["    go()"], ["    run()"], hint)])
    assert found is not None
    assert [merge.index("    run()") for merge in found.merges] == [place, 5 - place]
    assert sum(map(math.exp, found.weights)) == pytest.approx(1.0)
    assert 0.5 < found.certainty <= MAX_DOUBTFUL
    assert [(part.start, part.end) for part in found.parts] == [(place, place + 1)]


def test_old_lines_that_are_nowhere_make_no_merge() -> None:
    assert exact_merges(FILE, [hunk(["halt()"], ["end()"])]) is None
    assert exact_merges(FILE, [hunk(["stop()"], ["end()"]), hunk([], ["more()"])]) is None


def test_hunks_that_claim_the_same_line_contradict_each_other() -> None:
    with pytest.raises(OverlapError):
        exact_merges(FILE, [hunk(["stop()"], ["end()"]), hunk(["stop()"], ["halt()"])])


def test_a_sign_of_the_format_among_new_lines_is_in_doubt() -> None:
    found = exact_merges(FILE, [hunk(["stop()"], ["end()", "======="])])
    assert found is not None
    assert found.certainty == MAX_DOUBTFUL


def test_hunks_in_the_order_of_the_file_take_their_places_in_that_order() -> None:
    """The second hunk also fits above the first one: where order counts, that is not meant."""
    hunks = [hunk(["start()", "    go()", "stop()"], ["end()"]), hunk(["    go()"], ["    run()"])]
    file = ["    go()", *FILE[3:], "    go()"]
    ordered = exact_merges(file, hunks, is_ordered=True)
    assert ordered is not None
    assert ordered.merges == (("    go()", "end()", "    run()"),)
    assert ordered.certainty == 1.0
    free = exact_merges(file, hunks)
    assert free is not None
    assert set(free.merges) == {*ordered.merges, ("    run()", "end()", "    go()")}
    assert free.certainty <= MAX_DOUBTFUL


def test_equal_hunks_for_all_equal_places_leave_no_doubt() -> None:
    found = exact_merges(FILE, [hunk(["    go()"], ["    run()"])] * 2, is_ordered=True)
    assert found is not None
    assert found.merges == (tuple(line.replace("go", "run") for line in FILE),)
    assert found.certainty == 1.0


CLASSES = ["class A:", "    def f(self):", "        go()", "", "class B:", "    def f(self):"]
CLASSES += ["        go()", "", "def g():", "    pass"]


@pytest.mark.parametrize(
    ("heading", "place", "is_certain"), [(1, 2, True), (6, 6, True), (9, 2, False)]
)
def test_lines_below_a_heading_are_those_of_its_block(
    heading: int, place: int, *, is_certain: bool
) -> None:
    below = replace(hunk(["        go()"], ["        run()"], heading), is_below_hint=True)
    found = exact_merges(CLASSES, [below])
    assert found is not None
    assert (found.certainty == 1.0) == is_certain
    if is_certain:
        assert [merge.index("        run()") for merge in found.merges] == [place]


def test_a_line_that_stands_above_the_heading_alone_is_in_doubt() -> None:
    below = replace(hunk(["class A:"], ["class C:"], 9), is_below_hint=True)
    found = exact_merges(CLASSES, [below])
    assert found is not None
    assert found.certainty == MAX_DOUBTFUL


def test_lines_at_the_end_of_the_file_are_the_last_ones() -> None:
    last = replace(hunk(["    go()"], ["    run()"]), has_gap_after=False)
    found = exact_merges([*FILE[:5], ""], [last])
    assert found is not None
    assert found.merges == ((*FILE[:4], "    run()", ""),)
    assert found.certainty == 1.0


def test_lost_indentation_is_read_from_the_lines_that_were_replaced() -> None:
    """A line that takes the place of another one stands as deep; of others the depth is open."""
    old = ["if a:", "go()", "stop()"]
    file = ["    if a:", "        go()", "    stop()"]
    found = exact_merges(file, [hunk(old, ["if a:", "run()", "stop()"])])
    assert found is not None
    assert found.merges == (("    if a:", "        run()", "    stop()"),)
    assert found.certainty == 1.0
    found = exact_merges(file, [hunk(old, ["if a:", "go()", "run()", "stop()"])])
    assert found is not None
    assert {merge[2] for merge in found.merges} == {"        run()", "    run()"}
    assert found.certainty <= MAX_DOUBTFUL


def test_blank_lines_of_the_context_stay_as_the_file_has_them() -> None:
    found = exact_merges(["a", "  ", "b"], [hunk(["a", "", "b"], ["a", "", "c"])])
    assert found is not None
    assert found.merges == (("a", "  ", "c"),)


SPACED = ["a", "", "b", "c", "   ", "d"]


@pytest.mark.parametrize(
    ("old", "new", "merges"),
    [
        # Blank lines that old and new have alike are the file's own.
        (["", "b", "c"], ["", "b", "x"], [["a", "", "b", "x", "   ", "d"]]),
        (["b", "c", "", ""], ["b", "x", "", ""], [["a", "", "b", "x", "   ", "d"]]),
        (["", "", "b", "c"], ["", "", "b", "x"], [["a", "", "b", "x", "   ", "d"]]),
        (["b", "", "c"], ["b", "", "x"], [["a", "", "b", "x", "   ", "d"]]),
        (["c", "d", ""], ["c", ""], [["a", "", "b", "c"]]),
        # The result is what both readings say.
        (["b", "c", "", ""], ["b", "x", ""], [["a", "", "b", "x", "", "d"]]),
        (["b", "", "c"], ["b", "x"], [["a", "", "b", "x", "   ", "d"]]),
        # As many as were sent, or one more than there are.
        (
            ["b", "", "c"],
            ["b", "", "", "x"],
            [["a", "", "b", "", "", "x", "   ", "d"], ["a", "", "b", "", "x", "   ", "d"]],
        ),
    ],
)
def test_misremembered_blank_lines_are_not_written(
    old: list[str], new: list[str], merges: list[list[str]]
) -> None:
    found = exact_merges(SPACED, [hunk(old, new)])
    assert found is not None
    assert [list(merge) for merge in found.merges] == merges
    assert (found.certainty == 1.0) == (len(merges) == 1)


def test_lines_that_stand_there_already_change_nothing() -> None:
    found = exact_merges(["    a", "    b"], [hunk(["  a", "  b"], ["    a", "    b"])])
    assert found is not None
    assert found.merges == (("    a", "    b"),)


def test_blocks_follow_one_another() -> None:
    turns = [hunk(["one()"], ["two()"]), hunk(["two()", "four()"], ["three()"])]
    found = exact_merges(["one()", "four()"], turns)
    assert found is not None
    assert (found.merges, found.certainty) == ((("three()",),), 1.0)
    assert exact_merges(["one()", "one()"], turns) is None


def test_a_block_goes_everywhere() -> None:
    block = hunk(["go()"], ["run()"])
    meant = tuple(line.replace("go", "run") for line in FILE)
    assert merge_everywhere(FILE, block) == meant
    assert merge_everywhere(["stop()"], block) is None


def test_a_block_goes_nowhere_if_a_place_was_not_looked_at_or_its_depth_is_open() -> None:
    many = [f"{' ' * (number % 3 + 1)}go()" for number in range(MAX_MATCHES + 1)]
    assert merge_everywhere(many, hunk(["go()"], ["run()"])) is None
    flat = hunk(["if a:", "go()"], ["if a:", "go()", "run()"])
    assert merge_everywhere(["if a:", "    go()"], flat) is None
