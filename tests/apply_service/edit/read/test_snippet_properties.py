"""Reading ends with segments that hold the lines of the update, or with SnippetError."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apply_service.edit.read.markers import MarkerReader
from apply_service.edit.read.snippet import SnippetError, read_snippet
from apply_service.edit.text.definition_names import definition_names

ORIGINAL = """\
import os

LIMIT = 10

def first(path):
    name = os.path.basename(path)
    return name

# ... existing code ...
- item
class Second:
    def run(self): ...
""".splitlines()

PIECES = st.sampled_from(
    [
        *ORIGINAL,
        *(f"-{line}" for line in ORIGINAL),
        *(f" {line}" for line in ORIGINAL),
        *("", " ", "+new = 1", "new = 1", "-", "+", "...", "…", "{{ edit_1 }}", "UNCHANGED CODE"),
        *(
            "# ... existing code ...",
            "// ...",
            "# remove LIMIT",
            "# remove nothing",
            "x # ... rest ...",
        ),
        *("f(a, /* ... existing ... */)", "{ /* ... existing ... */ }", "/* ... existing ... */ }"),
        *(
            "@@",
            "@@ -1,2 +3,4 @@",
            "@@ def first",
            "--- a/x.py",
            "+++ b/x.py",
            "diff --git a/x b/x",
        ),
        *("<<<<<<< SEARCH", "------- SEARCH", "=======", ">>>>>>> REPLACE", "+++++++ REPLACE"),
        *("*** Begin Patch", "*** Update File: x.py", "*** End of File", "*** End Patch"),
        *("```", "```python", "~~~", "lib/x.py", "Here is the change:", ":start_line:2", "-------"),
        *(
            "# Add a new method to close it",
            "// BEGIN REPLACE first",
            "\\ No newline at end of file",
        ),
    ]
)
LINES = st.lists(
    st.one_of(PIECES, st.text(st.characters(exclude_characters="\n"), max_size=30)), max_size=25
)
PATHS = st.sampled_from([None, "lib/x.py", "README.md", "a.yml", "a.ts", "a.diff"])


@settings(max_examples=400, deadline=None)
@given(update=LINES, original=st.one_of(st.just(ORIGINAL), LINES), path=PATHS)
def test_reading_ends_with_segments_or_a_snippet_error(
    update: list[str], original: list[str], path: str | None
) -> None:
    try:
        snippet = read_snippet(update, original, path=path)
    except SnippetError:
        return
    numbers = [line.number for segment in snippet.segments for line in segment.lines]
    assert len(numbers) == len(set(numbers))
    assert snippet.format == "search_replace" or numbers == sorted(numbers)
    assert all(1 <= number <= len(update) for number in numbers)
    for segment in snippet.segments:
        assert segment.lines or segment.old
        is_explicit = snippet.format in ("diff", "patch", "search_replace")
        assert (segment.old is not None) == is_explicit or snippet.format == "fragment"
    for removal in snippet.removals:
        assert 0 <= removal.before_segment <= len(snippet.segments)


@settings(max_examples=200, deadline=None)
@given(
    parts=st.lists(
        st.lists(st.sampled_from([*ORIGINAL[:7], "new = 1", "other()", ""]), max_size=5),
        min_size=2,
        max_size=6,
    )
)
def test_every_text_line_of_a_lazy_update_is_in_one_segment(parts: list[list[str]]) -> None:
    update = [line for part in parts for line in (*part, "# ... existing code (kept) ...")][:-1]
    expected = [part for part in parts if any(line.strip() for line in part)]
    if not any(line.strip() for line in update):
        return
    snippet = read_snippet(update, ORIGINAL)
    assert snippet.format == "lazy"
    assert [segment.texts for segment in snippet.segments] == expected
    for segment in snippet.segments:
        assert [update[line.number - 1] for line in segment.lines] == segment.texts


@settings(max_examples=200, deadline=None)
@given(
    hunk=st.lists(
        st.tuples(st.sampled_from(" +-"), st.sampled_from(["x = 1", "  y", "z()", "", "- w"])),
        min_size=1,
        max_size=12,
    ).filter(lambda hunk: any(sign != " " and text for sign, text in hunk))
)
def test_every_line_of_a_hunk_is_kept(hunk: list[tuple[str, str]]) -> None:
    original = ["head of file", *(text for sign, text in hunk if sign != "+"), "foot of file"]
    update = ["@@ -2,3 +2,3 @@", *(sign + text for sign, text in hunk)]
    segments = read_snippet(update, original).segments
    new = [text for sign, text in hunk if sign != "-" and text.strip()]
    old = [text for sign, text in hunk if sign != "+" and text.strip()]
    assert [line.text for one in segments for line in one.lines if line.text.strip()] == new
    assert [text for one in segments for text in one.old or () if text.strip()] == old


HUGE = 20_000
FILE = [f"def function_{number}(a):" for number in range(HUGE)]


@pytest.mark.parametrize(
    ("update", "original"),
    [
        (["# ... existing code ..."] * HUGE, FILE),
        ([text for line in FILE[:5000] for text in ("# ... existing code ...", line)], FILE),
        ([f"# remove function_{number}" for number in range(5000)], FILE),
        (["x = 1"] * HUGE, ["x = 1"] * HUGE),
        (["@@", *(["-x = 1", "+y = 1"] * HUGE)], ["x = 1"] * HUGE),
        (["@@", *([" }", "-return x", "+y"] * HUGE)], ["}", "return x", "if (a) {"] * HUGE),
        ([t for n in range(3000) for t in (f"@@ function_{n}", "-    a", "+    b")], FILE),
        (["<<<<<<< SEARCH", *(["x = 1", "======="] * HUGE), ">>>>>>> REPLACE"], ["x = 1"] * HUGE),
        (["```python", "a = 1", "```"] * 5000, FILE),
        ([f"f(a{n}, /* ... existing args ... */)" for n in range(3000)], FILE),
        (["# ...", "... " * 250_000, "-" + "x(y, " * 200_000], ["x", "x(y, " * 200_000]),
        (["# ...", *(["// Add the " + "new " * 40] * 2000)], FILE),
        (["# ...", *(["const a = (" + "x" * 140] * 2000)], ["pub " * 40 + "x"] * 2000),
    ],
)
def test_hostile_updates_end(update: list[str], original: list[str]) -> None:
    with suppress(SnippetError):
        assert read_snippet(update, original).segments is not None


def test_hostile_lines_end_for_every_pattern() -> None:
    lines = [
        piece * (150 // len(piece)) for piece in ("a ", "(", "a<", "pub ", "a.", "# ", '"', "x y (")
    ]
    assert definition_names(lines * 200) is not None
    assert MarkerReader(lines).read("# remove " + "a" * 140) is None
