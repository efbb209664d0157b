"""SEARCH/REPLACE blocks name the lines that give way; nothing beside them is lost silently."""

from __future__ import annotations

import pytest

from apply_service.edit.read.segment import Snippet
from apply_service.edit.read.snippet import (
    MalformedSnippetError,
    UnsupportedOperationError,
    read_snippet,
)

ORIGINAL = ["import os", "import sys", "", "LIMIT = 10", "", "def first():", "    return LIMIT"]


def read(update: str, original: list[str] = ORIGINAL, path: str | None = "lib/x.py") -> Snippet:
    return read_snippet(update.splitlines(), original, path=path)


@pytest.mark.parametrize(
    "update",
    [
        "<<<<<<< SEARCH\nLIMIT = 10\n\n=======\nLIMIT = 20\n\n>>>>>>> REPLACE",
        "------- SEARCH\nLIMIT = 10\n\n=======\nLIMIT = 20\n\n+++++++ REPLACE",
        "<<<<<<< ORIGINAL\nLIMIT = 10\n\n=======\nLIMIT = 20\n\n>>>>>>> UPDATED",
        "lib/x.py\n```python\n<<<<<<< SEARCH\nLIMIT = 10\n\n=======\nLIMIT = 20\n\n"
        ">>>>>>> REPLACE\n```",
        "```\nlib/x.py\n<<<<<<< SEARCH\nLIMIT = 10\n\n=======\nLIMIT = 20\n\n>>>>>>> REPLACE\n```",
        "<<<<< SEARCH>\nLIMIT = 10\n\n=====\nLIMIT = 20\n\n>>>>> REPLACE",
        "<<<<<<< SEARCH\n:start_line:4\n-------\nLIMIT = 10\n\n=======\nLIMIT = 20\n\n"
        ">>>>>>> REPLACE",
    ],
)
def test_one_block_in_many_dialects(update: str) -> None:
    snippet = read(update)
    assert snippet.format == "search_replace"
    (segment,) = snippet.segments
    assert segment.old == ("LIMIT = 10", "")
    assert segment.texts == ["LIMIT = 20", ""]
    assert [line.role for line in segment.lines] == ["new", "context"]
    assert segment.old_line_hint == (4 if ":start_line:" in update else None)


def test_several_blocks_and_an_empty_side() -> None:
    snippet = read(
        "<<<<<<< SEARCH\nimport sys\n=======\n>>>>>>> REPLACE\n\n"
        "<<<<<<< SEARCH\n    return LIMIT\n=======\n    return 2 * LIMIT\n>>>>>>> REPLACE"
    )
    assert [(segment.old, segment.texts) for segment in snippet.segments] == [
        (("import sys",), []),
        (("    return LIMIT",), ["    return 2 * LIMIT"]),
    ]


def test_markers_on_both_sides_cut_a_block() -> None:
    snippet = read(
        "<<<<<<< SEARCH\nimport os\n# ...\ndef first():\n=======\nimport re\n# ...\n"
        "def first(n):\n>>>>>>> REPLACE"
    )
    assert [(segment.old, segment.texts) for segment in snippet.segments] == [
        (("import os",), ["import re"]),
        (("def first():",), ["def first(n):"]),
    ]


def test_a_divider_in_the_text_is_told_by_the_original() -> None:
    original = ["Title", "=======", "", "Text"]
    (segment,) = read(
        "<<<<<<< SEARCH\nTitle\n=======\n=======\nOther\n=======\n>>>>>>> REPLACE", original, "a.md"
    ).segments
    assert segment.old == ("Title", "=======")
    assert segment.texts == ["Other", "======="]


@pytest.mark.parametrize(
    ("update", "message"),
    [
        ("<<<<<<< SEARCH\nLIMIT = 10\n=======\nLIMIT = 20", "line 1 of the update .* has no end"),
        ("<<<<<<< SEARCH\nLIMIT = 10\n>>>>>>> REPLACE", "has 0 dividers"),
        (
            "<<<<<<< SEARCH\na\n=======\nb\n=======\nc\n>>>>>>> REPLACE",
            "has 2 dividers",
        ),
        ("<<<<<<< SEARCH\n=======\nLIMIT = 20\n>>>>>>> REPLACE", "has an empty SEARCH"),
        (
            "x = 1\n<<<<<<< SEARCH\nLIMIT = 10\n=======\nLIMIT = 20\n>>>>>>> REPLACE",
            r"line 1 of the update \(`x = 1`\) stands outside",
        ),
        (
            "<<<<<<< SEARCH\nLIMIT = 10\n=======\nLIMIT = 20\n# ...\n>>>>>>> REPLACE",
            "0 markers before its divider and 1 after",
        ),
        ("<<<<<<< SEARCH\na\n<<<<<<< SEARCH\nb\n=======\n>>>>>>> REPLACE", "has no end"),
    ],
)
def test_a_broken_block_is_refused(update: str, message: str) -> None:
    with pytest.raises(MalformedSnippetError, match=message):
        read(update)


def test_a_block_of_another_file_is_refused() -> None:
    with pytest.raises(UnsupportedOperationError, match=r"names the file lib/y\.py"):
        read("lib/y.py\n<<<<<<< SEARCH\nLIMIT = 10\n=======\nLIMIT = 20\n>>>>>>> REPLACE")


def test_an_empty_search_writes_a_new_file() -> None:
    snippet = read("<<<<<<< SEARCH\n=======\na = 1\n>>>>>>> REPLACE", [])
    assert (snippet.format, snippet.segments[0].texts) == ("whole", ["a = 1"])


@pytest.mark.parametrize(
    "original",
    [
        [*ORIGINAL, "<<<<<<< HEAD", "a", "=======", "b", ">>>>>>> topic"],
        [*ORIGINAL, '"""', "<<<<<<< SEARCH", "a", "=======", "b", ">>>>>>> REPLACE", '"""'],
    ],
)
def test_conflicts_and_blocks_of_the_file_itself_are_text(original: list[str]) -> None:
    update = "\n".join(["# ...", *original[6:-1], "c"])
    snippet = read(update, original)
    assert snippet.format == "lazy"
    assert snippet.segments[0].texts == update.splitlines()[1:]
