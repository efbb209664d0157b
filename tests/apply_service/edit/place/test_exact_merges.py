"""Merges of updates that name the lines they replace."""

from __future__ import annotations

import math
from difflib import SequenceMatcher

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from apply_service.edit.place.exact_merges import (
    MAX_DOUBTFUL,
    OverlapError,
    exact_merges,
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
