"""Features of a candidate behind the candidates of earlier parts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property

from apply_service.edit.place.candidates.candidate import Candidate
from apply_service.edit.place.candidates.part import Part
from apply_service.edit.place.candidates.way import Way, possible_move
from apply_service.edit.place.features.candidate_table import UNKNOWN
from apply_service.edit.place.features.feature import FeatureSet
from apply_service.edit.text.brackets import BLOCK_OPENERS

STEP_FEATURES: FeatureSet[StepView, float] = FeatureSet()
MANY_LINES = 400


class StepView:
    """The candidate of the next part of a way; `row` are its features by itself."""

    def __init__(
        self,
        way: Way,
        candidate: Candidate,
        *,
        local: float,
        rank: int,
        row: Sequence[float],
        header: tuple[int, int] | None,
    ) -> None:
        self.way = way
        self.number = len(way.candidates)
        self.part: Part = way.parts[self.number]
        self.original = self.part.original
        self.candidate = candidate
        self.local = local
        self.rank = rank
        self.row = row
        self.header = header
        self.above = way.candidates[-1] if way.candidates else None
        self.part_above = way.parts[self.number - 1] if way.candidates else None
        self.gap = range(way.end, candidate.start)
        self.gap_indents = self.original.indents[way.end : candidate.start]

    @cached_property
    def header_line(self) -> int | None:
        """Where the header of the part stands in the original; -1 if it is new."""
        if self.header is None:
            return None
        number, row = self.header
        pairs = self.way.candidates[number].pairs
        return next((line for one, line in pairs if one == row), -1)

    @cached_property
    def last_indent(self) -> int:
        """Columns of the last line written; -1 at the start."""
        if self.above is None or self.part_above is None:
            return -1
        return self.part_above.last_indent + self.above.shift

    @cached_property
    def move(self) -> int:
        """By how much the gap may have to be moved."""
        if self.above is None:
            return 0
        return possible_move(self.original, self.way.parts, self.number, self.above, self.candidate)


_add = STEP_FEATURES.add


@_add
def local_score(view: StepView) -> float:
    """How likely it is by itself."""
    return view.local


@_add
def local_rank(view: StepView) -> float:
    """Others are likelier by themselves."""
    return view.rank


@_add
def part_number(view: StepView) -> float:
    """Later parts depend on earlier ones."""
    return view.number


@_add
def num_parts(view: StepView) -> float:
    """Many parts leave little room."""
    return len(view.way.parts)


@_add
def parts_left(view: StepView) -> float:
    """Those that follow need room, too."""
    return len(view.way.parts) - view.number - 1


@_add
def kind(view: StepView) -> float:
    """A segment, a removal or the end of a block."""
    return ("segment", "removal", "block_end").index(view.part.kind)


@_add
def is_reordered(view: StepView) -> float:
    """The part was sent before the one above it."""
    return view.part_above is not None and 0 <= view.part.number < view.part_above.number


@_add
def gap_length(view: StepView) -> float:
    """Lines that the marker before it stands for."""
    return len(view.gap)


@_add
def gap_share(view: StepView) -> float:
    """The part of the file that the marker stands for."""
    return len(view.gap) / max(len(view.original), 1)


@_add
def gap_is_empty(view: StepView) -> float:
    """A marker that stands for nothing, or no gap where there is no marker."""
    return not len(view.gap)


@_add
def has_marker(view: StepView) -> float:
    """A marker stands before it."""
    return view.part.has_gap_before


@_add
def marker_to_gap(view: StepView) -> float:
    """The marker is as deep as the first line it stands for."""
    before = view.part.indent_before
    return UNKNOWN if before is None or not view.gap_indents else before - view.gap_indents[0]


@_add
def marker_to_least(view: StepView) -> float:
    """The marker is as deep as the least deep line it stands for."""
    before = view.part.indent_before
    return UNKNOWN if before is None or not view.gap_indents else before - min(view.gap_indents)


@_add
def least_to_last(view: StepView) -> float:
    """The gap is no deeper than the last line written."""
    return min(view.gap_indents) - view.last_indent if view.gap_indents else UNKNOWN


@_add
def leaves_block(view: StepView) -> float:
    """The gap leaves the block in which both parts stand."""
    if not view.gap_indents or view.above is None:
        return 0.0
    first = view.part.first_indent + view.candidate.shift
    return min(view.gap_indents) < min(view.last_indent, first)


@_add
def definitions_between(view: StepView) -> float:
    """Definitions that the marker stands for."""
    if len(view.gap) >= MANY_LINES:
        return UNKNOWN
    starts = view.original.definition_starts
    return bisect_left(starts, view.gap.stop) - bisect_left(starts, view.gap.start)


@_add
def same_definitions_between(view: StepView) -> float:
    """Definitions between that have a name which the part defines."""
    names = view.part.names
    between = view.original.defined_in(view.gap.start, view.gap.stop) if names else ()
    return sum(one.name in names for one in between)


@_add
def is_inside_header(view: StepView) -> float:
    """It stands in the block of the header above it: -1 without one, -2 if that is new."""
    header = view.header_line
    if header is None or header < 0:
        return -1.0 if header is None else -2.0
    return header < view.candidate.start <= view.original.block_ends[header]


@_add
def ends_inside_header(view: StepView) -> float:
    """It ends within the block of its header."""
    header = view.header_line
    if header is None or header < 0:
        return -1.0
    end = view.original.block_ends[header]
    start = view.candidate.start
    return view.candidate.end <= end if view.candidate.end > start else start <= end


@_add
def is_at_header_end(view: StepView) -> float:
    """It begins where the block of its header ends."""
    header = view.header_line
    if header is None or header < 0:
        return -1.0
    return view.candidate.start == view.original.block_ends[header]


@_add
def begins_at_block_end(view: StepView) -> float:
    """It begins where the block of the part above ends."""
    above = view.above
    if above is None or above.start >= len(view.original):
        return 0.0
    return view.original.block_ends[above.start] == view.candidate.start


@_add
def num_ended(view: StepView) -> float:
    """Blocks before the gap that end at it; for parts that say where a block ends."""
    if view.part.kind != "block_end":
        return -1.0
    ends = view.original.block_ends
    return sum(ends[line] == view.candidate.start for line in range(view.way.end))


@_add
def repeats_last(view: StepView) -> float:
    """The line after the part above is that part's last row."""
    if view.above is None or view.part_above is None or not view.part_above.rows:
        return 0.0
    line = view.way.end
    last = view.part_above.rows[-1].stripped
    return line < view.candidate.start and view.original.stripped[line] == last


@_add
def move(view: StepView) -> float:
    """The gap may have to be moved."""
    return view.move


@_add
def wraps(view: StepView) -> float:
    """The part above opens a block around the gap."""
    if view.move <= 0 or view.part_above is None:
        return 0.0
    return view.part_above.rows[-1].text.endswith(BLOCK_OPENERS)
