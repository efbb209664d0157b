"""An update is read in one form, whatever it was written in."""

from __future__ import annotations

import pytest

from apply_service.edit.read.segment import Segment, Snippet
from apply_service.edit.read.snippet import EmptySnippetError, NoMarkerError, read_snippet

ORIGINAL = """\
import os
import sys

LIMIT = 10


def first(path):
    name = os.path.basename(path)
    return name


def second(count):
    for number in range(count):
        print(number)


def third():
    return sys.argv
""".splitlines()


def read(update: str, original: list[str] = ORIGINAL, path: str | None = None) -> Snippet:
    return read_snippet(update.splitlines(), original, path=path)


def borders(segment: Segment) -> tuple[bool, bool]:
    return segment.has_gap_before, segment.has_gap_after


def test_a_lazy_update_is_cut_at_its_markers() -> None:
    snippet = read(
        "import os\nimport re\n# ... existing code ...\n\ndef fourth():\n    pass\n# ..."
        "\n# remove second\n# ..."
    )
    assert snippet.format == "lazy"
    assert [segment.texts for segment in snippet.segments] == [
        ["import os", "import re"],
        ["", "def fourth():", "    pass"],
    ]
    assert [borders(segment) for segment in snippet.segments] == [(False, True), (True, True)]
    assert [line.number for line in snippet.segments[1].lines] == [4, 5, 6]
    (removal,) = snippet.removals
    assert (removal.name, removal.number, removal.before_segment) == ("second", 8, 2)


def test_forgotten_outer_markers_are_gaps() -> None:
    (segment,) = read("def second(count):\n    # ...\n    print(number)").segments[:1]
    assert borders(segment) == (True, True)
    assert borders(read("# ...\ndef first(path):").segments[0]) == (True, True)
    assert borders(read("# ...\n    return sys.argv, 1").segments[0]) == (True, False)
    assert borders(read("# ...\ndef third():\n    return 3").segments[0]) == (True, False)


def ends(update: str, original: str, path: str = "a.py") -> tuple[bool, bool]:
    """Whether the update leaves lines before its first segment, and behind its last."""
    snippet = read(update, original.splitlines(), path)
    assert snippet.format == "lazy"
    return snippet.segments[0].has_gap_before, snippet.segments[-1].has_gap_after


SUMS = """\
import math
import os
import sys

START = 0


def first(values):
    total = START
    for value in values:
        total += value
    return total


def second(values):
    total = 1
    for value in values:
        total *= value
    return total
"""
BOX = """\
import { a } from "./a";

export class Box {
  open() {
    return a(this);
  }

  close() {
    return a(this);
  }
}
"""


@pytest.mark.parametrize(
    ("shown", "is_inside"),
    [
        ("import math\nimport re", False),
        ("import math as m", False),
        ("import os\nimport re", True),
        ("START = 1", True),
        ("def first(values):\n    total = 1", True),
        ("import re\nimport typing", False),
    ],
    ids=["first line", "variant", "below the first", "variant below", "below", "new"],
)
def test_an_update_begins_the_file_if_its_first_line_does(shown: str, is_inside: bool) -> None:
    assert ends(f"{shown}\n# ...\n", SUMS) == (is_inside, True)


@pytest.mark.parametrize(
    ("shown", "is_inside"),
    [
        ("        total *= 2 * value\n    return total", False),
        ("def second(values):\n    return math.prod(values)", True),
        ("def first(values):\n    total = 7\n    return total", True),
        ("    for value in values:\n        total += 2 * value", True),
    ],
    ids=["last line", "its definition", "equal to the last line", "above"],
)
def test_an_update_ends_the_file_if_its_last_line_does(shown: str, is_inside: bool) -> None:
    assert ends(f"# ...\n{shown}\n", SUMS) == (True, is_inside)


