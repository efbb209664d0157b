from __future__ import annotations

from edited_texts import PROGRAM, edited_texts
from hypothesis import given, settings

from snippets.hunks import Hunk, find_hunks
from snippets.insertion_slides import slid_insertions


def test_a_definition_that_begins_as_its_neighbour_is_told_from_its_header_on() -> None:
    """The plain difference begins behind the header that both have."""
    original = ["class A:", "    @property", "    def a(self):", "        return 1"]
    new = ["    @property", "    def b(self):", "        return 2"]
    expected = [original[0], *new, *original[1:]]
    assert find_hunks(original, expected)[0].new(expected) != new
    (hunk,) = slid_insertions(find_hunks(original, expected), expected)
    assert hunk == Hunk(1, 1, 1, 4)


def test_an_insertion_that_is_whole_stays() -> None:
    expected = [*PROGRAM[:12], "def new():", "    pass", "", "", *PROGRAM[12:]]
    hunks = find_hunks(PROGRAM, expected)
    assert slid_insertions(hunks, expected) == hunks


@settings(max_examples=300, deadline=None)
@given(edited_texts())
def test_slid_hunks_tell_the_same_edit(texts: tuple[list[str], list[str]]) -> None:
    original, expected = texts
    result, shown_until = list[str](), 0
    for hunk in slid_insertions(find_hunks(original, expected), expected):
        assert hunk.old_start >= shown_until
        result += [*original[shown_until : hunk.old_start], *hunk.new(expected)]
        shown_until = hunk.old_end
    assert [*result, *original[shown_until:]] == expected
