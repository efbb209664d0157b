"""Features of candidates: their indentation, borders, brackets, markers and neighbours."""

from __future__ import annotations

import numpy as np

from apply_service.edit.place.candidates.candidate import Origin
from apply_service.edit.place.candidates.line_arrays import Bools, Ints, first_word
from apply_service.edit.place.candidates.original_facts import balance
from apply_service.edit.place.features.candidate_table import UNKNOWN, CandidateTable
from apply_service.edit.place.features.feature import Column, FeatureSet
from apply_service.edit.text.brackets import BLOCK_OPENERS

# Lines on either side of a span whose words are looked at.
NEAR_LINES = 2
PLACE_FEATURES: FeatureSet[CandidateTable, Column] = FeatureSet()
_add = PLACE_FEATURES.add


@_add
def indent_to_line(table: CandidateTable) -> Column:
    """The first row stands as deep as the line that gives way."""
    return _first_indents(table) - table.at(table.lines.indents, table.starts, 0)


@_add
def indent_to_above(table: CandidateTable) -> Column:
    """The first row stands as deep as the line above."""
    return _first_indents(table) - table.at(table.lines.indents, table.starts - 1, 0)


@_add
def indent_to_below(table: CandidateTable) -> Column:
    """The last row stands as deep as the line below."""
    return _last_indents(table) - table.at(table.lines.indents, table.ends, 0)


@_add
def indent_to_last(table: CandidateTable) -> Column:
    """The last row stands as deep as the last line that gives way."""
    found = _last_indents(table) - table.at(table.lines.indents, table.ends - 1, 0)
    return np.where(table.ends > table.starts, found, 0)


@_add
def opens_before(table: CandidateTable) -> Column:
    """The line above opens a block."""
    return _opens_before(table)


@_add
def opens_at_end(table: CandidateTable) -> Column:
    """The last row opens a block."""
    return table.part.rows[-1].text.endswith(BLOCK_OPENERS)


@_add
def is_too_deep(table: CandidateTable) -> Column:
    """Deeper than the line above, which opens no block."""
    above = table.at(table.lines.indents, table.starts - 1, 0)
    return (_first_indents(table) > above) & ~_opens_before(table)


@_add
def shift(table: CandidateTable) -> Column:
    """Moved sideways."""
    return table.shifts


@_add
def is_reindented(table: CandidateTable) -> Column:
    """Rows are moved each by its own columns."""
    return np.array([bool(one.row_shifts) for one in table.candidates], bool)


@_add
def shift_share(table: CandidateTable) -> Column:
    """Pairs that are moved by just as much."""
    indents = np.array([row.indent for row in table.part.rows])
    moved = table.lines.indents[table.pair_lines] - indents[table.pair_rows]
    return table.pairs.means(moved == table.row_shifts[table.pairs.owners, table.pair_rows], -1.0)


@_add
def begins_definition(table: CandidateTable) -> Column:
    """A definition begins there: 2 if the rows define its name."""
    found = np.zeros(table.num_lines + 1)
    for line, one in table.original.definition_at.items():
        found[line] = 1.0 + (one.name in table.part.names)
    return found[table.starts]


@_add
def ends_definition(table: CandidateTable) -> Column:
    """A definition ends there."""
    return table.lines.ends_definition[table.ends]


@_add
def is_block(table: CandidateTable) -> Column:
    """A whole block gives way: 2 with the line that closes it."""
    block_ends = table.at(table.lines.block_ends, table.starts, -1)
    found = np.where(block_ends == table.ends, 1, np.where(block_ends == table.ends - 1, 2, 0))
    return np.where(table.ends > table.starts, found, 0)


@_add
def num_cut(table: CandidateTable) -> Column:
    """Definitions whose head gives way and whose end stays."""
    headers, ends = table.lines.definitions
    found = np.zeros(len(table.candidates))
    for header, end in zip(headers.tolist(), ends.tolist(), strict=True):
        found += (table.starts <= header) & (header < table.ends) & (table.ends < end)
    return found


