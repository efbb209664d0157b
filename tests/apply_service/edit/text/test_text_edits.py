from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.edits.lsp_document import apply_offset_edits, apply_text_edits

from apply_service.edit.text.diff import unified_diff
from apply_service.edit.text.text_edits import (
    Position,
    PositionEncoding,
    TextEdit,
    offset_edits,
    text_edits,
)

PIECES = [
    "a",
    "b",
    "déjà",
    "\U0001f600",
    "x\U00010348y",
    "",
    "\t",
    "\u2028",
    "\x0b",
    "\x0c",
    "\x85",
]
ENDS = ["\n", "\r\n", "\r", ""]
texts = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(ENDS)), max_size=12).map(
    lambda lines: "".join(piece + end for piece, end in lines)
)


@st.composite
def versions(draw: st.DrawFn) -> tuple[str, str]:
    """A text and another one that shares most of it."""
    old = draw(texts)
    start = draw(st.integers(0, len(old)))
    end = draw(st.integers(start, len(old)))
    return old, old[:start] + draw(texts) + old[end:]


@given(versions())
def test_applying_the_edits_gives_exactly_the_new_text(pair: tuple[str, str]) -> None:
    old, new = pair
    assert apply_text_edits(old, text_edits(old, new)) == new


@given(versions(), st.sampled_from(["utf-8", "utf-16", "utf-32"]))
def test_every_encoding_counts_its_own_units(
    pair: tuple[str, str], encoding: PositionEncoding
) -> None:
    old, new = pair
    edits = text_edits(old, new, encoding=encoding)
    assert apply_text_edits(old, edits, encoding=encoding) == new
    offsets = offset_edits(old, new, encoding=encoding)
    assert apply_offset_edits(old, offsets, encoding=encoding) == new


@given(texts, texts)
def test_unrelated_texts_too(old: str, new: str) -> None:
    assert apply_text_edits(old, text_edits(old, new)) == new


@given(versions())
def test_edits_are_in_order_and_never_touch(pair: tuple[str, str]) -> None:
    edits = text_edits(*pair)
    for left, right in pairwise(edits):
        assert left.end < right.start


@given(versions())
def test_edits_are_the_changed_lines_of_the_diff(pair: tuple[str, str]) -> None:
    old, new = (text.replace("\r\n", "\n").replace("\r", "\n") for text in pair)
    diff = unified_diff(old, new).split("\n")[2:]
    removed = [line[1:] for line in diff if line.startswith("-")]
    added = [line[1:] for line in diff if line.startswith("+")]
    edits = text_edits(old, new)
    old_lines = old.split("\n")
    assert removed == [line for edit in edits for line in _taken(edit, old_lines)]
    assert added == [
        line for edit in edits for line in edit.text.removesuffix("\n").split("\n") if edit.text
    ]


def _taken(edit: TextEdit, lines: list[str]) -> list[str]:
    return lines[edit.start.line : edit.end.line + (edit.end.character > 0)]


@given(texts)
def test_equal_texts_need_no_edit(text: str) -> None:
    assert text_edits(text, text) == []


@pytest.mark.parametrize(
    ("old", "new", "edit"),
    [
        ("", "a\n", TextEdit(Position(0, 0), Position(0, 0), "a\n")),
        ("a\n", "a\nb", TextEdit(Position(1, 0), Position(1, 0), "b")),
        ("a\nb\n", "a\n", TextEdit(Position(1, 0), Position(2, 0), "")),
        ("a\n\U0001f600b", "a\n", TextEdit(Position(1, 0), Position(1, 3), "")),
        ("a\r\nb\r\n", "a\r\nc\r\n", TextEdit(Position(1, 0), Position(2, 0), "c\r\n")),
        ("a\r\nb", "a\rb", TextEdit(Position(0, 0), Position(1, 0), "a\r")),
        ("a\rb\rc", "a\rd\rc", TextEdit(Position(1, 0), Position(2, 0), "d\r")),
    ],
)
def test_positions_count_lines_and_utf16_units(old: str, new: str, edit: TextEdit) -> None:
    assert text_edits(old, new) == [edit]


def test_a_large_text_needs_only_its_changed_lines() -> None:
    lines = [f"line {number % 50} of {number}\n" for number in range(50_000)]
    changed = [*lines[:100], "new\n", *lines[100:40_000], *lines[40_003:]]
    edits = text_edits("".join(lines), "".join(changed))
    assert edits == [
        TextEdit(Position(100, 0), Position(100, 0), "new\n"),
        TextEdit(Position(40_000, 0), Position(40_003, 0), ""),
    ]
