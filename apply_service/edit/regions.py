"""Cuts a file into regions, and chooses the regions that a model has to read and write.

The grid depends on the file alone, so two edits of one function share a region and with it the
model's work on it. Cells are cut between top-level definitions where possible, inside a large
definition between its members or statements, and without a grammar at blank lines.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from apply_service.edit.syntax.syntax import SyntaxTree

# A definition this much larger than a cell is still left whole.
TOLERANCE = 1.3
# A cell may end early to be cut between larger parts, but not below this share of its size.
MIN_FILL = 0.5
MIN_LAST_FILL = 0.3

# Least squares over 33,000 lines of Python, TypeScript and JavaScript with the embedded model's
# tokenizer: within 5 % for a file. Indentation is one token or two whatever its width.
BYTES_PER_TOKEN = 3.55
TOKENS_PER_LINE = 1.65
TOKENS_PER_BLANK_LINE = 1.0

# Depth of a cut: grammar borders first, then lines after a blank line, then any line.
_MAX_BORDER_DEPTH = 30
_AFTER_BLANK_DEPTH = 31
_ANY_LINE_DEPTH = 64
_MAX_INDENT_DEPTH = 30
_TAB_COLUMNS = 4


@dataclass(frozen=True, slots=True)
class Region:
    """Lines `[start, end)` of a file."""

    start: int
    end: int


def estimate_tokens(line: str) -> float:
    """Estimate the tokens of a line, the newline before it included, from its length alone."""
    text = line.strip()
    if not text:
        return TOKENS_PER_BLANK_LINE
    return TOKENS_PER_LINE + len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN


def cells(lines: Sequence[str], tree: SyntaxTree | None, *, max_tokens: int) -> tuple[Region, ...]:
    """Regions that partition the file in order; an empty file is one empty region.

    A cell takes at most about `max_tokens` estimated tokens, 1.3 times as many if that keeps a
    definition whole, and more only where a single line does.
    """
    if max_tokens < 1:
        raise ValueError(f"max_tokens is {max_tokens}; a cell takes at least 1 token")
    if not lines:
        return (Region(0, 0),)
    return _Grid(lines, tree, max_tokens).cells()


def choose_regions(
    grid: Sequence[Region],
    spans: Sequence[tuple[int, int]],
    *,
    lines: Sequence[str] | None = None,
    max_tokens: float = math.inf,
) -> tuple[Region, ...]:
    """The cells of `grid` that the line spans touch, neighbours joined, in order.

    Spans should take in the lines that anchor an edit; each lies inside one region. An empty
    span between two cells takes the one with fewer lines; spans beyond the file are cut to it.
    With the `lines` of the file, neighbours that no span connects are joined only up to
    `max_tokens` estimated tokens.
    """
    starts = [cell.start for cell in grid]
    is_chosen = [False] * len(grid)
    is_tied = [False] * len(grid)  # to the cell before, by a span
    for start, end in spans:
        touched = _touched(grid, starts, start, end)
        for place in touched:
            is_chosen[place] = True
            is_tied[place] = is_tied[place] or place > touched[0]
    joined: list[Region] = []
    for part in _tied_cells(grid, is_chosen, is_tied):
        whole = Region(joined[-1].start, part.end) if joined else part
        is_neighbour = bool(joined) and joined[-1].end == part.start
        if is_neighbour and (lines is None or _region_tokens(lines, whole) <= max_tokens):
            joined[-1] = whole
        else:
            joined.append(part)
    return tuple(joined)


def _region_tokens(lines: Sequence[str], region: Region) -> float:
    return sum(estimate_tokens(line) for line in lines[region.start : region.end])


def _tied_cells(
    grid: Sequence[Region], is_chosen: Sequence[bool], is_tied: Sequence[bool]
) -> Iterator[Region]:
    """Chosen cells in order; cells that a span connects are one."""
    open_region: Region | None = None
    for cell, chosen, tied in zip(grid, is_chosen, is_tied, strict=True):
        if open_region is not None and tied:
            open_region = Region(open_region.start, cell.end)
            continue
        if open_region is not None:
            yield open_region
        open_region = cell if chosen else None
    if open_region is not None:
        yield open_region


def _touched(grid: Sequence[Region], starts: Sequence[int], start: int, end: int) -> range:
    """Indexes of the cells that one span touches."""
    first = max(bisect_right(starts, start) - 1, 0)
    if end > start:
        return range(first, max(bisect_left(starts, end), first + 1))
    if first > 0 and grid[first].start == start:
        before, after = grid[first - 1], grid[first]
        if before.end - before.start <= after.end - after.start:
            first -= 1
    return range(first, first + 1)


class _Grid:
    """Cuts one file into cells."""

    def __init__(self, lines: Sequence[str], tree: SyntaxTree | None, max_tokens: int) -> None:
        self._max_tokens = max_tokens
        self._depths = _cut_depths(lines, tree)
        self._sums = [0.0, *accumulate(estimate_tokens(line) for line in lines)]

    def cells(self) -> tuple[Region, ...]:
        borders = [*self._atom_starts(), len(self._depths)]
        cuts = [0]
        place = 0
        while borders[place] < len(self._depths):
            place = self._next_cut(borders, place)
            cuts.append(borders[place])
        if len(cuts) > 2 and self._is_last_small(*cuts[-3:]):
            del cuts[-2]
        return tuple(Region(start, end) for start, end in pairwise(cuts))

    def _is_last_small(self, previous: int, start: int, end: int) -> bool:
        """True if the last cell is small and fits into the cell before it."""
        if self._tokens(start, end) >= MIN_LAST_FILL * self._max_tokens:
            return False
        return self._tokens(previous, end) <= TOLERANCE * self._max_tokens

    def _tokens(self, start: int, end: int) -> float:
        return self._sums[end] - self._sums[start]

    def _next_cut(self, borders: Sequence[int], place: int) -> int:
        """The place in `borders` where the cell from `place` on ends: late, between large parts."""
        start = borders[place]
        last = place + 1
        while (
            last + 1 < len(borders) and self._tokens(start, borders[last + 1]) <= self._max_tokens
        ):
            last += 1
        if last == len(borders) - 1:
            return last
        best = last
        for candidate in range(last, place, -1):
            if self._tokens(start, borders[candidate]) < MIN_FILL * self._max_tokens:
                break
            if self._depths[borders[candidate]] < self._depths[borders[best]]:
                best = candidate
        return best

    def _atom_starts(self) -> list[int]:
        """Starts of the parts that are never cut, in order."""
        starts: list[int] = []
        stack = [(0, len(self._depths))]
        while stack:
            start, end = stack.pop()
            if end - start == 1 or self._tokens(start, end) <= TOLERANCE * self._max_tokens:
                starts.append(start)
                continue
            stack.extend(reversed(list(self._split(start, end))))
        return starts

    def _split(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """The parts between the shallowest cuts inside a span of at least two lines."""
        depths = self._depths
        shallowest = min(depths[start + 1 : end])
        part_start = start
        for row in range(start + 1, end):
            if depths[row] == shallowest:
                yield part_start, row
                part_start = row
        yield part_start, end


def _cut_depths(lines: Sequence[str], tree: SyntaxTree | None) -> list[int]:
    """The cost of a cut before each line; 0 is best.

    A border before blank lines moves behind them, so cells begin with text.
    """
    depths = [
        _line_depth(line, is_after_blank=row > 0 and not lines[row - 1].strip())
        for row, line in enumerate(lines)
    ]
    if tree is None:
        return depths
    num_lines = len(lines)
    next_filled = list(range(num_lines + 1))
    for row in range(num_lines - 1, -1, -1):
        if not lines[row].strip():
            next_filled[row] = next_filled[row + 1]
    for border, depth in tree.border_depths.items():
        row = next_filled[min(border, num_lines)]
        if row < num_lines:
            depths[row] = min(depths[row], depth, _MAX_BORDER_DEPTH)
    return depths


def _line_depth(line: str, *, is_after_blank: bool) -> int:
    """The cost of a cut before a line by its indentation; blank lines are never cut off first."""
    text = line.lstrip(" \t")
    if not text:
        return _ANY_LINE_DEPTH + _MAX_INDENT_DEPTH + 1
    margin = line[: min(len(line) - len(text), _MAX_INDENT_DEPTH)]
    indent = min(len(margin) + margin.count("\t") * (_TAB_COLUMNS - 1), _MAX_INDENT_DEPTH)
    return indent + (_AFTER_BLANK_DEPTH if is_after_blank else _ANY_LINE_DEPTH)