@_add
def balance_change(table: CandidateTable) -> Column:
    """More brackets are opened than before."""
    depths = table.lines.depths
    opened = depths[table.ends] - depths[table.starts]
    kept = table.span.where(table.is_kept)
    lines = table.span_lines[table.is_kept]
    kept_open = kept.sums(depths[lines + 1] - depths[lines])
    balances = np.array([balance(row.stripped) for row in table.part.rows])
    return table.part.balance - table.is_dropped @ balances - (opened - kept_open)


@_add
def has_gap_before(table: CandidateTable) -> Column:
    """A marker stands before it."""
    return table.part.has_gap_before


@_add
def has_gap_after(table: CandidateTable) -> Column:
    """A marker stands behind it."""
    return table.part.has_gap_after


@_add
def starts_file(table: CandidateTable) -> Column:
    """It begins the file."""
    return table.starts == 0


@_add
def ends_file(table: CandidateTable) -> Column:
    """It ends the file."""
    return table.ends == table.num_lines


@_add
def position(table: CandidateTable) -> Column:
    """Where in the file."""
    return table.starts / max(table.num_lines, 1)


@_add
def num_kept_runs(table: CandidateTable) -> Column:
    """Runs that stay without a marker."""
    return table.runs.counts()


@_add
def num_kept_lines(table: CandidateTable) -> Column:
    """Lines that stay without a marker."""
    return table.span.where(table.is_kept).counts()


@_add
def kept_beside_added(table: CandidateTable) -> Column:
    """Runs that stay beside a new row rather than between two that are context."""
    owners, rows = table.runs.owners, table.run_rows
    is_paired = table.is_row_paired[owners, rows] & table.is_row_paired[owners, rows - 1]
    return table.runs.sums(~is_paired)


@_add
def num_dropped(table: CandidateTable) -> Column:
    """Rows that are not written."""
    return table.is_dropped.sum(axis=1)


@_add
def num_restored(table: CandidateTable) -> Column:
    """Sent lines given up for the file's own."""
    has_run = np.zeros((len(table.candidates), table.num_rows + 1), bool)
    has_run[table.runs.owners, table.run_rows] = True
    return (has_run[:, :-1] & table.is_dropped).sum(axis=1)


@_add
def shared_words(table: CandidateTable) -> Column:
    """New rows share rare words with the lines around."""
    rows_of: dict[str, list[int]] = {}
    for row, words in enumerate(table.part.words):
        for word in words:
            if word in table.lines.word_lines:
                rows_of.setdefault(word, []).append(row)
    first = np.maximum(table.starts - NEAR_LINES, 0)
    last = np.minimum(table.ends + NEAR_LINES, table.num_lines)
    found = np.zeros(len(table.candidates))
    for word, rows in rows_of.items():
        lines = table.lines.word_lines[word]
        num_near = np.searchsorted(lines, last) - np.searchsorted(lines, first)
        found += table.is_added[:, rows].any(axis=1) * num_near / len(lines)
    return found


@_add
def repeats_above(table: CandidateTable) -> Column:
    """The first row stands directly above, too."""
    return table.at(table.matcher.is_equal[0], table.starts - 1, False)


@_add
def repeats_below(table: CandidateTable) -> Column:
    """The last row stands directly below, too."""
    return table.at(table.matcher.is_equal[-1], table.ends, False)


@_add
def twin_below(table: CandidateTable) -> Column:
    """A changed row is like the line below: perhaps its old form, left standing."""
    return _twins(table, table.ends)


@_add
def twin_above(table: CandidateTable) -> Column:
    """A changed row is like the line above."""
    return _twins(table, table.starts - 1)


@_add
def same_word_below(table: CandidateTable) -> Column:
    """A changed row begins like the line below, as deep."""
    return _have_same_word(table, table.ends)


@_add
def same_word_above(table: CandidateTable) -> Column:
    """A changed row begins like the line above, as deep."""
    return _have_same_word(table, table.starts - 1)


