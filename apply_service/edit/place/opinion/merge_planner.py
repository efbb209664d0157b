"""Draws up a merge: the placements of every segment, their order, cuts and doubts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from apply_service.edit.finding import Finding
from apply_service.edit.place.opinion.empty_gaps import without_empty_gaps
from apply_service.edit.place.opinion.lazy_placements import CERTAIN_MARGIN, LazyPlacements
from apply_service.edit.place.opinion.left_out_lines import (
    MAX_LEFT_OUT,
    first_lines_fate,
    is_code,
    says_again,
)
from apply_service.edit.place.opinion.merge_findings import (
    ambiguous_place,
    anchor_not_found,
    border_unclear,
    few_left_out,
    no_common_order,
    place_guessed,
    too_many_segments,
)
from apply_service.edit.place.opinion.order_placements import OrderPlacements
from apply_service.edit.place.opinion.path_search import NO_PATH, PathSearch
from apply_service.edit.place.opinion.placement import MergePath, Placement, RemovedSpan
from apply_service.edit.place.opinion.removal_context import with_removal_context
from apply_service.edit.place.opinion.removals import removed_spans, unheard_removals
from apply_service.edit.place.opinion.renames import find_renames
from apply_service.edit.place.opinion.segment_nesting import Room, SegmentNesting, is_cut
from apply_service.edit.place.opinion.sound_merges import SoundMerges
from apply_service.edit.place.opinion.syntax_check import SyntaxCheck
from apply_service.edit.read.segment import Segment, Snippet
from apply_service.edit.syntax.definitions import SymbolTable, find_definitions
from apply_service.edit.syntax.syntax import SyntaxTree
from apply_service.edit.text.block_bounds import columns
from apply_service.edit.text.definition_names import definition_name
from apply_service.edit.text.line_index import LineIndex
from apply_service.edit.text.similarity import Similarity
from apply_service.edit.text.word_weights import WordWeights

# Segments leave the file's order only if their own places are better than this together.
OUT_OF_ORDER_GAIN = 4.0
MAX_SEGMENTS = 400
# How much better a place must be that is not in the block a marker was written in.
NESTED_GAIN = 6.0
# How much worse one is that leaves nothing in the block for the marker behind it.
REST_GAIN = 4.0
# How much better it is to take away what stands between the end of a block and what follows it.
PASSED_GAIN = 1.0
# How much better it is to take away the head of a file that the update says again.
RESTATED_GAIN = 4.0
# Parts of an update contradict each other if one fits so much better where others stand: of
# right results of dev and of agents none is above 5.1.
CROWDED_MARGIN = 7.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnMerge:
    """The parts of a plan; see `MergePlan`."""

    candidates: tuple[tuple[Placement, ...], ...]
    order: tuple[int, ...]
    removed: tuple[RemovedSpan, ...]
    findings: tuple[Finding, ...]


class MergePlanner:
    """Plans one merge."""

    def __init__(
        self, original_lines: Sequence[str], snippet: Snippet, tree: SyntaxTree | None
    ) -> None:
        self._snippet = snippet
        self._tree = tree
        self._index = LineIndex(original_lines)
        texts = (segment.texts for segment in snippet.segments)
        renames = find_renames(texts, self._index.stripped)
        similarity = Similarity(self._index.stripped, renames=renames)
        weights = WordWeights(self._index.stripped)
        self._symbols = tree.symbols if tree is not None else find_definitions(original_lines)
        self._table = SymbolTable(self._symbols, self._index, similarity)
        sent = [text for segment in snippet.segments for text in segment.texts]
        self._check = SyntaxCheck(self._index.lines, tree, update_lines=sent)
        self._lazy = LazyPlacements(
            self._index,
            check=self._check,
            symbols=self._symbols,
            language=tree.language if tree is not None else None,
            has_grammar=tree is not None,
            similarity=similarity,
            renames=renames,
            weights=weights,
            segments=snippet.segments,
        )
        self._guesses = OrderPlacements(
            self._index,
            self._symbols,
            tree.imports if tree is not None else None,
            similarity,
            weights,
        )
        self._findings: list[Finding] = []
        self._rooms: dict[int, Room] = {}
        self._ending_inside: set[int] = set()

    def draw(self) -> DrawnMerge:
        """Draw up all parts of the plan."""
        if len(self._snippet.segments) > MAX_SEGMENTS:
            return self._too_many()
        candidates = self._candidates()
        if self._snippet.format == "fragment":
            segments = self._snippet.segments
            unclear = [one for one in segments if one.is_gap_guessed or one.is_rest_unclear]
            self._findings.extend(map(border_unclear, unclear[:1]))
        order = self._order(candidates)
        candidates = self._with_guesses(candidates, order)
        removed = self._removed(candidates, order)
        if self._snippet.format == "lazy":
            candidates = without_empty_gaps(candidates, order, self._index)
        if removed:
            removals = self._snippet.removals
            candidates = with_removal_context(candidates, removals, removed, self._index)
        if self._tree is not None and not self._tree.error_lines:
            merges = SoundMerges(self._check, self._symbols, order=order, removed=removed)
            candidates = merges.settle(candidates)
        candidates = self._with_first_lines_settled(candidates, order, removed)
        self._note_doubts(candidates, order)
        return DrawnMerge(
            candidates=tuple(map(tuple, candidates)),
            order=tuple(order),
            removed=tuple(removed),
            findings=tuple(self._findings),
        )

    def _too_many(self) -> DrawnMerge:
        finding = too_many_segments(len(self._snippet.segments), MAX_SEGMENTS)
        return DrawnMerge(candidates=(), order=(), removed=(), findings=(finding,))

    def _candidates(self) -> list[list[Placement]]:
        """The placements of every segment that something in it speaks for, best first.

        What follows a marker inside a block stands in that block, if it finds a place there.
        """
        nesting = SegmentNesting(self._index, self._symbols)
        candidates: list[list[Placement]] = []
        for number, segment in enumerate(self._snippet.segments):
            room = nesting.enter(segment)
            if room is not None and self._index.num_filled(room.high, len(self._index)):
                self._ending_inside.add(number)
            is_first, is_last = self._is_at_border(number, segment)
            found = self._lazy.of(number, segment, is_first=is_first, is_last=is_last)
            if room is not None:
                found = self._inside(number, segment, room, found)
            found = self._with_rest(segment, found)
            nesting.leave(segment, found[0] if found else self._try_header(number, segment))
            candidates.append(found)
        return candidates

    def _with_rest(self, segment: Segment, found: list[Placement]) -> list[Placement]:
        """Add, unless one is certain, placements that leave a marker nothing to stand for.

        In the block where the marker is written, that is.
        """
        filled = [line.text for line in segment.lines if line.text.strip()]
        deeper = 0 if segment.next_indent is None else segment.next_indent - columns(filled[0])
        if deeper <= 0 or not found or found[0].is_certain:
            return found

        def weight_of(one: Placement) -> float:
            depth = deeper + columns(next(filter(str.strip, one.lines), ""))
            place = one.end + self._index.blank_after(one.end)
            has_rest = place < len(self._index) and columns(self._index.lines[place]) >= depth
            return one.weight - (0.0 if has_rest else REST_GAIN)

        weighed = [replace(one, weight=weight_of(one)) for one in found]
        return sorted(weighed, key=lambda one: -one.weight)

    def _try_header(self, number: int, segment: Segment) -> Placement | None:
        """Where the header of a block has another name, if a marker stands for the rest of it."""
        if not is_cut(segment):
            return None
        total = len(self._index)
        changed = self._guesses.changed(number, segment.texts, low=0, high=total)
        return changed[0] if changed else None

    def _inside(
        self, number: int, segment: Segment, room: Room, found: list[Placement]
    ) -> list[Placement]:
        """Placements that keep to the room, unless one of those `found` is far better."""
        inside = self._lazy.of(number, segment, room=room)
        passed = self._passed_over(room, inside, found)
        if passed:
            return passed
        if not inside and found and not found[0].is_certain and self._is_named(number - 1):
            found = []
        if not inside and not found:
            self._rooms[number] = room
        if not inside or (found and found[0].weight > inside[0].weight + NESTED_GAIN):
            return found
        self._rooms[number] = room
        if room.closes:
            idle = [one for one in inside if one.is_idle_in(self._index.lines)]
            return [replace(one, is_certain=True) for one in idle[:1]] or inside
        return inside

    def _is_named(self, number: int) -> bool:
        """Whether a segment ends with the header of a class that a marker stands inside of."""
        if number < 0 or not is_cut(self._snippet.segments[number]):
            return False
        texts = self._snippet.segments[number].texts
        name = definition_name(next(filter(str.strip, reversed(texts))))
        return name is not None and any(one.kind == "class" for one in self._table.named(name))

    def _passed_over(
        self, room: Room, inside: Sequence[Placement], found: Sequence[Placement]
    ) -> list[Placement]:
        """Placements directly behind a block's end, as the update shows; lines between are to go.

        Empty unless all lines of the segment stand further down as they are, behind the end of
        another block.
        """
        lines = self._index.lines
        behind = next((one for one in found if one.is_idle_in(lines)), None)
        has_end = any(one.is_idle_in(lines) for one in inside)
        if behind is None or has_end or not room.closes or behind.start <= room.low:
            return []
        weight = max(one.weight for one in (*inside, *found)) + PASSED_GAIN
        passed = replace(behind, start=room.low, weight=weight, is_certain=False)
        return [passed, *(replace(one, is_certain=False) for one in (*inside, behind))]

    def _is_at_border(self, number: int, segment: Segment) -> tuple[bool, bool]:
        """Whether a segment begins the file, and whether it ends it.

        What ends in a block that ends before the file does not, though no marker follows.
        """
        is_last = number == len(self._snippet.segments) - 1 and not segment.has_gap_after
        is_last = is_last and number not in self._ending_inside
        return number == 0 and not segment.has_gap_before, is_last

    def _order(self, candidates: Sequence[Sequence[Placement]]) -> list[int]:
        """The order of the snippet, unless the segments clearly say another one."""
        written = list(range(len(candidates)))
        placed = [number for number in written if candidates[number]]
        if len(placed) < 2:
            return written
        kept = PathSearch([candidates[number] for number in placed]).best_weight
        tops = {number: candidates[number][0] for number in placed}
        for number in written:
            if number not in tops and number - 1 in tops:
                tops[number] = tops[number - 1]
        by_place = sorted(
            written, key=lambda number: (tops[number].start if number in tops else -1, number)
        )
        moved = [number for number in by_place if candidates[number]]
        free = PathSearch([candidates[number] for number in moved]).best_weight
        return by_place if free > NO_PATH and free - kept > OUT_OF_ORDER_GAIN else written

    def _with_guesses(
        self, candidates: Sequence[Sequence[Placement]], order: Sequence[int]
    ) -> list[list[Placement]]:
        """Segments without a place of their own: changed lines first, then by their neighbours."""
        filled = [list(one) for one in candidates]
        if all(filled):
            return filled
        spans = self._spans(filled, order)
        for number in order:
            segment = self._snippet.segments[number]
            if filled[number] or segment.old is not None:
                continue
            if not self._lazy.is_new(number, segment):
                low, high, _ = self._bounds(number, order, spans)
                filled[number] = self._guesses.changed(number, segment.texts, low=low, high=high)
        spans = self._spans(filled, order)
        for number in order:
            if filled[number]:
                continue
            segment = self._snippet.segments[number]
            if segment.old is not None and any(text.strip() for text in segment.old):
                self._findings.append(anchor_not_found(segment, self._index, self._symbols))
                continue
            low, high, has_before = self._bounds(number, order, spans)
            may_be_last = number == len(candidates) - 1 and segment.is_gap_guessed
            is_first, is_last = self._is_at_border(number, segment)
            filled[number] = self._guesses.of(
                number,
                segment.texts,
                low=high if is_last else low,
                high=high,
                has_definition=self._lazy.has_definition(number, segment),
                is_cut=is_cut(segment),
                has_neighbour=has_before and not may_be_last,
                is_first=is_first,
            )
            if filled[number]:
                top = filled[number][0]
                spans[number] = (top.start, top.end)
        return filled

    def _spans(
        self, candidates: Sequence[Sequence[Placement]], order: Sequence[int]
    ) -> dict[int, tuple[int, int]]:
        """Where the segments that have placements stand on the best path."""
        placed = [candidates[number] for number in order if candidates[number]]
        best = PathSearch(placed).best_path() or ()
        return {one.segment: (one.start, one.end) for one in best}

    def _bounds(
        self, number: int, order: Sequence[int], spans: Mapping[int, tuple[int, int]]
    ) -> tuple[int, int, bool]:
        """The lines between the neighbours that have a place, and whether one stands before."""
        rank = order.index(number)
        before = [spans[other][1] for other in order[:rank] if other in spans]
        after = [spans[other][0] for other in order[rank + 1 :] if other in spans]
        low, high = max(before, default=0), min(after, default=len(self._index))
        room = self._rooms.get(number)
        if room is not None and not room.closes and max(low, room.low) <= min(high, room.high):
            low, high = max(low, room.low), min(high, room.high)
        return low, high, bool(before)

    def _removed(
        self, candidates: Sequence[Sequence[Placement]], order: Sequence[int]
    ) -> list[RemovedSpan]:
        if not self._snippet.removals:
            return []
        best = PathSearch([candidates[number] for number in order]).best_path() or ()
        spans = {one.segment: (one.start, one.end) for one in best}
        removed, findings = removed_spans(
            self._snippet.removals, self._index, self._table, placed=spans
        )
        self._findings += findings
        return removed

    def _with_first_lines_settled(
        self,
        candidates: Sequence[list[Placement]],
        order: Sequence[int],
        removed: Sequence[RemovedSpan],
    ) -> list[list[Placement]]:
        """The candidates, after a decision on lines at the file's start without a marker."""
        placements = PathSearch([candidates[number] for number in order]).best_path()
        if not placements or order[0]:
            return list(candidates)
        segment, is_lazy = self._snippet.segments[0], self._snippet.format == "lazy"
        if segment.old is not None or (is_lazy and not segment.is_start_guessed):
            return list(candidates)
        path = MergePath(placements=placements, removed=tuple(removed))
        best = placements[0]
        if says_again(self._index.lines, path):
            num_lines = self._index.num_filled(0, best.start)
            self._findings.append(few_left_out(segment, num_lines, is_end=False))
            begins = replace(best, start=0, weight=best.weight + RESTATED_GAIN, is_certain=False)
            others = [replace(one, is_certain=False) for one in candidates[0]]
            return [[begins, *others], *candidates[1:]]
        fate = first_lines_fate(self._index.lines, path) if is_lazy else "stays"
        if fate == "goes":
            begins = replace(best, start=0, is_certain=best.is_idle_in(self._index.lines))
            others = [one for one in candidates[0] if one not in (best, begins)]
            return [[begins, *others], *candidates[1:]]
        if fate == "unclear":
            num_lines = sum(map(is_code, self._index.stripped[: best.start]))
            self._findings.append(few_left_out(segment, num_lines, is_end=False))
        return list(candidates)

    def _note_last_left_out(self, path: Sequence[Placement]) -> None:
        """Lines at the end of the file may go, if they are few and no marker stands for them."""
        last = len(self._snippet.segments) - 1
        end = next((one.end for one in path if one.segment == last), None)
        if end is not None and self._snippet.segments[last].is_end_guessed:
            segment = self._snippet.segments[last]
            num_lines = sum(map(is_code, self._index.stripped[end:]))
            if 0 < num_lines <= MAX_LEFT_OUT:
                self._findings.append(few_left_out(segment, num_lines, is_end=True))

    def _note_doubts(self, candidates: Sequence[Sequence[Placement]], order: Sequence[int]) -> None:
        if any(finding.severity == "error" for finding in self._findings):
            return
        best = PathSearch([candidates[number] for number in order]).best_path()
        if best is None or _is_crowded_out(best, candidates):
            self._findings.append(no_common_order(self._snippet))
            return
        if self._snippet.format == "lazy":
            self._note_last_left_out(best)
            self._findings += unheard_removals(self._snippet.segments, self._index)
        for placement in best:
            segment = self._snippet.segments[placement.segment]
            others = [
                other
                for other in candidates[placement.segment]
                if other.start != placement.start
                and other.weight > placement.weight - CERTAIN_MARGIN
            ]
            if placement.reason == "order":
                self._findings.append(place_guessed(segment, placement, self._index))
            elif (
                others and not placement.is_certain and placement.reason in ("context", "explicit")
            ):
                places = sorted({placement.start, *(other.start for other in others)})
                self._findings.append(ambiguous_place(segment, places, self._index))


def _is_crowded_out(path: Sequence[Placement], candidates: Sequence[Sequence[Placement]]) -> bool:
    """Whether a segment fits far better where others of the path leave it no room."""
    ends = [0, *(one.end for one in path)]
    starts = [*(one.start for one in path[1:]), math.inf]
    return any(
        other.weight > one.weight + CROWDED_MARGIN and (other.start < low or high < other.end)
        for one, low, high in zip(path, ends, starts, strict=False)
        for other in candidates[one.segment]
    )
