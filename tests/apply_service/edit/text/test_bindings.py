"""What a line binds, in several languages, and where names are used and declared."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_service.edit.text.bindings import (
    MAX_NAMES,
    Bindings,
    bound_names,
    declared_names,
    is_import_line,
)
from apply_service.edit.text.definition_names import MAX_LINE_LENGTH


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("import os.path", {"os"}),
        ("import numpy as np, sys", {"np", "sys"}),
        ("from x.y import (a, b as c", {"a", "c"}),
        ("from x import a  # b", {"a"}),
        ("import report from './report.mjs';", {"report"}),
        ("import { one as two, type Three } from './a.mjs';", {"two", "Three"}),
        ('import * as z from "zod";', {"z"}),
        ("const { first, a: b, ...rest } = require('x');", {"first", "b", "rest"}),
        ("export const limit: number = 3;", {"limit"}),
        ("use a::b::{self, C, d as e};", {"b", "C", "e"}),
        ("import java.util.List;", {"List"}),
        ("function walk(tree) {", {"walk"}),
        ("def walk(tree):", {"walk"}),
        ("    return total", set()),
        ("if a == b:", set()),
        ("", set()),
        ("x" * 500 + " = 1", set()),
    ],
)
def test_declared_names(line: str, names: set[str]) -> None:
    assert declared_names(line) == names
    assert bound_names(line) == names


@pytest.mark.timeout(5)
@pytest.mark.parametrize("head", ["import", "export", "use", "from", "import a", "const {"])
def test_a_hostile_line_is_read_in_no_time(head: str) -> None:
    spaces = " " * (MAX_LINE_LENGTH - len(head) - 1)
    for line in (f"{head}{spaces}'", f"{head}{spaces * 1000}'"):
        for _ in range(100):
            assert not is_import_line(line)
            assert not bound_names(line)


def test_only_an_assignment_at_the_margin_binds() -> None:
    assert bound_names("LIMIT: int = 3") == {"LIMIT"}
    assert bound_names("    limit = 3") == set()
    assert bound_names("limit == 3") == set()
    assert declared_names("LIMIT = 3") == set()


def test_imports() -> None:
    assert is_import_line("const a = require('a');")
    assert is_import_line("from a import b")
    assert not is_import_line("const a = b;")
    assert not is_import_line("important = 1")


LINES = [
    "import os",
    "import sys",
    "",
    "def first(path):",
    "    const = 1",
    "    let count = path;",
    "    return os.getcwd()",
    "",
    "def second(osmium):",
    "    let count = 2;",
]


def test_a_name_is_used_only_as_a_whole_word_outside_the_span() -> None:
    bindings = Bindings(LINES)
    assert bindings.is_used("os", (0, 1))
    assert not bindings.is_used("os", (0, 7))
    assert not bindings.is_used("sys", (1, 2))


def test_a_name_is_bound_at_the_margin() -> None:
    bindings = Bindings(LINES)
    assert bindings.is_bound("first", (0, 1))
    assert not bindings.is_bound("first", (3, 4))
    assert not bindings.is_bound("count", (0, 1))


def test_a_name_is_declared_in_the_block_around_the_span() -> None:
    bindings = Bindings(LINES)
    assert bindings.is_declared("count", (6, 7), "    ")
    assert not bindings.is_declared("count", (5, 7), "    ")  # the other one is in second()
    assert not bindings.is_declared("count", (6, 7), "  ")
    assert bindings.is_declared("os", (1, 2), "")


def test_no_more_names_are_looked_up_than_the_limit() -> None:
    bindings = Bindings(["last"])
    for number in range(MAX_NAMES):
        assert not bindings.is_used(f"name{number}", (0, 0))
    assert not bindings.is_used("last", (0, 0))


@given(
    st.lists(st.text(alphabet="ab$_-. é1", max_size=12), max_size=6),
    st.sampled_from(["a", "aa", "a-a", "a.b", "$a", "b1", "é"]),
    st.integers(0, 3),
    st.sampled_from([0, 500]),
)
def test_uses_are_whole_words_as_a_pattern_finds_them(
    lines: list[str], name: str, start: int, num_parts: int
) -> None:
    lines = [*lines, f"x{name} " * num_parts]
    pattern = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
    span = (start, start + 2)
    outside = [line for at, line in enumerate(lines) if not span[0] <= at < span[1]]
    assert Bindings(lines).is_used(name, span) == any(map(pattern.search, outside))