@_add
def rest_of_block(table: CandidateTable) -> Column:
    """Lines of a sent header's block that stay, though the rows go on behind it."""
    indents = np.array([row.indent for row in table.part.rows])
    least = np.minimum.accumulate(indents[::-1])[::-1]
    is_over = np.zeros(table.num_rows, bool)
    after = table.part.indent_after
    is_over[:-1] = (least[1:] <= indents[:-1]) | (after is not None and after <= indents[:-1])
    is_over[:-1] &= indents[1:] > indents[:-1]
    rest = table.lines.block_ends[table.pair_lines] - table.ends[table.pairs.owners]
    return table.pairs.most(np.where(is_over[table.pair_rows], np.maximum(rest, 0), 0), 0)


@_add
def marker_after_indent(table: CandidateTable) -> Column:
    """The marker behind is deeper than the last row."""
    after = table.part.indent_after
    return UNKNOWN if after is None else after - table.part.last_indent


@_add
def marker_before_indent(table: CandidateTable) -> Column:
    """The marker before is deeper than the first row."""
    before = table.part.indent_before
    return UNKNOWN if before is None else before - table.part.first_indent


@_add
def line_to_marker_after(table: CandidateTable) -> Column:
    """The line below is as deep as the marker that stands for it."""
    after = table.part.indent_after
    return UNKNOWN if after is None else table.at(table.lines.indents - after, table.ends, UNKNOWN)


@_add
def line_to_marker_before(table: CandidateTable) -> Column:
    """The line above is as deep as the marker that stands for it."""
    before = table.part.indent_before
    if before is None:
        return UNKNOWN
    return table.at(table.lines.indents - before, table.starts - 1, UNKNOWN)


@_add
def marker_after_is_empty(table: CandidateTable) -> Column:
    """The marker behind has nothing to stand for: the block ends there."""
    if not table.part.has_gap_after:
        return 0.0
    last = table.part.last_indent + table.shifts
    is_less = table.at(table.lines.indents, table.ends, 0) < last
    return np.where(table.ends == table.num_lines, 2, is_less)


@_add
def blank_above(table: CandidateTable) -> Column:
    """A blank line sets the place off above."""
    return table.lines.has_blank_before[table.starts]


@_add
def blank_below(table: CandidateTable) -> Column:
    """A blank line sets the place off below."""
    return table.lines.has_blank_before[table.ends]


@_add
def from_alignment(table: CandidateTable) -> Column:
    """Found by the best alignment."""
    return _are_from(table, "alignment")


@_add
def from_run(table: CandidateTable) -> Column:
    """Found by a run of context."""
    return _are_from(table, "run")


@_add
def from_block(table: CandidateTable) -> Column:
    """Found by a header's block."""
    return _are_from(table, "block")


@_add
def from_frame(table: CandidateTable) -> Column:
    """Found by its first and last row."""
    return _are_from(table, "frame")


def _are_from(table: CandidateTable, origin: Origin) -> Bools:
    return np.array([origin in one.origins for one in table.candidates], bool)


def _first_indents(table: CandidateTable) -> Ints:
    return table.part.first_indent + table.shifts


def _last_indents(table: CandidateTable) -> Ints:
    return table.part.last_indent + table.row_shifts[:, -1]


def _opens_before(table: CandidateTable) -> Bools:
    return table.at(table.lines.opens, table.starts - 1, False).astype(bool)


def _twins(table: CandidateTable, lines: Ints) -> Column:
    """How alike a line is to the changed row that is most alike."""
    if not table.num_lines:
        return 0.0
    inside = np.clip(lines, 0, table.num_lines - 1)
    best = np.where(table.is_changed, table.matcher.ratios.T[inside], 0).max(axis=1)
    return np.where(inside == lines, best, 0)


def _have_same_word(table: CandidateTable, lines: Ints) -> Column:
    """Whether a changed row begins like a line, as deep."""
    numbers, of_lines = table.lines.first_words
    rows = table.part.rows
    of_rows = np.array([numbers.get(first_word(row.stripped), -2) for row in rows])
    words = table.at(of_lines, lines, -1)
    indents = table.at(table.lines.indents, lines, 0) - table.shifts
    is_same = (words[:, None] == of_rows) & (words[:, None] >= 0)
    is_as_deep = indents[:, None] == np.array([row.indent for row in rows])
    return (is_same & is_as_deep & table.is_changed).any(axis=1)
