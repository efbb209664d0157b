"""What stands around a line decides whether it is a marker, a directive or text."""

from __future__ import annotations

import pytest

from apply_service.edit.read.marker_scan import MarkerScan
from apply_service.edit.read.original_index import OriginalIndex
from apply_service.edit.read.segment import SegmentLine
from apply_service.edit.read.snippet import read_snippet

ORIGINAL = [
    'UPDATE = """',
    "# ... existing code ...",
    'print("new")',
    '"""',
    "",
    "def cached(): ...",
]


def kinds(update: list[str], language: str | None = None) -> list[str | None]:
    scan = MarkerScan(OriginalIndex(ORIGINAL), language=language)
    lines = [SegmentLine(text, number) for number, text in enumerate(update, start=1)]
    return [marker.kind if marker is not None else None for marker in scan.scan(lines)]


def test_a_marker_of_the_original_is_text_beside_its_neighbours_alone() -> None:
    marker = "# ... existing code ..."
    assert kinds(['UPDATE = """', marker, 'print("newer")']) == [None, None, None]
    assert kinds(["a = 1", marker, 'print("new")']) == [None, None, None]
    assert kinds([marker, "a = 1", marker]) == ["keep", None, "keep"]


def test_a_directive_in_front_of_new_code_is_its_comment() -> None:
    assert kinds(["# remove cached", "items = set(items)"]) == [None, None]
    assert kinds(["# remove cached", "", "items = set(items)"]) == ["remove", None, None]
    assert kinds(["# remove cached", "# ..."]) == ["remove", "keep"]
    assert kinds(["# remove cached", 'print("new")']) == ["remove", None]


def test_a_directive_alone_between_markers_may_name_what_is_not_there() -> None:
    assert kinds(["# ...", "# remove archive!", "# ..."]) == ["keep", "remove", "keep"]
    assert kinds(["# ...", "# remove archive!", "x = 1"]) == ["keep", None, None]
    snippet = read_snippet(["# ...", "# remove archive!", "# ..."], ORIGINAL)
    assert [removal.name for removal in snippet.removals] == ["archive!"]


def test_a_listing_is_a_marker_of_lazy_updates_alone() -> None:
    listing = "# ... fixtures and TestAdding ..."
    assert kinds(["a = 1", listing, "b = 1"]) == [None, "keep", None]
    assert kinds([listing, "# remove cached", listing]) == ["keep", "remove", "keep"]
    assert not MarkerScan(OriginalIndex(ORIGINAL)).is_marker(listing)
    assert read_snippet(["x = 1", listing], []).format == "whole"


def test_a_listing_of_the_original_is_text_whatever_stands_beside_it() -> None:
    scan = MarkerScan(OriginalIndex([*ORIGINAL, "# ... helpers ..."]))
    assert scan.scan([SegmentLine("    # ... helpers ...", 1)]) == [None]


def test_in_markdown_only_a_comment_of_the_text_is_a_listing() -> None:
    update = ["# ... check the token ...", "<!-- ... first chapters ... -->"]
    assert kinds(update, "markdown") == [None, "keep"]


@pytest.mark.parametrize(
    ("language", "kind"),
    [("kotlin", "keep"), ("go", "keep"), ("python", None), ("yaml", None), (None, None)],
)
def test_three_dots_are_a_marker_where_they_say_nothing_else(
    language: str, kind: str | None
) -> None:
    assert kinds(["...", "a", "  ..."], language) == [kind, None, kind]
