"""Features of one segment in one place."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from apply_service.edit.place.candidates.candidate import Candidate
from apply_service.edit.place.candidates.original_facts import balance
from apply_service.edit.place.candidates.part import Part
from apply_service.edit.place.features.feature import FeatureSet
from apply_service.edit.text.brackets import BLOCK_OPENERS
from apply_service.edit.text.words import WORD

# What a feature is where its question makes no sense.
UNKNOWN = -99.0
RIVAL_MARGIN = 0.3
SAID_WEIGHT = 0.3
MAX_TWIN_ROWS = 80
CANDIDATE_FEATURES: FeatureSet[CandidateView] = FeatureSet()


class CandidateView:
    """A candidate and what several features ask about it."""

    def __init__(self, part: Part, candidate: Candidate, evidence: float) -> None:
        self.part = part
        self.original = part.original
        self.rows = part.rows
        self.matcher = part.matcher
        self.candidate = candidate
        self.evidence = evidence
        self.pairs = candidate.pairs
        self.kept = {line for run in candidate.kept for line in range(run.start, run.end)}
        paired_lines = {line for _, line in self.pairs}
        span = range(candidate.start, candidate.end)
        self.removed = [line for line in span if line not in paired_lines and line not in self.kept]
        paired_rows = {row for row, _ in self.pairs}
        self.added = [
            row
            for row, one in enumerate(part.rows)
            if one.is_written and row not in paired_rows and row not in candidate.dropped
        ]
        self.first_pair = self.pairs[0] if self.pairs else (len(self.rows), candidate.end)
        self.last_pair = self.pairs[-1] if self.pairs else (-1, candidate.start - 1)

    @cached_property
    def unequal_pairs(self) -> list[float]:
        """The likeness of pairs that are not equal."""
        return [
            float(self.matcher.ratios[pair])
            for pair in self.pairs
            if not self.matcher.is_equal[pair]
        ]

    @cached_property
    def changed_rows(self) -> list[int]:
        """Rows that are not in the original as they are."""
        equal = {row for row, line in self.pairs if self.matcher.ratios[row, line] >= 0.99}
        rows = [row for row in range(len(self.rows)) if row not in equal]
        return rows if len(self.rows) < MAX_TWIN_ROWS else self.added

    @cached_property
    def lost_runs(self) -> list[int]:
        """Lengths of runs that are lost between two rows (or borders) sent next to each other."""
        return [lost for lost, added in self._between if lost and not added]

    @cached_property
    def added_runs(self) -> list[int]:
        """Lengths of runs of rows that come between two lines next to each other."""
        return [added for lost, added in self._between if added and not lost]

    @cached_property
    def _between(self) -> list[tuple[int, int]]:
        found = []
        row_above, line_above = -1, self.candidate.start - 1
        for row, line in [*self.pairs, (len(self.rows), self.candidate.end)]:
            lost = sum(one not in self.kept for one in range(line_above + 1, line))
            found.append((lost, row - row_above - 1))
            row_above, line_above = row, line
        return found

    @cached_property
    def removed_likeness(self) -> list[float]:
        """For each lost line how alike the row is that is most alike."""
        return self.matcher.best_ratios[self.removed].tolist() if self.removed else []

    def indent_at(self, line: int, default: int = 0) -> int:
        """The indentation of a line of the original."""
        return self.original.indents[line] if 0 <= line < len(self.original) else default

    def mean_likeness(self, rows: Sequence[int], lines: range) -> float:
        """How alike the lines are to the rows most alike, in the mean; 1 without lines."""
        if not len(lines) or not rows:
            return 1.0
        block = self.matcher.ratios[rows[0] : rows[-1] + 1, lines.start : lines.stop]
        return float(block.max(axis=0).mean())


_add = CANDIDATE_FEATURES.add


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
    lost = set(view.removed)
    if not lost:
        return 0.0
    names = view.part.names
    return sum(one.header in lost and one.name not in names for one in view.original.definitions)


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


@_add
def indent_to_line(view: CandidateView) -> float:
    """The first row stands as deep as the line that gives way."""
    return _first_indent(view) - view.indent_at(view.candidate.start)


@_add
def indent_to_above(view: CandidateView) -> float:
    """The first row stands as deep as the line above."""
    return _first_indent(view) - view.indent_at(view.candidate.start - 1)


@_add
def indent_to_below(view: CandidateView) -> float:
    """The last row stands as deep as the line below."""
    return _last_indent(view) - view.indent_at(view.candidate.end)


@_add
def indent_to_last(view: CandidateView) -> float:
    """The last row stands as deep as the last line that gives way."""
    end = view.candidate.end
    last = _last_indent(view)
    return last - view.indent_at(end - 1) if end > view.candidate.start else 0.0


@_add
def opens_before(view: CandidateView) -> float:
    """The line above opens a block."""
    start = view.candidate.start
    return start > 0 and view.original.lines[start - 1].endswith(BLOCK_OPENERS)


@_add
def opens_at_end(view: CandidateView) -> float:
    """The last row opens a block."""
    return view.rows[-1].text.endswith(BLOCK_OPENERS)


@_add
def is_too_deep(view: CandidateView) -> float:
    """Deeper than the line above, which opens no block."""
    return indent_to_above(view) > 0 and not opens_before(view)


@_add
def shift(view: CandidateView) -> float:
    """Moved sideways."""
    return view.candidate.shift


@_add
def is_reindented(view: CandidateView) -> float:
    """Rows are moved each by its own columns."""
    return bool(view.candidate.row_shifts)


@_add
def shift_share(view: CandidateView) -> float:
    """Pairs that are moved by just as much."""
    if not view.pairs:
        return -1.0
    agree = sum(
        view.original.indents[line] - view.rows[row].indent == view.candidate.shift_of(row)
        for row, line in view.pairs
    )
    return agree / len(view.pairs)


@_add
def begins_definition(view: CandidateView) -> float:
    """A definition begins there: 2 if the rows define its name."""
    found = view.original.definition_at.get(view.candidate.start)
    return 0.0 if found is None else 1.0 + (found.name in view.part.names)


@_add
def ends_definition(view: CandidateView) -> float:
    """A definition ends there."""
    return view.candidate.end in view.original.definition_ends


@_add
def is_block(view: CandidateView) -> float:
    """A whole block gives way: 2 with the line that closes it."""
    start, end = view.candidate.start, view.candidate.end
    if start == end:
        return 0.0
    block_end = view.original.block_ends[start]
    return 1.0 if block_end == end else 2.0 if block_end == end - 1 else 0.0


@_add
def num_cut(view: CandidateView) -> float:
    """Definitions whose head gives way and whose end stays."""
    start, end = view.candidate.start, view.candidate.end
    num_filled = len(view.original)
    return sum(
        start <= one.header < end < min(one.end, num_filled) for one in view.original.definitions
    )


@_add
def balance_change(view: CandidateView) -> float:
    """More brackets are opened than before."""
    depths, start, end = view.original.depths, view.candidate.start, view.candidate.end
    kept = sum(depths[line + 1] - depths[line] for line in view.kept)
    dropped = sum(balance(view.rows[row].stripped) for row in view.candidate.dropped)
    return view.part.balance - dropped - (depths[end] - depths[start] - kept)


@_add
def has_gap_before(view: CandidateView) -> float:
    """A marker stands before it."""
    return view.part.has_gap_before


@_add
def has_gap_after(view: CandidateView) -> float:
    """A marker stands behind it."""
    return view.part.has_gap_after


@_add
def starts_file(view: CandidateView) -> float:
    """It begins the file."""
    return view.candidate.start == 0


@_add
def ends_file(view: CandidateView) -> float:
    """It ends the file."""
    return view.candidate.end == len(view.original)


@_add
def position(view: CandidateView) -> float:
    """Where in the file."""
    return view.candidate.start / max(len(view.original), 1)


@_add
def is_insertion(view: CandidateView) -> float:
    """Nothing gives way."""
    return view.candidate.start == view.candidate.end


@_add
def num_kept_runs(view: CandidateView) -> float:
    """Runs that stay without a marker."""
    return len(view.candidate.kept)


@_add
def num_kept_lines(view: CandidateView) -> float:
    """Lines that stay without a marker."""
    return len(view.kept)


@_add
def kept_beside_added(view: CandidateView) -> float:
    """Runs that stay beside a new row rather than between two that are context."""
    paired = {row for row, _ in view.pairs}
    return sum(run.row not in paired or run.row - 1 not in paired for run in view.candidate.kept)


@_add
def num_dropped(view: CandidateView) -> float:
    """Rows that are not written."""
    return len(view.candidate.dropped)


@_add
def num_restored(view: CandidateView) -> float:
    """Sent lines given up for the file's own."""
    lines = {run.row for run in view.candidate.kept}
    return sum(row in lines for row in view.candidate.dropped)


