"""Features of a candidate: its indentation, borders, brackets, markers and neighbours."""

from __future__ import annotations

from apply_service.edit.place.candidates.original_facts import balance
from apply_service.edit.place.features.candidate_view import UNKNOWN, CandidateView
from apply_service.edit.place.features.feature import FeatureSet
from apply_service.edit.text.brackets import BLOCK_OPENERS
from apply_service.edit.text.words import WORD

PLACE_FEATURES: FeatureSet[CandidateView] = FeatureSet()
_add = PLACE_FEATURES.add


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
    return sum(end < min(one.end, num_filled) for one in view.original.defined_in(start, end))


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
