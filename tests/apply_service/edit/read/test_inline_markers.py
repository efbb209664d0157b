"""A marker inside a line is resolved only if one reading of the line is possible."""

from __future__ import annotations

import pytest

from apply_service.edit.read.segment import Segment
from apply_service.edit.read.snippet import read_snippet

OPTIONS = "export const options = { timeout: 5000, retries: 2, verbose: false };"
ORIGINAL = [
    OPTIONS,
    "",
    "const defaults = {",
    "  concurrency: 4,",
    "  size: [1, 2],",
    "};",
    "",
    "    return build(name, size, depth);",
    'const names = ["a, b", "c"];',
    "twice(1, 2);",
    "twice(3, 4);",
]


def read(*lines: str) -> list[Segment]:
    update = ["// ... existing code ...", *lines, "// ... existing code ..."]
    return list(read_snippet(update, ORIGINAL, path="a.js").segments)


@pytest.mark.parametrize(
    ("line", "merged"),
    [
        (
            "export const options = { timeout: 10, /* ... existing code ... */ };",
            "export const options = { timeout: 10, retries: 2, verbose: false };",
        ),
        (
            "export const options = { /* ... existing options ... */, verbose: true };",
            "export const options = { timeout: 5000, retries: 2, verbose: true };",
        ),
        (
            "export const options = { timeout: 5000, depth: 3, /* ... rest ... */ };",
            "export const options = { timeout: 5000, depth: 3, retries: 2, verbose: false };",
        ),
        (
            "export const options = { // ... existing ..., verbose: true };",
            "export const options = { timeout: 5000, retries: 2, verbose: true };",
        ),
        ("  size: [1, /* ... existing ... */],", "  size: [1, 2],"),
        (
            "    return build(name, /* ... existing arguments ... */);",
            "    return build(name, size, depth);",
        ),
        ('const names = ["a, b", /* ... existing ... */];', 'const names = ["a, b", "c"];'),
    ],
)
def test_items_are_merged_into_the_one_line_that_is_meant(line: str, merged: str) -> None:
    (segment,) = read(line)
    assert segment.texts == [merged]
    assert not segment.lines[0].has_inline_marker


@pytest.mark.parametrize(
    "line",
    [
        "    return build(other, /* ... existing arguments ... */);",
        "twice(1, /* ... existing ... */);",
        "unknown({ a: 1, /* ... existing ... */ });",
        "export const options = { /* ... existing ... */ }, other;",
    ],
)
def test_what_could_be_read_in_two_ways_stays_marked(line: str) -> None:
    (segment,) = read(line)
    assert [(one.text, one.has_inline_marker) for one in segment.lines] == [(line, True)]


@pytest.mark.parametrize(
    ("line", "head"),
    [
        ("  concurrency: 8, // ... existing code ...", "  concurrency: 8,"),
        ("const defaults = { // ... existing code ...", "const defaults = {"),
        ("const defaults = { /* ... existing code ... */ };", "const defaults = {"),
        ("  concurrency: 8, // ... rest of the options", "  concurrency: 8,"),
    ],
)
def test_a_marker_behind_code_is_a_gap_after_it(line: str, head: str) -> None:
    first, second = read(line, "twice(3, 4);")
    assert (first.texts, second.texts) == ([head], ["twice(3, 4);"])
    assert (first.has_gap_after, second.has_gap_before) == (True, True)


def test_an_inline_marker_alone_leaves_both_borders_open() -> None:
    line = "export const options = { timeout: 10, /* ... existing code ... */ };"
    (segment,) = read_snippet([line], ORIGINAL, path="a.js").segments
    assert (segment.has_gap_before, segment.has_gap_after) == (True, True)
