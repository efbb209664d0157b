from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import pytest
from edited_texts import PROGRAM, edited_texts
from hypothesis import given, settings
from hypothesis import strategies as st

from apply_service.edit.read.markers import is_marker
from snippets.hunks import EditHunk, find_hunks
from snippets.terse_snippets import slid_insertions, terse_segments, write_terse_snippet
from snippets.writer import WrittenSnippet

STACK = """\
export class Stack {
  constructor() {
    this.items = [];
    this.limit = 10;
    this.log = null;
  }

  push(item) {
    this.check();
    this.items.push(item);
    this.size += 1;
    this.report();
    return this;
  }

  pop() {
    this.check();
    this.size -= 1;
    this.report();
    return this.items.pop();
  }
}

export class Queue {
  constructor() {
    this.items = [];
  }
}
""".splitlines()


def snippet_of(
    original: Sequence[str], expected: Sequence[str], seed: object, language: str = "python"
) -> WrittenSnippet:
    rng = random.Random(str(seed))
    snippet = write_terse_snippet(original, expected, language=language, rng=rng)
    assert snippet is not None
    return snippet


def filled(lines: Sequence[str]) -> list[str]:
    return [line for line in lines if line.strip()]


def without_markers(lines: Sequence[str]) -> list[str]:
    return [line for line in filled(lines) if not is_marker(line)]


def is_run(part: Sequence[str], lines: Sequence[str]) -> bool:
    starts = range(len(lines) - len(part) + 1)
    return any(list(lines[start : start + len(part)]) == list(part) for start in starts)


def replaced(lines: Sequence[str], old: str, *new: str) -> list[str]:
    at = list(lines).index(old)
    return [*lines[:at], *new, *lines[at + 1 :]]


@settings(max_examples=300, deadline=None)
@given(edited_texts(), st.integers(0, 99))
def test_the_segments_at_their_true_places_are_the_expected_text(
    texts: tuple[list[str], list[str]], seed: int
) -> None:
    original, expected = texts
    hunks = slid_insertions(find_hunks(original, expected), expected)
    if not hunks:
        return
    rng = random.Random(str(seed))
    segments = terse_segments(original, expected, hunks, language="python", rng=rng)
    result, shown_until = list[str](), 0
    for segment in segments:
        assert segment.old_start >= shown_until
        result += [*original[shown_until : segment.old_start], *segment.new_lines]
        shown_until = segment.old_end
    assert [*result, *original[shown_until:]] == expected


@settings(max_examples=300, deadline=None)
@given(edited_texts(), st.integers(0, 99))
def test_an_update_has_all_new_lines_in_their_order_and_no_others(
    texts: tuple[list[str], list[str]], seed: int
) -> None:
    original, expected = texts
    rng = random.Random(str(seed))
    snippet = write_terse_snippet(original, expected, language="python", rng=rng)
    if snippet is None:
        assert not filled(original) or not filled(expected) or original == expected
        return
    assert snippet.style.startswith("terse_")
    sent = iter(without_markers(snippet.lines))
    assert all(line in sent for line in added_lines(original, expected))
    known = iter(filled(expected))
    assert all(line in known for line in without_markers(snippet.lines))


def added_lines(original: list[str], expected: list[str]) -> list[str]:
    hunks = slid_insertions(find_hunks(original, expected), expected)
    return filled([line for hunk in hunks for line in hunk.new(expected)])


@settings(max_examples=300, deadline=None)
@given(edited_texts(), st.integers(0, 99))
def test_the_lines_around_a_deletion_are_neighbours_in_the_update(
    texts: tuple[list[str], list[str]], seed: int
) -> None:
    original, expected = texts
    rng = random.Random(str(seed))
    snippet = write_terse_snippet(original, expected, language="python", rng=rng)
    for hunk in find_hunks(original, expected) if snippet is not None else ():
        if not hunk.is_deletion:
            continue
        start, end = hunk.new_start, hunk.new_end + 1
        while start >= 0 and not (start < hunk.new_start and expected[start].strip()):
            start -= 1
        while end <= len(expected) and not expected[end - 1].strip():
            end += 1
        assert is_run(expected[max(start, 0) : end], snippet.lines)


def test_the_same_seed_writes_the_same_update() -> None:
    expected = replaced(PROGRAM, "    total = 1", "    total = 2")
    assert snippet_of(PROGRAM, expected, 3) == snippet_of(PROGRAM, expected, 3)
    assert len({str(snippet_of(PROGRAM, expected, seed)) for seed in range(40)}) > 15


def test_no_change_and_an_empty_file_give_no_update() -> None:
    rng = random.Random(0)
    assert write_terse_snippet(PROGRAM, PROGRAM, language="python", rng=rng) is None
    assert write_terse_snippet([], PROGRAM, language="python", rng=rng) is None


