"""Features of a candidate: which rows stand in the span, which lines are lost, which are new."""

from __future__ import annotations

from collections.abc import Sequence

from apply_service.edit.place.features.candidate_view import UNKNOWN, CandidateView
from apply_service.edit.place.features.feature import FeatureSet

RIVAL_MARGIN = 0.3
ALIGNMENT_FEATURES: FeatureSet[CandidateView] = FeatureSet()
_add = ALIGNMENT_FEATURES.add


@_add
def num_rows(view: CandidateView) -> float:
    """A long segment says more."""
    return len(view.rows)


@_add
def num_lines(view: CandidateView) -> float:
    """A long span is seldom meant for a short segment."""
    return view.candidate.end - view.candidate.start


@_add
def num_pairs(view: CandidateView) -> float:
    """Rows that stand in the span bear it out."""
    return len(view.pairs)


@_add
def num_equal(view: CandidateView) -> float:
    """Equal rows bear it out most."""
    return len(view.pairs) - len(view.unequal_pairs)


@_add
def evidence(view: CandidateView) -> float:
    """What the pairs tell together."""
    return view.evidence


@_add
def evidence_share(view: CandidateView) -> float:
    """What they tell of what all rows could tell."""
    return view.evidence / max(view.part.telling, 0.1)


@_add
def evidence_gap(view: CandidateView) -> float:
    """Another place has more evidence."""
    return view.part.best_evidence - view.evidence


@_add
def num_rivals(view: CandidateView) -> float:
    """Other places with nearly as much evidence."""
    return view.part.num_above(view.evidence - RIVAL_MARGIN)


@_add
def first_likeness(view: CandidateView) -> float:
    """The first row is like the first line that gives way."""
    start = view.candidate.start
    return float(view.matcher.ratios[0, start]) if start < len(view.original) else 0.0


@_add
def last_likeness(view: CandidateView) -> float:
    """The last row is like the last line that gives way."""
    end = view.candidate.end
    return float(view.matcher.ratios[len(view.rows) - 1, end - 1]) if end else 0.0


@_add
def first_is_equal(view: CandidateView) -> float:
    """The first row is the first line that gives way."""
    start = view.candidate.start
    return start < len(view.original) and view.matcher.is_equal[0, start]


@_add
def last_is_equal(view: CandidateView) -> float:
    """The last row is the last line that gives way."""
    start, end = view.candidate.start, view.candidate.end
    return end > start and view.matcher.is_equal[len(view.rows) - 1, end - 1]


@_add
def first_count(view: CandidateView) -> float:
    """The first paired row stands in many places."""
    return view.original.counts[view.rows[view.pairs[0][0]].stripped] if view.pairs else -UNKNOWN


@_add
def last_count(view: CandidateView) -> float:
    """The last paired row stands in many places."""
    return view.original.counts[view.rows[view.pairs[-1][0]].stripped] if view.pairs else -UNKNOWN


@_add
def first_weight(view: CandidateView) -> float:
    """The first paired row says something."""
    return float(view.matcher.row_weights[view.pairs[0][0]]) if view.pairs else 0.0


@_add
def last_weight(view: CandidateView) -> float:
    """The last paired row says something."""
    return float(view.matcher.row_weights[view.pairs[-1][0]]) if view.pairs else 0.0


@_add
def rarest(view: CandidateView) -> float:
    """A telling row that stands nowhere else."""
    weights, counts = view.matcher.row_weights, view.original.counts
    return max(
        (
            float(weights[row]) / counts[view.rows[row].stripped]
            for row, line in view.pairs
            if view.matcher.is_equal[row, line]
        ),
        default=0.0,
    )


@_add
def num_unequal(view: CandidateView) -> float:
    """Rows that only resemble what stands there."""
    return len(view.unequal_pairs)


@_add
def least_likeness(view: CandidateView) -> float:
    """A pair that is hardly alike may be none."""
    return min(view.unequal_pairs, default=1.0)


@_add
def mean_unequal_likeness(view: CandidateView) -> float:
    """How alike the pairs are that are not equal."""
    return _mean(view.unequal_pairs)


@_add
def num_removed(view: CandidateView) -> float:
    """Lines that are lost."""
    return len(view.removed)


@_add
def removed_weight(view: CandidateView) -> float:
    """How much the lost lines say."""
    return float(view.matcher.line_weights[view.removed].sum()) if view.removed else 0.0


@_add
def num_added(view: CandidateView) -> float:
    """Rows that are new there."""
    return len(view.added)


