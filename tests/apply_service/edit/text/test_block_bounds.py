"""Blocks by indentation: every answer against a search line by line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_service.edit.text.block_bounds import BlockBounds, closes_block, columns
from apply_service.edit.text.line_index import LineIndex

LINES = st.lists(
    st.builds(
        str.__add__,
        st.sampled_from(["", "  ", "    ", "\t"]),
        st.sampled_from(["a", "if b {", "{", "}", "end", "c:", ""]),
    ),
    max_size=12,
)


def bounds_of(text: str) -> BlockBounds:
    return BlockBounds(LineIndex(text.splitlines()))


@given(lines=LINES, border=st.integers(0, 12), depth=st.sampled_from([0, 2, 4, 8]))
def test_the_header_is_the_next_line_above_that_is_not_deeper(
    lines: list[str], border: int, depth: int
) -> None:
    border = min(border, len(lines))
    above = [at for at in range(border) if lines[at].strip() and columns(lines[at]) <= depth]
    expected = above[-1] if above and columns(lines[above[-1]]) == depth else None
    assert BlockBounds(LineIndex(lines)).header_of(border, depth) == expected


@given(lines=LINES, data=st.data())
def test_a_block_ends_with_its_closing_line_or_its_last_deeper_one(
    lines: list[str], data: st.DataObject
) -> None:
    filled = [at for at, line in enumerate(lines) if line.strip()]
    if not filled:
        return
    header = data.draw(st.sampled_from(filled))
    bounds = BlockBounds(LineIndex(lines))
    opener = bounds.body_of(header) - 1
    has_bracket = lines[opener].endswith("{")
    end = opener + 1
    expected: tuple[int, int | None] | None = None
    for at in range(opener + 1, len(lines)):
        if not lines[at].strip():
            continue
        if columns(lines[at]) > columns(lines[header]):
            end = at + 1
        elif columns(lines[at]) == columns(lines[header]) and closes_block(lines[at].strip()):
            expected = (at, at)
            break
        elif not has_bracket:
            expected = (end, None)
            break
    if expected is None and not has_bracket:
        expected = (end, None)
    assert bounds.end_of(header) == expected


def test_a_bracket_below_its_header_opens_the_block() -> None:
    bounds = bounds_of("if (a)\n\n{\n    go();\n}\nstop();\n")
    assert bounds.body_of(0) == 3
    assert bounds.end_of(0) == (4, 4)


def test_a_bracket_that_is_not_beside_the_header_opens_another_block() -> None:
    assert bounds_of("if (a)\n    go();\n{\n    stop();\n}\n").body_of(0) == 1
    assert bounds_of("    if (a)\n{\n}\n").body_of(0) == 1


def test_a_bracket_without_an_end_has_no_block() -> None:
    assert bounds_of("call(a, {\n    b })\n").end_of(0) is None


def test_lines_left_of_the_block_do_not_end_a_bracket() -> None:
    bounds = bounds_of("    if (a) {\n#ifdef B\n        go();\n#endif\n    }\n")
    assert bounds.end_of(0) == (4, 4)


@pytest.mark.parametrize("text", ["}", "});", ")", "]", "end", "done", "fi", "esac", "</div>"])
def test_lines_that_close(text: str) -> None:
    assert closes_block(text)


@pytest.mark.parametrize("text", ["", "ending", "endpoint()", "{", "f()", "<div>", "doner"])
def test_lines_that_do_not_close(text: str) -> None:
    assert not closes_block(text)


@pytest.mark.parametrize(
    ("line", "expected"), [("", 0), ("a", 0), ("  a", 2), ("\ta", 8), ("  \ta", 8), ("\t a", 9)]
)
def test_columns_count_a_tab_to_the_next_eight(line: str, expected: int) -> None:
    assert columns(line) == expected
