"""Features of candidates: which rows stand in the span, which lines are lost, which are new."""

from __future__ import annotations

import numpy as np

from apply_service.edit.place.candidates.line_arrays import Bools
from apply_service.edit.place.features.candidate_table import UNKNOWN, CandidateTable
from apply_service.edit.place.features.feature import Column, FeatureSet

RIVAL_MARGIN = 0.3
ALIGNMENT_FEATURES: FeatureSet[CandidateTable, Column] = FeatureSet()
_add = ALIGNMENT_FEATURES.add


@_add
def num_rows(table: CandidateTable) -> Column:
    """A long segment says more."""
    return table.num_rows


@_add
def num_lines(table: CandidateTable) -> Column:
    """A long span is seldom meant for a short segment."""
    return table.ends - table.starts


@_add
def num_pairs(table: CandidateTable) -> Column:
    """Rows that stand in the span bear it out."""
    return table.pairs.counts()


@_add
def num_equal(table: CandidateTable) -> Column:
    """Equal rows bear it out most."""
    return table.pairs.counts() - table.unequal_pairs[0].counts()


@_add
def evidence(table: CandidateTable) -> Column:
    """What the pairs tell together."""
    return table.evidence


@_add
def evidence_share(table: CandidateTable) -> Column:
    """What they tell of what all rows could tell."""
    return table.evidence / max(table.part.telling, 0.1)


@_add
def evidence_gap(table: CandidateTable) -> Column:
    """Another place has more evidence."""
    return table.part.best_evidence - table.evidence


@_add
def num_rivals(table: CandidateTable) -> Column:
    """Other places with nearly as much evidence."""
    known = table.part.span_evidences
    return len(known) - np.searchsorted(known, table.evidence - RIVAL_MARGIN, side="right")


@_add
def first_likeness(table: CandidateTable) -> Column:
    """The first row is like the first line that gives way."""
    return table.at(table.matcher.ratios[0], table.starts, 0.0)


@_add
def last_likeness(table: CandidateTable) -> Column:
    """The last row is like the last line that gives way."""
    return table.at(table.matcher.ratios[-1], table.ends - 1, 0.0)


@_add
def first_is_equal(table: CandidateTable) -> Column:
    """The first row is the first line that gives way."""
    return table.at(table.matcher.is_equal[0], table.starts, False)


@_add
def last_is_equal(table: CandidateTable) -> Column:
    """The last row is the last line that gives way."""
    is_equal = table.at(table.matcher.is_equal[-1], table.ends - 1, False)
    return is_equal & (table.ends > table.starts)


@_add
def first_count(table: CandidateTable) -> Column:
    """The first paired row stands in many places."""
    return table.at(table.part.row_counts, table.first_pairs[0], -UNKNOWN)


@_add
def last_count(table: CandidateTable) -> Column:
    """The last paired row stands in many places."""
    return table.at(table.part.row_counts, table.last_pairs[0], -UNKNOWN)


@_add
def first_weight(table: CandidateTable) -> Column:
    """The first paired row says something."""
    return table.at(table.matcher.row_weights, table.first_pairs[0], 0.0)


@_add
def last_weight(table: CandidateTable) -> Column:
    """The last paired row says something."""
    return table.at(table.matcher.row_weights, table.last_pairs[0], 0.0)


@_add
def rarest(table: CandidateTable) -> Column:
    """A telling row that stands nowhere else."""
    is_equal = table.matcher.is_equal[table.pair_rows, table.pair_lines]
    rows = table.pair_rows[is_equal]
    weights = table.matcher.row_weights[rows] / table.part.row_counts[rows]
    return table.pairs.where(is_equal).most(weights, 0.0)


@_add
def num_unequal(table: CandidateTable) -> Column:
    """Rows that only resemble what stands there."""
    return table.unequal_pairs[0].counts()


@_add
def num_other_heads(table: CandidateTable) -> Column:
    """Rows that only resemble what stands there, and bind or call something else."""
    members, rows, lines = table.unequal_pairs
    return members.sums(table.row_heads[rows] != table.lines.heads[1][lines])


@_add
def least_likeness(table: CandidateTable) -> Column:
    """A pair that is hardly alike may be none."""
    members, rows, lines = table.unequal_pairs
    return members.least(table.matcher.ratios[rows, lines], 1.0)


@_add
def mean_unequal_likeness(table: CandidateTable) -> Column:
    """How alike the pairs are that are not equal."""
    members, rows, lines = table.unequal_pairs
    return members.means(table.matcher.ratios[rows, lines], 1.0)


@_add
def num_removed(table: CandidateTable) -> Column:
    """Lines that are lost."""
    return table.removed[0].counts()


@_add
def removed_weight(table: CandidateTable) -> Column:
    """How much the lost lines say."""
    members, lines = table.removed
    return members.sums(table.matcher.line_weights[lines])


@_add
def num_added(table: CandidateTable) -> Column:
    """Rows that are new there."""
    return table.is_added.sum(axis=1)


@_add
def added_weight(table: CandidateTable) -> Column:
    """How much the new rows say."""
    return np.where(table.is_added, table.matcher.row_weights, 0.0).sum(axis=1)


@_add
def num_lost(table: CandidateTable) -> Column:
    """Lines lost without anything sent instead."""
    members, lost, added = table.between
    return members.sums(np.where(added > 0, 0, lost))