@_add
def added_weight(view: CandidateView) -> float:
    """How much the new rows say."""
    return float(view.matcher.row_weights[view.added].sum()) if view.added else 0.0


@_add
def num_lost(view: CandidateView) -> float:
    """Lines lost without anything sent instead."""
    return sum(view.lost_runs)


@_add
def longest_lost(view: CandidateView) -> float:
    """Many lines lost in one place may have been forgotten."""
    return max(view.lost_runs, default=0)


@_add
def num_inserted(view: CandidateView) -> float:
    """Rows that come between lines next to each other."""
    return sum(view.added_runs)


@_add
def removed_mean_likeness(view: CandidateView) -> float:
    """Lost lines that are like a row were rewritten."""
    return _mean(view.removed_likeness)


@_add
def removed_least_likeness(view: CandidateView) -> float:
    """A lost line that is like no row."""
    return min(view.removed_likeness, default=1.0)


@_add
def removed_definitions(view: CandidateView) -> float:
    """Definitions lost whose names are not sent."""
    lost, names = set(view.removed), view.part.names
    inside = view.original.defined_in(view.candidate.start, view.candidate.end) if lost else ()
    return sum(one.header in lost and one.name not in names for one in inside)


@_add
def num_renamed(view: CandidateView) -> float:
    """Definitions that get another name: perhaps the sent one is new."""
    names, sent = view.original.header_names, view.part.row_names
    return sum(
        row in sent and line in names and sent[row] != names[line] for row, line in view.pairs
    )


@_add
def num_new_names(view: CandidateView) -> float:
    """Names sent that the file does not define."""
    return sum(name not in view.original.headers_of for name in view.part.row_names.values())


@_add
def num_names_missed(view: CandidateView) -> float:
    """Names sent that the file defines, and not in the span."""
    span = range(view.candidate.start, view.candidate.end)
    headers = view.original.headers_of
    return sum(
        name in headers and not any(line in span for line in headers[name])
        for name in view.part.row_names.values()
    )


@_add
def num_names_lost(view: CandidateView) -> float:
    """Names that the span defines and that are not sent."""
    sent = set(view.part.row_names.values()) | view.part.names
    names = view.original.header_names
    span = range(view.candidate.start, view.candidate.end)
    return sum(line in names and names[line] not in sent and line not in view.kept for line in span)


@_add
def names_for_new(view: CandidateView) -> float:
    """Names lost where a definition comes that seems to be none of the file under another name."""
    return num_names_lost(view) if view.part.new_rows else 0.0


@_add
def new_share(view: CandidateView) -> float:
    """The part of the rows that are of definitions which the file seems not to have."""
    return len(view.part.new_rows) / len(view.rows)


@_add
def sends_definition(view: CandidateView) -> float:
    """The first row begins a definition: 2 if the file has none of that name."""
    name = view.part.row_names.get(0)
    return 0.0 if name is None else 1.0 + (name not in view.original.headers_of)


@_add
def rows_ahead(view: CandidateView) -> float:
    """Rows before the first pair."""
    return view.first_pair[0]


@_add
def lines_ahead(view: CandidateView) -> float:
    """Lines that give way before the first pair."""
    return view.first_pair[1] - view.candidate.start


@_add
def rows_behind(view: CandidateView) -> float:
    """Rows behind the last pair."""
    return len(view.rows) - 1 - view.last_pair[0]


@_add
def lines_behind(view: CandidateView) -> float:
    """Lines that give way behind the last pair."""
    return view.candidate.end - 1 - view.last_pair[1]


@_add
def likeness_ahead(view: CandidateView) -> float:
    """Lines before the first pair that resemble the rows there."""
    if not view.pairs:
        return 1.0
    row, line = view.first_pair
    return view.mean_likeness(range(max(row, 1)), range(view.candidate.start, line))


@_add
def likeness_behind(view: CandidateView) -> float:
    """Lines behind the last pair that resemble the rows there."""
    if not view.pairs:
        return 1.0
    row, line = view.last_pair
    last = len(view.rows)
    return view.mean_likeness(
        range(min(row + 1, last - 1), last), range(line + 1, view.candidate.end)
    )


@_add
def lost_ahead(view: CandidateView) -> float:
    """Lines that go before the first row though it is context."""
    return lines_ahead(view) if view.first_pair[0] == 0 else 0.0


@_add
def lost_behind(view: CandidateView) -> float:
    """Lines that go behind the last row though it is context."""
    return lines_behind(view) if view.last_pair[0] == len(view.rows) - 1 else 0.0


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 1.0