@pytest.mark.parametrize(
    ("shown", "is_inside"),
    [
        ("  close() {\n    return a(this, true);\n  }", True),
        ("  shut() {\n    return a(this);\n  }", True),
        ("  close() {\n    return a(this, true);\n  }\n}", False),
        ("  }\n\n  shut() {\n    return a(this, true);\n  }", True),
        ("}\n\nfunction shut() {\n}", False),
    ],
    ids=["method", "new method", "class", "behind a method", "behind the class"],
)
def test_a_lone_bracket_ends_the_file_only_where_it_stands_as_far_left(
    shown: str, is_inside: bool
) -> None:
    assert ends(f"// ...\n{shown}\n", BOX, "a.ts") == (True, is_inside)


def test_a_lone_short_line_at_the_border_of_an_update_is_inside_the_file() -> None:
    page = ["<html>", "<head>", "  <title>Shop</title>", "</head>", "</html>"]
    first, last = read("<head>\n  <!-- ... -->\n  <meta>\n</head>", page, "a.html").segments
    assert borders(first) == (True, True)
    assert borders(last) == (True, True)
    assert borders(read("<html>\n<!-- ... -->\n", page, "a.html").segments[0]) == (False, True)


def test_an_update_that_ends_with_a_line_inside_the_file_is_no_end_of_it() -> None:
    page = ["suite(() => {", "  first(() => {", "    a()", "  })", "  second(() => {", "  })", "})"]
    update = "  first(() => {\n    // ...\n  })\n\n  b()\n  second(() => {"
    assert borders(read(update, page, "a.js").segments[-1]) == (True, True)


def test_an_update_of_markers_alone_says_nothing() -> None:
    assert read("# ... existing code ...").segments == ()


def test_an_outer_fence_is_no_line_and_numbers_count_from_the_update() -> None:
    snippet = read("```python\nLIMIT = 10\nSTEP = 2\n# ...\n```")
    assert [(line.number, line.text) for line in snippet.segments[0].lines] == [
        (2, "LIMIT = 10"),
        (3, "STEP = 2"),
    ]


@pytest.mark.parametrize("update", ["", "\n \n", "```python\n\n```"])
def test_an_update_without_text_is_an_error(update: str) -> None:
    with pytest.raises(EmptySnippetError, match="lines and no text"):
        read(update)


def test_a_whole_file_is_one_segment_without_gaps() -> None:
    text = "\n".join(ORIGINAL).replace("LIMIT = 10", "LIMIT = 20")
    snippet = read(text)
    assert snippet.format == "whole"
    assert [borders(segment) for segment in snippet.segments] == [(False, False)]


@pytest.mark.parametrize(
    "update",
    [
        "    for number in range(count):\n        print(number, count)",
        "def second(count, start=0):\n    for i in range(start, count):\n        print(i)",
        "LIMIT = 10\nSTEP = 2",
    ],
)
def test_a_fragment_has_gaps_on_both_sides(update: str) -> None:
    snippet = read(update)
    assert snippet.format == "fragment"
    assert [borders(segment) for segment in snippet.segments] == [(True, True)]


def test_a_text_that_anchors_nowhere_is_refused() -> None:
    with pytest.raises(NoMarkerError, match="existing code"):
        read("def fourth():\n    return 4")


@pytest.mark.parametrize(
    "update",
    [
        "SELECT name FROM people\nWHERE age > 10",
        "body {\n  margin: 0;\n}\n\n.card {\n  padding: 1rem;\n}",
        "def fourth(number):\n    print(number)\n\n\ndef fifth(name):\n    return [name]",
        "Sure, I will make that change for you.",
    ],
    ids=["another language", "brackets", "other definitions", "prose"],
)
def test_an_update_that_is_nothing_like_the_file_is_refused(update: str) -> None:
    with pytest.raises(NoMarkerError, match="existing code"):
        read(update)


def test_lines_lost_inside_a_fragment_are_refused_with_the_place_of_the_marker() -> None:
    original = [*ORIGINAL[:4], *(f"value_{number} = {number}" for number in range(30))]
    original += ORIGINAL[4:]
    with pytest.raises(NoMarkerError, match=r"before line 3 of the update \(`def third\(\):`\)"):
        read("import os\nimport re\ndef third():\n    return 3", original)


def test_an_update_for_an_empty_file_is_the_file() -> None:
    assert read("x = 1\ny = 2", []).format == "whole"