@_add
def num_optional(view: CandidateView) -> float:
    """Rows that may be meant for the reader."""
    return sum(row.is_optional for row in view.rows)


@_add
def shared_words(view: CandidateView) -> float:
    """New rows share rare words with the lines around."""
    words = {word for row in view.added for word in view.part.words[row]}
    if not words:
        return 0.0
    start, end = view.candidate.start, view.candidate.end
    near = range(max(0, start - 2), min(len(view.original), end + 2))
    counts = view.original.word_counts
    return sum(1 / counts[word] for line in near for word in view.original.words[line] & words)


@_add
def repeats_above(view: CandidateView) -> float:
    """The first row stands directly above, too."""
    start = view.candidate.start
    return start > 0 and view.matcher.is_equal[0, start - 1]


@_add
def repeats_below(view: CandidateView) -> float:
    """The last row stands directly below, too."""
    end = view.candidate.end
    return end < len(view.original) and view.matcher.is_equal[len(view.rows) - 1, end]


@_add
def twin_below(view: CandidateView) -> float:
    """A changed row is like the line below: perhaps its old form, left standing."""
    return _twin(view, view.candidate.end)


@_add
def twin_above(view: CandidateView) -> float:
    """A changed row is like the line above."""
    return _twin(view, view.candidate.start - 1)