def test_a_changed_line_is_sent_in_many_ways() -> None:
    old, new = "    this.size += 1;", "    this.size += 2;"
    expected = replaced(STACK, old, new)
    snippets = [snippet_of(STACK, expected, seed, "javascript") for seed in range(600)]
    styles = {snippet.style for snippet in snippets}
    forms = ("lone", "one_sided", "context", "header", "definition")
    assert styles >= {f"terse_{form}" for form in forms}
    codes = {tuple(without_markers(snippet.lines)) for snippet in snippets}
    assert (new,) in codes
    assert ("export class Stack {", "  push(item) {", new, "  }", "}") in codes
    assert ("  push(item) {", new) in codes
    assert tuple(filled(expected[7:14])) in codes


def test_a_marker_under_a_header_is_as_deep_as_its_body() -> None:
    expected = replaced(STACK, "    this.size += 1;", "    this.size += 2;")
    depths = {"export class Stack {": "  ", "  push(item) {": "    "}
    for seed in range(100):
        lines = snippet_of(STACK, expected, seed, "javascript").lines
        for above, line in pairwise(lines):
            if above in depths and is_marker(line):
                assert line.startswith(depths[above] + "//")


def test_a_new_definition_is_sent_alone_or_with_a_line_of_a_neighbour() -> None:
    new = ["def between(values):", "    return values[1:-1]"]
    expected = [*PROGRAM[:12], *new, "", "", *PROGRAM[12:]]
    codes = Counter(
        tuple(without_markers(snippet_of(PROGRAM, expected, seed).lines)) for seed in range(200)
    )
    for code in (new, [*new, "def second(values):"], ["    return total", *new]):
        assert codes[tuple(code)] > 10
    assert codes["def first(values):", *new] > 3


def test_a_line_unlike_the_one_it_replaces_is_not_sent_without_context() -> None:
    expected = replaced(PROGRAM, "        total *= value", "        raise ValueError")
    for seed in range(60):
        lines = without_markers(snippet_of(PROGRAM, expected, seed).lines)
        at = lines.index("        raise ValueError")
        assert lines[at - 1 : at] == ["    for value in values:"]
        assert lines[at + 1 : at + 2] == ["    return total"]


@pytest.mark.parametrize("size", [1, 4])
def test_outer_markers_are_left_off_at_times(size: int) -> None:
    original = [f"statement_{number}()" for number in range(60)]
    expected = [*original[:30], *(f"added_{number}()" for number in range(size)), *original[30:]]
    num_without = Counter[str]()
    for seed in range(600):
        lines = snippet_of(original, expected, seed).lines
        has_first, has_last = (line.startswith("statement") for line in (lines[0], lines[-1]))
        num_without.update({"first": has_first, "last": has_last, "both": has_first and has_last})
        assert not lines[0].startswith("added")
        assert not lines[-1].startswith("added")
    assert 0.08 < num_without["first"] / 600 < 0.3
    assert 0.06 < num_without["last"] / 600 < 0.25
    assert num_without["both"] > 5


def test_blank_lines_stand_on_both_sides_of_every_marker_or_of_none() -> None:
    original = [f"statement_{number}()" for number in range(90)]
    expected = list(original)
    for place in (70, 40, 10):
        expected[place : place + 1] = [f"{original[place]}  # done"]
    num_airy = 0
    for seed in range(200):
        lines = snippet_of(original, expected, seed).lines
        inner = [at for at in range(1, len(lines) - 1) if is_marker(lines[at])]
        blanks = {not lines[at + step].strip() for at in inner for step in (-1, 1)}
        assert len(blanks) == 1
        num_airy += blanks == {True}
    assert 60 < num_airy < 140


def test_every_marker_is_read_as_one() -> None:
    expected = replaced(STACK, "    this.size += 1;", "    this.size += 2;")
    for language in ("javascript", "python", "html", "css", "sql"):
        for seed in range(60):
            lines = snippet_of(STACK, expected, seed, language).lines
            assert all(line in expected for line in without_markers(lines))


def test_a_definition_that_begins_as_its_neighbour_is_told_from_its_header_on() -> None:
    """The plain difference begins behind the header that both have."""
    original = ["class A:", "    @property", "    def a(self):", "        return 1"]
    new = ["    @property", "    def b(self):", "        return 2"]
    expected = [original[0], *new, *original[1:]]
    assert find_hunks(original, expected)[0].new(expected) != new
    (hunk,) = slid_insertions(find_hunks(original, expected), expected)
    assert hunk == EditHunk(1, 1, 1, 4)


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
