"""The grid of a file and the regions of an edit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apply_service.edit.regions import (
    TOLERANCE,
    Region,
    cells,
    choose_regions,
    estimate_tokens,
)
from apply_service.edit.syntax.languages import LANGUAGES
from apply_service.edit.syntax.syntax import parse

OUTLINES = Path(__file__).parents[2] / "cases" / "outlines"
LINES = st.lists(
    st.sampled_from(["", "  ", "x = 1", "def f():", "    return 1", "}", "# note", "y" * 90]),
    max_size=120,
)


def tokens(lines: Sequence[str], region: Region) -> float:
    return sum(estimate_tokens(line) for line in lines[region.start : region.end])


def check_grid(lines: Sequence[str], grid: Sequence[Region], max_tokens: int) -> None:
    assert grid[0].start == 0
    assert grid[-1].end == len(lines)
    for cell, following in pairwise(grid):
        assert cell.end == following.start
    for cell in grid:
        assert cell.start < cell.end or not lines
        is_small = tokens(lines, cell) <= TOLERANCE * max_tokens + 1e-6
        assert is_small or cell.end - cell.start == 1


@given(LINES, st.integers(1, 200), st.sampled_from(["python", None]))
def test_cells_partition_the_file(lines: list[str], max_tokens: int, language: str | None) -> None:
    grid = cells(lines, parse(lines, language), max_tokens=max_tokens)
    check_grid(lines, grid, max_tokens)
    assert grid == cells(list(lines), parse(lines, language), max_tokens=max_tokens)


@pytest.mark.parametrize("language", LANGUAGES)
def test_cells_of_every_language_keep_symbols_whole_where_they_fit(language: str) -> None:
    source = (OUTLINES / f"{language}.txt").read_text().partition("\n=====\n")[0]
    lines = source.split("\n")
    tree = parse(lines, language)
    assert tree is not None
    grid = cells(lines, tree, max_tokens=60)
    check_grid(lines, grid, 60)
    for symbol in tree.symbols:
        if symbol.parent is None and tokens(lines, Region(symbol.start, symbol.end)) <= 60:
            inside = [cell for cell in grid if cell.start <= symbol.start < cell.end]
            assert len(inside) == 1
            assert symbol.end <= inside[0].end


def python_file(num_functions: int, *, num_statements: int) -> list[str]:
    lines: list[str] = ["import os", ""]
    for number in range(num_functions):
        lines += ["", f"# About step {number}.", f"def step_{number}(value):"]
        lines += [f"    value = value * {n} + len(os.sep)" for n in range(num_statements)]
        lines += ["    return value", ""]
    return lines[:-1]


def test_two_edits_of_one_function_share_a_region() -> None:
    lines = python_file(30, num_statements=8)
    tree = parse(lines, "python")
    assert tree is not None
    grid = cells(lines, tree, max_tokens=250)
    for symbol in tree.symbols:
        first = choose_regions(grid, [(symbol.header, symbol.header + 1)])
        last = choose_regions(grid, [(symbol.end - 1, symbol.end)])
        assert first == last
        assert first[0].start <= symbol.start


def test_a_definition_larger_than_a_cell_is_cut_at_its_statements() -> None:
    lines = ["def f():"]
    for number in range(30):
        lines += [
            f"    if value_{number}:",
            f"        call_{number}(",
            "            1,",
            "        )",
        ]
    grid = cells(lines, parse(lines, "python"), max_tokens=80)
    check_grid(lines, grid, 80)
    assert all(lines[cell.start].startswith("    if") for cell in grid[1:])


def test_without_a_grammar_cells_are_cut_after_blank_lines() -> None:
    lines = ["heading", "  text of it", "", "next heading", "  more text", ""] * 20
    grid = cells(lines, None, max_tokens=40)
    check_grid(lines, grid, 40)
    assert all(lines[cell.start].endswith("heading") for cell in grid)


def test_an_edit_far_away_leaves_the_cells_before_it() -> None:
    lines = python_file(40, num_statements=6)
    edited = [*lines[:-3], "    value += 1", *lines[-3:]]
    before = cells(lines, parse(lines, "python"), max_tokens=250)
    after = cells(edited, parse(edited, "python"), max_tokens=250)
    assert before[:-2] == after[: len(before) - 2]


def test_an_empty_file_is_one_empty_region() -> None:
    assert cells([], None, max_tokens=1) == (Region(0, 0),)
    assert choose_regions((Region(0, 0),), [(0, 0)]) == (Region(0, 0),)


def test_a_cell_takes_at_least_one_token() -> None:
    with pytest.raises(ValueError, match="max_tokens is 0"):
        cells(["x"], None, max_tokens=0)


GRID = (Region(0, 10), Region(10, 14), Region(14, 30), Region(30, 40))


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([], []),
        ([(3, 4)], [(0, 10)]),
        ([(9, 11)], [(0, 14)]),
        ([(0, 1), (12, 13)], [(0, 14)]),
        ([(0, 1), (30, 31)], [(0, 10), (30, 40)]),
        ([(30, 31), (0, 1)], [(0, 10), (30, 40)]),
        ([(0, 40)], [(0, 40)]),
        ([(5, 5)], [(0, 10)]),
        ([(10, 10)], [(10, 14)]),
        ([(14, 14)], [(10, 14)]),
        ([(40, 40)], [(30, 40)]),
        ([(0, 0)], [(0, 10)]),
        ([(38, 99)], [(30, 40)]),
    ],
)
def test_regions_are_the_cells_that_spans_touch(
    spans: list[tuple[int, int]], expected: list[tuple[int, int]]
) -> None:
    assert [(region.start, region.end) for region in choose_regions(GRID, spans)] == expected


def test_neighbours_without_a_common_span_are_joined_while_they_are_small() -> None:
    lines = ["x" * 35] * 40
    apart, tied = [(0, 1), (12, 13)], [(0, 1), (9, 11)]
    assert choose_regions(GRID, apart, lines=lines, max_tokens=200) == (Region(0, 14),)
    assert choose_regions(GRID, apart, lines=lines, max_tokens=50) == GRID[:2]
    assert choose_regions(GRID, tied, lines=lines, max_tokens=50) == (Region(0, 14),)


@given(LINES.filter(bool), st.data())
def test_every_span_is_inside_one_region(lines: list[str], data: st.DataObject) -> None:
    grid = cells(lines, None, max_tokens=data.draw(st.integers(5, 100)))
    place = st.integers(0, len(lines))
    spans = [
        (min(pair), max(pair)) for pair in data.draw(st.lists(st.tuples(place, place), max_size=6))
    ]
    regions = choose_regions(grid, spans, lines=lines, max_tokens=data.draw(st.integers(1, 100)))
    for start, end in spans:
        assert sum(region.start <= start and end <= region.end for region in regions) >= 1
        if start < end:
            inside = [region for region in regions if region.start <= start < region.end]
            assert len(inside) == 1
    borders = {cell.start for cell in grid} | {len(lines)}
    assert all({region.start, region.end} <= borders for region in regions)
    assert all(a.end <= b.start for a, b in pairwise(regions))