@_add
def same_word_below(view: CandidateView) -> float:
    """A changed row begins like the line below, as deep."""
    return _has_same_word(view, view.candidate.end)


@_add
def same_word_above(view: CandidateView) -> float:
    """A changed row begins like the line above, as deep."""
    return _has_same_word(view, view.candidate.start - 1)


@_add
def rest_of_block(view: CandidateView) -> float:
    """Lines of a sent header's block that stay, though the rows go on behind it."""
    rows, ends, rest = view.rows, view.original.block_ends, 0
    end = view.candidate.end
    for row, line in view.pairs:
        if row + 1 == len(rows) or rows[row + 1].indent <= rows[row].indent or ends[line] <= end:
            continue
        after = view.part.indent_after
        is_over = any(one.indent <= rows[row].indent for one in rows[row + 1 :])
        if is_over or (after is not None and after <= rows[row].indent):
            rest = max(rest, ends[line] - end)
    return rest


@_add
def marker_after_indent(view: CandidateView) -> float:
    """The marker behind is deeper than the last row."""
    after = view.part.indent_after
    return UNKNOWN if after is None else after - view.part.last_indent


@_add
def marker_before_indent(view: CandidateView) -> float:
    """The marker before is deeper than the first row."""
    before = view.part.indent_before
    return UNKNOWN if before is None else before - view.part.first_indent


@_add
def line_to_marker_after(view: CandidateView) -> float:
    """The line below is as deep as the marker that stands for it."""
    after, end = view.part.indent_after, view.candidate.end
    if after is None or end == len(view.original):
        return UNKNOWN
    return view.original.indents[end] - after


@_add
def line_to_marker_before(view: CandidateView) -> float:
    """The line above is as deep as the marker that stands for it."""
    before, start = view.part.indent_before, view.candidate.start
    return UNKNOWN if before is None or not start else view.original.indents[start - 1] - before


@_add
def marker_after_is_empty(view: CandidateView) -> float:
    """The marker behind has nothing to stand for: the block ends there."""
    if not view.part.has_gap_after:
        return 0.0
    end = view.candidate.end
    if end == len(view.original):
        return 2.0
    return view.original.indents[end] < view.part.last_indent + view.candidate.shift


@_add
def blank_above(view: CandidateView) -> float:
    """A blank line sets the place off above."""
    return view.original.has_blank_before(view.candidate.start)


@_add
def blank_below(view: CandidateView) -> float:
    """A blank line sets the place off below."""
    return view.original.has_blank_before(view.candidate.end)


@_add
def from_alignment(view: CandidateView) -> float:
    """Found by the best alignment."""
    return "alignment" in view.candidate.origins


@_add
def from_run(view: CandidateView) -> float:
    """Found by a run of context."""
    return "run" in view.candidate.origins


@_add
def from_block(view: CandidateView) -> float:
    """Found by a header's block."""
    return "block" in view.candidate.origins


@_add
def from_frame(view: CandidateView) -> float:
    """Found by its first and last row."""
    return "frame" in view.candidate.origins


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 1.0


def _first_indent(view: CandidateView) -> int:
    return view.part.first_indent + view.candidate.shift


def _last_indent(view: CandidateView) -> int:
    return view.part.last_indent + view.candidate.shift_of(len(view.rows) - 1)


def _twin(view: CandidateView, line: int) -> float:
    if not 0 <= line < len(view.original) or not view.changed_rows:
        return 0.0
    return float(view.matcher.ratios[view.changed_rows, line].max())


def _has_same_word(view: CandidateView, line: int) -> bool:
    if not 0 <= line < len(view.original):
        return False
    word = _first_word(view.original.stripped[line])
    if len(word) < 2:
        return False
    indent = view.original.indents[line] - view.candidate.shift
    return any(
        view.rows[row].indent == indent and _first_word(view.rows[row].stripped) == word
        for row in view.changed_rows
    )


def _first_word(text: str) -> str:
    found = WORD.search(text)
    return "" if found is None else found[0]
