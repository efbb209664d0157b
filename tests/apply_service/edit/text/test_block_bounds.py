"""Lines that end a block, and the width of the white space before a line."""

from __future__ import annotations

import pytest

from apply_service.edit.text.block_bounds import closes_block, columns


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
