"""Features of candidates behind the candidates of earlier parts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from apply_service.edit.place.candidates.candidate import Candidate
from apply_service.edit.place.candidates.line_arrays import Bools, Ints
from apply_service.edit.place.candidates.way import Way, possible_move
from apply_service.edit.place.features.candidate_table import UNKNOWN
from apply_service.edit.place.features.feature import Column, FeatureSet, Rows, rows_of_table
from apply_service.edit.text.brackets import BLOCK_OPENERS

STEP_FEATURES: FeatureSet[StepTable, Column] = FeatureSet()
MANY_LINES = 400


class StepTable:
    """Candidates of the next part of some ways, a row each.

    `choices [num_steps]` are candidates of that part behind the way `owners [num_steps]`, `local`
    their scores by themselves and `ranks` their places among those of the way. `header` is the
    row of an earlier part that is the header of the part, if it has one.
    """

    def __init__(
        self,
        ways: Sequence[Way],
        choices: Sequence[Sequence[int]],
        local: NDArray[np.float64],
        header: tuple[int, int] | None,
    ) -> None:
        self.ways = ways
        self.number = len(ways[0].candidates)
        self.parts = ways[0].parts
        self.part = self.parts[self.number]
        self.original = self.part.original
        self.lines = self.original.arrays
        self.part_above = self.parts[self.number - 1] if self.number else None
        self.header = header
        sizes = [len(one) for one in choices]
        self.owners = np.repeat(np.arange(len(ways)), sizes)
        self.choices = np.array([one for some in choices for one in some], np.intp)
        self.ranks = np.array([rank for size in sizes for rank in range(size)], np.intp)
        self.local = local[self.choices]
        self.starts = self.part.starts[self.choices]
        self.ends = self.part.ends[self.choices]
        self.gap_starts = self.of_ways([way.end for way in ways])

    def of_ways(self, values: Sequence[float]) -> NDArray[np.intp]:
        """`[num_steps]`: a number of the way of each step."""
        found: NDArray[np.intp] = np.array(values, np.intp)[self.owners]
        return found

    @cached_property
    def above(self) -> list[Candidate]:
        """The last candidate of each way; none at the start."""
        return [way.candidates[-1] for way in self.ways if way.candidates]

    @cached_property
    def has_gap(self) -> Bools:
        """Whether lines stand between the step and what is above."""
        return self.starts > self.gap_starts

    @cached_property
    def least_indents(self) -> Ints:
        """The least indentation of the lines between; of no use without any."""
        found = np.zeros(len(self.choices), np.intp)
        for number, way in enumerate(self.ways):
            chosen = (self.owners == number) & self.has_gap
            if chosen.any():
                least = np.minimum.accumulate(self.lines.indents[way.end :])
                found[chosen] = least[self.starts[chosen] - way.end - 1]
        return found

    @cached_property
    def header_lines(self) -> Ints | None:
        """Where the header of the part stands: -1 if it is new, None without one."""
        if self.header is None:
            return None
        number, row = self.header
        found = (
            next((line for one, line in way.candidates[number].pairs if one == row), -1)
            for way in self.ways
        )
        return self.of_ways(list(found))

    @cached_property
    def last_indents(self) -> Ints:
        """Columns of the last line written; -1 at the start."""
        if self.part_above is None:
            return np.full(len(self.choices), -1)
        last = self.part_above.last_indent
        return self.of_ways([last + one.shift for one in self.above])

    @cached_property
    def moves(self) -> Ints:
        """By how much the gap may have to be moved."""
        if self.part_above is None:
            return np.zeros(len(self.choices), np.intp)
        moves = self.of_ways(
            [possible_move(self.original, self.parts, self.number, one) for one in self.above]
        )
        return np.where(self.has_gap, moves, 0)


def step_rows(table: StepTable) -> Rows:
    """`[num_steps, num_features]`: the features of all steps."""
    return rows_of_table(STEP_FEATURES, table, len(table.choices))


_add = STEP_FEATURES.add


@_add
def local_score(table: StepTable) -> Column:
    """How likely it is by itself."""
    return table.local


@_add
def local_rank(table: StepTable) -> Column:
    """Others are likelier by themselves."""
    return table.ranks


@_add
def part_number(table: StepTable) -> Column:
    """Later parts depend on earlier ones."""
    return table.number


@_add
def num_parts(table: StepTable) -> Column:
    """Many parts leave little room."""
    return len(table.parts)


@_add
def parts_left(table: StepTable) -> Column:
    """Those that follow need room, too."""
    return len(table.parts) - table.number - 1


@_add
def kind(table: StepTable) -> Column:
    """A segment, a removal or the end of a block."""
    return ("segment", "removal", "block_end").index(table.part.kind)


@_add
def is_reordered(table: StepTable) -> Column:
    """The part was sent before the one above it."""
    return table.part_above is not None and 0 <= table.part.number < table.part_above.number


@_add
def gap_length(table: StepTable) -> Column:
    """Lines that the marker before it stands for."""
    return table.starts - table.gap_starts


@_add
def gap_share(table: StepTable) -> Column:
    """The part of the file that the marker stands for."""
    return gap_length(table) / max(len(table.original), 1)


@_add
def gap_is_empty(table: StepTable) -> Column:
    """A marker that stands for nothing, or no gap where there is no marker."""
    return ~table.has_gap


@_add
def has_marker(table: StepTable) -> Column:
    """A marker stands before it."""
    return table.part.has_gap_before


@_add
def marker_to_gap(table: StepTable) -> Column:
    """The marker is as deep as the first line it stands for."""
    before = table.part.indent_before
    if before is None or not len(table.original):
        return UNKNOWN
    first = table.lines.indents[np.minimum(table.gap_starts, len(table.original) - 1)]
    return np.where(table.has_gap, before - first, UNKNOWN)


@_add
def marker_to_least(table: StepTable) -> Column:
    """The marker is as deep as the least deep line it stands for."""
    before = table.part.indent_before
    if before is None:
        return UNKNOWN
    return np.where(table.has_gap, before - table.least_indents, UNKNOWN)


@_add
def least_to_last(table: StepTable) -> Column:
    """The gap is no deeper than the last line written."""
    return np.where(table.has_gap, table.least_indents - table.last_indents, UNKNOWN)


@_add
def leaves_block(table: StepTable) -> Column:
    """The gap leaves the block in which both parts stand."""
    first = table.part.first_indent + table.part.shifts[table.choices]
    is_less = table.least_indents < np.minimum(table.last_indents, first)
    return is_less & table.has_gap & (table.number > 0)


@_add
def definitions_between(table: StepTable) -> Column:
    """Definitions that the marker stands for."""
    starts = table.original.definition_starts
    found = np.searchsorted(starts, table.starts) - np.searchsorted(starts, table.gap_starts)
    return np.where(gap_length(table) < MANY_LINES, found, UNKNOWN)


@_add
def same_definitions_between(table: StepTable) -> Column:
    """Definitions between that have a name which the part defines."""
    names = table.part.names
    headers = sorted(one.header for one in table.original.definitions if one.name in names)
    return np.searchsorted(headers, table.starts) - np.searchsorted(headers, table.gap_starts)


@_add
def is_inside_header(table: StepTable) -> Column:
    """It stands in the block of the header above it: -1 without one, -2 if that is new."""
    lines = table.header_lines
    if lines is None:
        return -1.0
    is_inside = (lines < table.starts) & (table.starts <= table.lines.block_ends[lines])
    return np.where(lines < 0, -2.0, is_inside)


@_add
def ends_inside_header(table: StepTable) -> Column:
    """It ends within the block of its header."""
    lines = table.header_lines
    if lines is None:
        return -1.0
    return np.where(lines < 0, -1.0, table.ends <= table.lines.block_ends[lines])


@_add
def is_at_header_end(table: StepTable) -> Column:
    """It begins where the block of its header ends."""
    lines = table.header_lines
    if lines is None:
        return -1.0
    return np.where(lines < 0, -1.0, table.starts == table.lines.block_ends[lines])


@_add
def begins_at_block_end(table: StepTable) -> Column:
    """It begins where the block of the part above ends."""
    ends = table.original.block_ends
    above = (ends[one.start] if one.start < len(ends) else -1 for one in table.above)
    return table.of_ways(list(above)) == table.starts if table.number else 0.0


@_add
def num_ended(table: StepTable) -> Column:
    """Blocks before the gap that end at it; for parts that say where a block ends."""
    if table.part.kind != "block_end":
        return -1.0
    ends = table.lines.block_ends
    pairs = zip(table.starts.tolist(), table.gap_starts.tolist(), strict=True)
    return np.array([np.count_nonzero(ends[:gap] == start) for start, gap in pairs])


@_add
def repeats_last(table: StepTable) -> Column:
    """The line after the part above is that part's last row."""
    if table.part_above is None or not table.part_above.rows:
        return 0.0
    last = table.part_above.rows[-1].stripped
    lines = table.original.stripped
    is_last = [lines[way.end : way.end + 1] == [last] for way in table.ways]
    return table.has_gap & (table.of_ways(is_last) > 0)


@_add
def move(table: StepTable) -> Column:
    """The gap may have to be moved."""
    return table.moves


@_add
def wraps(table: StepTable) -> Column:
    """The part above opens a block around the gap."""
    above = table.part_above
    if above is None or not above.rows:
        return 0.0
    return (table.moves > 0) & above.rows[-1].text.endswith(BLOCK_OPENERS)
