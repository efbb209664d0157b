from __future__ import annotations

import random

import pytest
from edited_texts import PROGRAM, edited_texts
from hypothesis import given, settings
from hypothesis import strategies as st

from snippets.hunks import find_hunks
from snippets.marker_forms import MarkerWriter
from snippets.writer import GENERATOR_VERSION, write_snippet

PINNED = [
    (
        0,
        [*PROGRAM[:2], "LIMIT = 12", *PROGRAM[3:]],
        [
            *["import os", "", "LIMIT = 12", "", "", "def first(values):", "    total = 0"],
            "    # ... existing code ...",
        ],
    ),
    (
        2,
        [*PROGRAM[:16], "    check(total)", *PROGRAM[16:]],
        [
            "# ... existing code ...",
            "",
            *PROGRAM[12:16],
            "    check(total)",
            "    # ... existing code ...",
        ],
    ),
    (
        1,
        [*PROGRAM[:12], *PROGRAM[19:]],
        [
            "// ... existing logic ...",
            *PROGRAM[7:12],
            "def third(values):",
            "    // ... existing functions ...",
        ],
    ),
]


def apply_by_context(original: list[str], update: list[str]) -> list[str]:
    """An applier for updates whose every segment has context, written without the generator.

    A segment replaces the original from its first line that stands there on to the first place
    after that where its last lines that stand there follow.
    """
    segments: list[list[str]] = [[]]
    for line in update:
        if "..." in line:
            segments.append([])
        else:
            segments[-1].append(line)
    result: list[str] = []
    position = 0
    has_leading = "..." in update[0]
    has_trailing = "..." in update[-1]
    filled = [segment for segment in segments if segment]
    for number, segment in enumerate(filled):
        start, end = place_of(original, segment)
        if number == 0 and not has_leading:
            start = 0
        if number == len(filled) - 1 and not has_trailing:
            end = len(original)
        result += original[position:start] + segment
        position = end
    return result + original[position:]


def place_of(original: list[str], segment: list[str]) -> tuple[int, int]:
    unique = {line for line in original if original.count(line) == 1 and line in segment}
    anchors = [line for line in segment if line in unique]
    first, last = anchors[0], anchors[-1]
    start = original.index(first) - segment.index(first)
    end = original.index(last) + len(segment) - segment.index(last)
    return start, end


def snippet_of(original: list[str], expected: list[str], seed: object = 0) -> list[str] | None:
    snippet = write_snippet(original, expected, language="python", rng=random.Random(str(seed)))
    return None if snippet is None else snippet.lines


def test_the_same_seed_writes_the_same_snippet() -> None:
    expected = [*PROGRAM[:7], "    assert values", *PROGRAM[7:]]
    assert snippet_of(PROGRAM, expected, 3) == snippet_of(PROGRAM, expected, 3)
    assert len({str(snippet_of(PROGRAM, expected, seed)) for seed in range(30)}) > 5


@pytest.mark.parametrize(("seed", "expected", "update"), PINNED)
def test_what_earlier_data_were_written_with_is_written_still(
    seed: int, expected: list[str], update: list[str]
) -> None:
    """Case files are made again from the version of the writer and a seed alone."""
    assert GENERATOR_VERSION == 5
    assert snippet_of(PROGRAM, expected, f"pinned:{seed}") == update


def test_no_change_and_an_empty_file_give_no_snippet() -> None:
    assert snippet_of(PROGRAM, PROGRAM) is None
    assert snippet_of([], PROGRAM) is None


@settings(max_examples=300, deadline=None)
@given(edited_texts(), st.integers(0, 99))
def test_every_added_line_is_sent_and_every_other_line_is_known(
    texts: tuple[list[str], list[str]], seed: int
) -> None:
    original, expected = texts
    update = snippet_of(original, expected, seed)
    if update is None:
        return
    for hunk in find_hunks(original, expected):
        for line in expected[hunk.new_start : hunk.new_end]:
            assert line in update
    strangers = [line for line in update if line not in expected]
    assert all("..." in line or "remove" in line for line in strangers)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**9))
def test_context_leads_an_independent_applier_to_the_expected_file(seed: int) -> None:
    rng = random.Random(seed)
    original = [f"statement_{number}()" for number in range(rng.randint(8, 30))]
    start = rng.randint(2, len(original) - 5)
    added = [f"added_{number}()" for number in range(rng.randint(0, 3))]
    end = start + rng.randint(0 if added else 1, 3)
    expected = original[:start] + added + original[end:]
    snippet = write_snippet(original, expected, language="python", rng=random.Random(seed))
    assert snippet is not None
    if snippet.style == "context":
        assert apply_by_context(original, snippet.lines) == expected


@pytest.mark.parametrize("seed", range(40))
def test_repeated_lines_get_enough_context_to_be_told_apart(seed: int) -> None:
    """`return total` stands twice: the segment must hold a line of the second function alone."""
    place = 16
    expected = [*PROGRAM[:place], "    check(total)", *PROGRAM[place:]]
    update = snippet_of(PROGRAM, expected, seed)
    assert update is not None
    only_there = {"def second(values):", "    total = 1", "        total *= value"}
    only_there |= {"def third(values):", "    return sorted(values)[:LIMIT]"}
    assert only_there & set(update)


def test_an_edit_between_equal_blocks_has_no_clear_place() -> None:
    original = ["start()"] * 40
    assert snippet_of(original, [*original[:20], "stop()", *original[20:]]) is None


@pytest.mark.parametrize("seed", range(30))
def test_a_deletion_is_shown_by_its_neighbours_or_by_a_directive(seed: int) -> None:
    expected = PROGRAM[:12] + PROGRAM[19:]
    update = snippet_of(PROGRAM, expected, seed)
    assert update is not None
    if any("remove second" in line for line in update):
        assert "def second(values):" not in update
    else:
        before = update.index("    return total")
        assert "def third(values):" in update[before : before + 4]


def test_a_removal_directive_stands_only_for_a_whole_definition() -> None:
    """Half of a function goes: `remove second` would say too much."""
    expected = PROGRAM[:12] + PROGRAM[15:]
    for seed in range(60):
        update = snippet_of(PROGRAM, expected, seed)
        assert update is None or not any("remove" in line for line in update)


def test_whole_definitions_are_sent_without_context() -> None:
    expected = [line.replace("total *= value", "total *= value + 1") for line in PROGRAM]
    styles = set()
    for seed in range(60):
        snippet = write_snippet(PROGRAM, expected, language="python", rng=random.Random(str(seed)))
        assert snippet is not None
        styles.add(snippet.style)
        if snippet.style == "definition":
            code = [x for x in snippet.lines if x.strip() and "..." not in x]
            assert code == expected[12:17]
    assert "definition" in styles


def test_markers_stand_exactly_where_lines_are_left_out() -> None:
    expected = [*PROGRAM[:2], "LIMIT = 12", *PROGRAM[3:]]
    for seed in range(40):
        update = snippet_of(PROGRAM, expected, seed)
        assert update is not None
        assert "..." in update[-1]
        assert ("..." in update[0]) == (update[0] != "import os")


def test_marker_syntax_follows_the_language_or_slashes() -> None:
    openings = set()
    for seed in range(80):
        marker = MarkerWriter("html", random.Random(seed)).marker(["<p>"], 0, 1)
        assert marker.startswith(("<!-- ", "// "))
        assert marker.endswith("-->") == marker.startswith("<!--")
        openings.add(marker[:2])
    assert openings == {"<!", "//"}