@_add
def longest_lost(table: CandidateTable) -> Column:
    """Many lines lost in one place may have been forgotten."""
    members, lost, added = table.between
    return members.most(np.where(added > 0, 0, lost), 0)


@_add
def num_inserted(table: CandidateTable) -> Column:
    """Rows that come between lines next to each other."""
    members, lost, added = table.between
    return members.sums(np.where(lost > 0, 0, added))


@_add
def removed_mean_likeness(table: CandidateTable) -> Column:
    """Lost lines that are like a row were rewritten."""
    members, lines = table.removed
    return members.means(table.matcher.best_ratios[lines], 1.0)


@_add
def removed_least_likeness(table: CandidateTable) -> Column:
    """A lost line that is like no row."""
    members, lines = table.removed
    return members.least(table.matcher.best_ratios[lines], 1.0)


@_add
def removed_definitions(table: CandidateTable) -> Column:
    """Definitions lost whose names are not sent."""
    members, lines = table.removed
    unsent = np.zeros(table.num_lines)
    for one in table.original.definitions:
        unsent[one.header] += one.name not in table.part.names
    return members.sums(unsent[lines])


@_add
def num_renamed(table: CandidateTable) -> Column:
    """Definitions that get another name: perhaps the sent one is new."""
    numbers, of_lines = table.lines.names
    sent = np.full(table.num_rows, -1)
    for row, name in table.part.row_names.items():
        sent[row] = numbers.get(name, len(numbers))
    old, new = of_lines[table.pair_lines], sent[table.pair_rows]
    return table.pairs.sums((old >= 0) & (new >= 0) & (old != new))


@_add
def num_new_names(table: CandidateTable) -> Column:
    """Names sent that the file does not define."""
    return sum(name not in table.original.headers_of for name in table.part.row_names.values())


@_add
def num_names_missed(table: CandidateTable) -> Column:
    """Names sent that the file defines, and not in the span."""
    found = np.zeros(len(table.candidates))
    for name in table.part.row_names.values():
        lines = sorted(table.original.headers_of.get(name, ()))
        if lines:
            found += np.searchsorted(lines, table.starts) >= np.searchsorted(lines, table.ends)
    return found


@_add
def num_names_lost(table: CandidateTable) -> Column:
    """Names that the span defines and that are not sent."""
    sent = set(table.part.row_names.values()) | table.part.names
    is_unsent = np.zeros(table.num_lines, bool)
    for line, name in table.original.header_names.items():
        is_unsent[line] = name not in sent
    return table.span.sums(is_unsent[table.span_lines] & ~table.is_kept)


@_add
def names_for_new(table: CandidateTable) -> Column:
    """Names lost where a definition comes that seems to be none of the file under another name."""
    return num_names_lost(table) if table.part.new_rows else 0.0


@_add
def new_share(table: CandidateTable) -> Column:
    """The part of the rows that are of definitions which the file seems not to have."""
    return len(table.part.new_rows) / table.num_rows


@_add
def sends_definition(table: CandidateTable) -> Column:
    """The first row begins a definition: 2 if the file has none of that name."""
    name = table.part.row_names.get(0)
    return 0.0 if name is None else 1.0 + (name not in table.original.headers_of)


@_add
def rows_ahead(table: CandidateTable) -> Column:
    """Rows before the first pair."""
    return table.first_pairs[0]


@_add
def lines_ahead(table: CandidateTable) -> Column:
    """Lines that give way before the first pair."""
    return table.first_pairs[1] - table.starts


@_add
def rows_behind(table: CandidateTable) -> Column:
    """Rows behind the last pair."""
    return table.num_rows - 1 - table.last_pairs[0]


@_add
def lines_behind(table: CandidateTable) -> Column:
    """Lines that give way behind the last pair."""
    return table.ends - 1 - table.last_pairs[1]


@_add
def likeness_ahead(table: CandidateTable) -> Column:
    """Lines before the first pair that resemble the rows there."""
    rows, lines = table.first_pairs
    is_ahead = _of_pairs(table) & (table.span_lines < lines[table.span.owners])
    members = table.span.where(is_ahead)
    above = np.maximum(rows, 1)[members.owners] - 1
    return members.means(table.matcher.best_above[above, table.span_lines[is_ahead]], 1.0)


@_add
def likeness_behind(table: CandidateTable) -> Column:
    """Lines behind the last pair that resemble the rows there."""
    rows, lines = table.last_pairs
    is_behind = _of_pairs(table) & (table.span_lines > lines[table.span.owners])
    members = table.span.where(is_behind)
    below = np.minimum(rows + 1, table.num_rows - 1)[members.owners]
    return members.means(table.matcher.best_below[below, table.span_lines[is_behind]], 1.0)


def _of_pairs(table: CandidateTable) -> Bools:
    return table.has_pairs[table.span.owners]


@_add
def lost_ahead(table: CandidateTable) -> Column:
    """Lines that go before the first row though it is context."""
    return np.where(table.first_pairs[0] == 0, lines_ahead(table), 0)


@_add
def lost_behind(table: CandidateTable) -> Column:
    """Lines that go behind the last row though it is context."""
    return np.where(table.last_pairs[0] == table.num_rows - 1, lines_behind(table), 0)
