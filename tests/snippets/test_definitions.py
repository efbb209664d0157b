from __future__ import annotations

import pytest

from snippets.definitions import (
    CodeBlock,
    blocks_around,
    has_definition,
    is_whole,
)

NESTED = """\
class Store {
  load(
    name,
  ) {
    open(name);
  }
}
""".splitlines()


def test_blocks_are_found_from_the_inside_out() -> None:
    lines = ["class A:", "    def f(", "        self,", "    ):", "        return 1", "", "x = 1"]
    assert list(blocks_around(lines, 4, 5, "python")) == [
        CodeBlock(1, 4, 5, 5),
        CodeBlock(0, 1, 5, 5),
    ]
    assert not list(blocks_around(lines, 6, 7, "python"))


def test_a_closing_line_is_not_of_the_body() -> None:
    (block,) = blocks_around(NESTED, 4, 5, "javascript")
    assert block == CodeBlock(0, 1, 6, 7)
    assert block.has_closing()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f():\n    pass\n", True),
        ("\n\nx = 1", True),
        ("f(\n    1,\n)", True),
        ("    pass\n\ndef f():", False),
        ("else:\n    pass", False),
        ("if x:", False),
        ("def f():\n    pass\n\n@cache", False),
        ("}", False),
        ("\n", False),
        ("f(1,", False),
    ],
)
def test_what_is_whole(text: str, expected: bool) -> None:
    assert is_whole(text.split("\n")) is expected


def test_only_outermost_lines_define() -> None:
    assert has_definition(["@cache", "def f():", "    pass"])
    assert not has_definition(["if x:", "    def f():", "        pass"])
