"""Placements of lazy segments: spots with the lines that are written there, and how sure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import msgspec

from apply_service.edit.place.opinion.alike_lines import AlikeLines
from apply_service.edit.place.opinion.lazy_places import LazyPlacer, Spot
from apply_service.edit.place.opinion.left_out_lines import may_go
from apply_service.edit.place.opinion.placement import Placement
from apply_service.edit.place.opinion.placement_features import (
    FEATURES,
    LineKinship,
    PlacementFeatures,
)
from apply_service.edit.place.opinion.placement_ranking import weight_of
from apply_service.edit.place.opinion.placement_trees import MAX_BEHIND, confirmed, corrected
from apply_service.edit.place.opinion.segment_borders import MIN_FULLNESS
from apply_service.edit.place.opinion.segment_nesting import Room
from apply_service.edit.place.opinion.syntax_check import SyntaxCheck
from apply_service.edit.read.segment import Segment
from apply_service.edit.syntax.definitions import (
    BLOCKS,
    BLOCKS_OR_RULES,
    SymbolTable,
    find_definitions,
)
from apply_service.edit.syntax.languages import OVERLOADING
from apply_service.edit.syntax.new_definitions import NewDefinitions
from apply_service.edit.syntax.symbol import Symbol
from apply_service.edit.syntax.syntax import parse_fragment
from apply_service.edit.text.bindings import Bindings
from apply_service.edit.text.brackets import BLOCK_OPENERS, CLOSERS_OR_END, BalanceIndex, balance_of
from apply_service.edit.text.definition_names import definition_name
from apply_service.edit.text.indentation import reindented
from apply_service.edit.text.line_index import LineIndex
from apply_service.edit.text.runs import Run
from apply_service.edit.text.similarity import Similarity
from apply_service.edit.text.word_weights import WordWeights
from apply_service.edit.text.words import WORD
from apply_service.edit.text.work_budget import spend

MAX_CANDIDATES = 64
# Placements that are weighed with all their features, and how many for each segment after them.
MAX_RANKED = 128
MAX_RANKED_IN_ALL = 4_000
MAX_RANKED_LATE = 16
# What it takes to weigh a placement by its features, and to write its lines.
COMPARISONS_PER_PLACEMENT = 100
LINES_PER_COMPARISON = 8
# How much lighter all other placements must be, by what the best one stands on; measured.
CERTAIN_MARGIN = 3.0
OPEN_MARGIN = 4.0
UNCLOSED_MARGIN = 6.0
# Lines that go between weak runs, many that go, or new lines at an open border.
LOOSE_MARGIN = 7.0
# Another number of blank lines in the same place.
BLANK_MARGIN = 6.0
# How much better placements that break the syntax may fit than the certain one, and how many of
# them are tried.
MAX_BROKEN_LEAD = 6.0
MAX_BROKEN = 12
# Lines that are merely alike tell nothing of a place that fits worse.
MIN_ALIKE_WEIGHT = -8.0
# Where more than one line is replaced, the runs on both sides must weigh this much.
MIN_FIRM_WEIGHT = 3.5
MIN_CERTAIN_WEIGHT = 5.0
# Filled lines dropped between two neighbouring snippet lines that still are no decision.
MAX_CERTAIN_LOST = 4
# A new line that stands this near to the place says that lines may have moved.
NEAR_LINES = 40
# Placements that repeat with and without instruction comments.
MAX_OPTIONAL_VARIANTS = 8
_OPTIONAL_COST = 6.0
# Blank lines beside a border that differ from the best guess.
_BLANK_COST = 2.5
_AIRY_BLANK_COST = 8.0
# What is left of the weight where a segment of some lines would change nothing.
_IDLE_SHARE = 0.5
_MIN_IDLE_LINES = 3
_DROPPED_COST = 1.5
_BORDER_COST = 10.0
# What changes nothing and has no marker behind it rather says that the file ends there.
_IDLE_END_GAIN = 1.0
# Of lines that say nothing ("}") the first place after the neighbours is meant.
_LATER_COST = 1e-4
_MAX_DROPPED = 3
_MAX_INSIDE = 32
# As many blank lines beside markers are a habit.
MIN_AIRY_SIDES = 2
# What a definition costs that would stand twice; of agents' updates none meant that.
_DOUBLED_COST = 3.0
_DOUBLED = FEATURES.index("num_doubled_definitions")


class LazyPlacements:
    """Places the lazy segments of one request in its original."""

    def __init__(
        self,
        index: LineIndex,
        *,
        check: SyntaxCheck,
        symbols: Sequence[Symbol],
        language: str | None,
        has_grammar: bool,
        similarity: Similarity,
        renames: Mapping[str, str],
        weights: WordWeights,
        segments: Sequence[Segment],
    ) -> None:
        """`segments` are all those of the update, `renames` the old names for its new ones."""
        self._index = index
        self._check = check
        self._segments = segments
        self._bindings = Bindings(index.lines)
        self._similarity = similarity
        self._weights = weights
        self._balances = BalanceIndex(index.lines)
        self._table = SymbolTable(symbols, index, similarity)
        sent = [text for segment in segments for text in segment.texts]
        self._alike = AlikeLines(index, similarity, weights)
        self._new = NewDefinitions(self._table, index, renames, sent)
        self._core: list[str] = []
        self._room: Room | None = None
        self._is_airy = is_airy(segments)
        self._has_block = False
        self._num_ranked = 0
        self._kinship = LineKinship()
        self._fragments: dict[tuple[int, tuple[str, ...]], Sequence[Symbol]] = {}
        self._language = language if has_grammar else None

    def of(
        self,
        number: int,
        segment: Segment,
        *,
        is_first: bool = False,
        is_last: bool = False,
        room: Room | None = None,
    ) -> list[Placement]:
        """Placements of segment `number`, best first; none if nothing in it tells the place.

        With `room` only those that keep to it.
        """
        self._room = room
        lines = [line for line in segment.lines if not line.is_optional] or list(segment.lines)
        texts = [line.text for line in lines]
        best = self._of_texts(number, texts, is_first=is_first, is_last=is_last)
        if len(lines) < len(segment.lines):
            best = [*best, *self._with_optional(number, segment, best, is_first, is_last)]
        if segment.is_gap_guessed and best and room is None:
            best = self._with_borders(number, segment, texts, best, is_first, is_last)
        if all(self._index.fullness(text.strip()) < MIN_FULLNESS for text in texts):
            best = [replace(one, weight=one.weight - _LATER_COST * one.start) for one in best]
        best = sorted(best, key=lambda one: -one.weight)[:MAX_CANDIDATES]
        weigh = confirmed if best and best[0].is_certain else corrected
        return self._without_doubles(weigh(best, self._index.lines), segment)

    def _without_doubles(self, placements: list[Placement], segment: Segment) -> list[Placement]:
        """After the others those that define a second time what a file can define once.

        A decorated definition may be one of several.
        """
        if self._language is None or self._language in OVERLOADING or not placements:
            return placements
        if any(text.lstrip().startswith("@") for text in segment.texts):
            return placements
        num_doubled = [one.features[_DOUBLED] if one.features else 0.0 for one in placements]
        least = min(num_doubled)
        weighed = [
            replace(
                one,
                weight=one.weight - _DOUBLED_COST * (number - least),
                is_certain=one.is_certain and number == least,
            )
            for one, number in zip(placements, num_doubled, strict=True)
        ]
        return sorted(weighed, key=lambda one: -one.weight)

    def has_definition(self, number: int, segment: Segment) -> bool:
        """Whether segment `number` defines a function, a class, a style rule or the like."""
        kinds = {symbol.kind for symbol in self._fragment(number, segment.texts)}
        return not kinds.isdisjoint(BLOCKS_OR_RULES)

    def is_new(self, number: int, segment: Segment) -> bool:
        """Whether segment `number` is nothing but definitions that the file lacks."""
        core = list(segment.texts)
        rows = self._new.rows(self._fragment(number, core), core)
        return all(row in rows or not text.strip() for row, text in enumerate(core))

    def _with_borders(
        self,
        number: int,
        segment: Segment,
        texts: Sequence[str],
        best: Sequence[Placement],
        is_first: bool,
        is_last: bool,
    ) -> list[Placement]:
        """Without a marker at its border the segment may begin or end the file all the same."""
        is_start = number == 0 and segment.is_start_guessed
        can_begin = is_first or (is_start and self._may_begin(texts, best[0]))
        is_end = number == len(self._segments) - 1 and segment.is_end_guessed
        if is_end and number and not is_last and best[0].is_idle_in(self._index.lines):
            rests = [
                replace(one, end=len(self._index), weight=one.weight + _IDLE_END_GAIN)
                for one in best
                if one.weight > best[0].weight - CERTAIN_MARGIN
                and one.is_idle_in(self._index.lines)
            ]
            return [replace(one, is_certain=False) for one in (*rests, *best)]
        can_end = is_last or (is_end and self._may_end(texts, best[0]))
        if (can_begin, can_end) == (is_first, is_last):
            return list(best)
        found = [replace(one, is_certain=False) for one in best]
        taken = {(one.start, one.end, one.lines) for one in best}
        for begins, ends in ((can_begin, is_last), (is_first, can_end), (can_begin, can_end)):
            if (begins, ends) == (is_first, is_last):
                continue
            for one in self._of_texts(number, texts, is_first=begins, is_last=ends)[:4]:
                if (one.start, one.end, one.lines) not in taken:
                    taken.add((one.start, one.end, one.lines))
                    found.append(replace(one, weight=one.weight - _BORDER_COST, is_certain=False))
        return found

    def _may_begin(self, texts: Sequence[str], best: Placement) -> bool:
        """Whether what stands above a segment may go: it is little, or the segment has it anew."""
        outermost = next(filter(str.strip, texts), "").strip()
        if outermost != next(filter(None, self._index.stripped[best.start : best.end]), ""):
            return True
        return may_go(self._index.lines[: best.start], self._unknown(texts))

    def _may_end(self, texts: Sequence[str], best: Placement) -> bool:
        """Whether what stands below a segment may go."""
        outermost = next(filter(str.strip, reversed(texts)), "").strip()
        if outermost != next(filter(None, self._index.stripped[best.start : best.end][::-1]), ""):
            return True
        return may_go(self._index.lines[best.end :], self._unknown(texts))

    def _unknown(self, texts: Iterable[str]) -> list[str]:
        """Those lines that the original does not have."""
        return [text for text in texts if not self._index.places(text.strip())]

    def _with_optional(
        self,
        number: int,
        segment: Segment,
        best: Sequence[Placement],
        is_first: bool,
        is_last: bool,
    ) -> Iterator[Placement]:
        """The same places with the instruction comments kept."""
        taken = {(one.start, one.end, one.lines) for one in best}
        full = self._of_texts(number, segment.texts, is_first=is_first, is_last=is_last)
        for placement in full[:MAX_OPTIONAL_VARIANTS]:
            if (placement.start, placement.end, placement.lines) not in taken:
                weight = min(placement.weight, best[0].weight if best else 0.0) - _OPTIONAL_COST
                yield replace(placement, weight=weight, is_certain=False)

    def _of_texts(
        self, number: int, texts: Sequence[str], *, is_first: bool, is_last: bool
    ) -> list[Placement]:
        filled = [place for place, text in enumerate(texts) if text.strip()]
        core = list(texts[filled[0] : filled[-1] + 1])
        spend(len(core))
        self._core = core
        blanks = texts[: filled[0]], texts[filled[-1] + 1 :]
        edges = self._edge_blanks(
            len(blanks[0]) if is_first else 0, len(blanks[1]) if is_last else 0
        )
        fragment = self._fragment(number, core)
        self._has_block = any(symbol.kind in BLOCKS for symbol in fragment)
        new_rows = self._new.rows(fragment, core)
        if all(row in new_rows or not text.strip() for row, text in enumerate(core)):
            return []
        room = self._room
        by_name = self._table.runs(fragment, core, next_indent=self._segments[number].next_indent)
        known_rows = {row for run in by_name for row in range(run.new, run.new_end)}
        alike = list(self._alike.runs(core, but=new_rows | known_rows))
        placer = LazyPlacer(
            core,
            self._index if room is None else self._index.within(room.low, room.high),
            definition_runs=by_name,
            alike_runs=alike,
            new_rows=new_rows,
            balances=self._balances,
            similarity=self._similarity,
            weights=self._weights,
            is_first=is_first,
            is_last=is_last,
        )
        words = words_of(core)
        known: dict[tuple[int, int, tuple[str, ...]], tuple[Placement, Spot]] = {}
        limit = MAX_RANKED if self._num_ranked < MAX_RANKED_IN_ALL else MAX_RANKED_LATE
        insertions = placer.insertions()
        for spot in placer.spots():
            spend(1 + len(core) // LINES_PER_COMPARISON)
            if len(known) > limit and (spot.start, spot.end) not in insertions:
                continue
            lines = [*edges[0], *reindented(core, spot.runs, self._index), *edges[1]]
            dropped = min(self._num_dropped(spot, words), _MAX_DROPPED)
            if dropped:
                weight = spot.weight - _DROPPED_COST * dropped
                spot = msgspec.structs.replace(spot, weight=weight)
            for placement in self._variants(number, spot, lines, blanks):
                if room is not None and not room.admits(placement):
                    continue
                key = self._difference(placement)
                if key[0] == key[1] and self._new.splits(key[0], key[2]):
                    continue
                if key not in known or placement.weight > known[key][0].weight:
                    known[key] = placement, spot
        self._num_ranked += len(known)
        others = [
            text
            for other, segment in enumerate(self._segments)
            if other != number
            for text in segment.texts
        ]
        features = PlacementFeatures(
            core,
            self._index,
            table=self._table,
            balances=self._balances,
            bindings=self._bindings,
            weights=self._weights,
            other_lines=others,
            is_first=is_first,
            is_last=is_last,
            defined=[(one.name, core[one.header]) for one in fragment if one.kind in BLOCKS],
            begins_new=self._new.begins(fragment, core),
            gaps=(self._segments[number].has_gap_before, self._segments[number].has_gap_after),
            kinship=self._kinship,
        )
        return self._ranked(known.values(), features)

    def _edge_blanks(self, num_before: int, num_after: int) -> tuple[list[str], list[str]]:
        """Blank lines at the borders of the file that it has and the update shows."""
        total = len(self._index)
        before = min(num_before, self._index.blank_after(0))
        after = min(num_after, self._index.blank_before(total))
        return [""] * before, [""] * after

    def _ranked(
        self, placements: Iterable[tuple[Placement, Spot]], features: PlacementFeatures
    ) -> list[Placement]:
        """The placements by all that speaks for them, the first of them judged.

        Those far behind the first do without the features that their weight does not need.
        """
        weighed = []
        for placement, spot in placements:
            spend(COMPARISONS_PER_PLACEMENT + len(placement.lines) // LINES_PER_COMPARISON)
            found = features.weighed(placement)
            weight = weight_of(found)
            if weight >= MIN_ALIKE_WEIGHT or not any(run.is_alike for run in spot.runs):
                weighed.append((weight, found, placement, spot))
        weighed.sort(key=lambda one: (-one[0], one[2].start, one[2].end))
        ranked = []
        for weight, found, placement, spot in weighed[:MAX_CANDIDATES]:
            if weight >= weighed[0][0] - MAX_BEHIND:
                found = (*found, *features.further(placement))
            ranked.append((replace(placement, weight=weight, features=found), spot))
        return self._judged(ranked)

    def _fragment(self, number: int, core: Sequence[str]) -> Sequence[Symbol]:
        key = (number, tuple(core))
        if key not in self._fragments:
            next_indent = self._segments[number].next_indent
            self._fragments[key] = (
                find_definitions(core)
                if self._language is None
                else parse_fragment(core, self._language, next_indent=next_indent)
            )
        return self._fragments[key]

    def _variants(
        self,
        number: int,
        spot: Spot,
        lines: list[str],
        blanks: tuple[Sequence[str], Sequence[str]],
    ) -> Iterator[Placement]:
        """The spot with the blank lines that the snippet shows around it, as it writes them.

        Blank lines that the original has there already are not written again.
        """
        start, end = spot.start, spot.end
        plain = self._placement(number, spot, (start, end), lines)
        is_idle = lines == list(self._index.lines[start:end])
        old_before, old_after = self._index.blank_before(start), self._index.blank_after(end)
        head = blanks[0] if len(blanks[0]) > old_before and start > old_before else ()
        has_more = len(blanks[1]) > old_after and end + old_after < len(self._index)
        tail = blanks[1] if has_more else ()
        if self._is_airy:
            head, tail = (head if spot.is_open_before else ()), (tail if spot.is_open_after else ())
        if not head and not tail:
            yield self._sober(plain) if is_idle else plain
            return
        wants_head = bool(head) and spot.is_open_before and not self._opens(start)
        wants_tail = bool(tail) and spot.is_open_after and not self._closes(end)
        wanted = (bool(head), bool(tail)) if is_idle else (wants_head, wants_tail)
        blank_cost = _BLANK_COST
        if self._is_airy and not self._has_block:
            wanted, blank_cost = (False, False), _AIRY_BLANK_COST
        for shown in ((False, False), (bool(head), False), (False, bool(tail)), (True, True)):
            if (shown[0] and not head) or (shown[1] and not tail):
                continue
            placement = self._placement(
                number,
                spot,
                (start - old_before if shown[0] else start, end + old_after if shown[1] else end),
                [*(head if shown[0] else ()), *lines, *(tail if shown[1] else ())],
            )
            cost = blank_cost * ((shown[0] != wanted[0]) + (shown[1] != wanted[1]))
            yield replace(placement, weight=placement.weight - cost) if cost else placement

    def _opens(self, border: int) -> bool:
        return border == 0 or self._index.stripped[border - 1].endswith(BLOCK_OPENERS)

    def _closes(self, border: int) -> bool:
        text = self._index.stripped[border] if border < len(self._index) else ""
        return not text or text.startswith(CLOSERS_OR_END)

    def _sober(self, placement: Placement) -> Placement:
        """A segment that changes nothing there is mostly meant for another place."""
        num_filled = sum(1 for line in placement.lines if line.strip())
        share = _IDLE_SHARE if num_filled >= _MIN_IDLE_LINES else 1.0
        return replace(placement, weight=placement.weight * share)

    def _placement(
        self, number: int, spot: Spot, span: tuple[int, int], lines: Sequence[str]
    ) -> Placement:
        return Placement(
            segment=number,
            start=span[0],
            end=span[1],
            lines=tuple(lines),
            weight=spot.weight,
            reason=spot.reason,
        )

    def _difference(self, placement: Placement) -> tuple[int, int, tuple[str, ...]]:
        """What a placement changes, without the lines at its borders that stay."""
        old, new = self._index.lines, placement.lines
        start, end, first, last = placement.start, placement.end, 0, len(placement.lines)
        while start < end and first < last and old[start] == new[first]:
            start, first = start + 1, first + 1
        while start < end and first < last and old[end - 1] == new[last - 1]:
            end, last = end - 1, last - 1
        return start, end, tuple(new[first:last])

    def _judged(self, ranked: Sequence[tuple[Placement, Spot]]) -> list[Placement]:
        """Only the first can be certain, and only if it is sound and no other comes near.

        If all that come near or fit better break the syntax, they are none, and left out.
        """
        placements = [placement for placement, _ in ranked]
        for first, spot in ranked:
            if first.weight < placements[0].weight - MAX_BROKEN_LEAD:
                break
            if not self._may_be_certain(first, spot):
                continue
            needed = self._needed_margin(spot)
            near = [
                other
                for other in placements
                if other is not first
                and first.weight - other.weight < max(needed, self._blank_margin(first, other))
            ]
            if near and not self._are_broken(near, beside=first):
                break
            rest = [one for one in placements if one is not first and one not in near]
            return [replace(first, is_certain=True), *rest]
        return placements

    def _may_be_certain(self, placement: Placement, spot: Spot) -> bool:
        """Whether a placement is certain where no other comes near."""
        return (
            spot.weight >= MIN_CERTAIN_WEIGHT
            and self._needed_margin(spot) < math.inf
            and self._is_sound(placement)
            and self._is_as_written(placement)
        )

    def _are_broken(self, others: Sequence[Placement], *, beside: Placement) -> bool:
        """Whether one placement keeps the syntax and all the others break it."""
        return (
            len(others) <= MAX_BROKEN
            and self._check.of_placement(beside) == "sound"
            and self._check.keeps_blocks(beside)
            and all(self._check.of_placement(other) == "broken" for other in others)
        )

    def _blank_margin(self, first: Placement, other: Placement) -> float:
        """How far another number of blank lines in the same place must be behind."""
        if (first.start, first.end) != (other.start, other.end):
            return 0.0
        texts = list(filter(str.strip, first.lines))
        return BLANK_MARGIN if texts == list(filter(str.strip, other.lines)) else 0.0

    def _needed_margin(self, spot: Spot) -> float:
        """How far ahead of all others a spot must be to be certain; never: infinitely far."""
        num_repeated = self._num_repeated(spot)
        is_guess = any(run.is_alike or self._is_shortened(run) for run in spot.runs)
        if num_repeated > 1 or is_guess:
            return math.inf
        is_loose = spot.max_lost > MAX_CERTAIN_LOST or not self._is_firm(spot)
        if is_loose or (spot.is_open and spot.reason == "context"):
            return LOOSE_MARGIN
        if not all(run.is_closed for run in spot.runs):
            return UNCLOSED_MARGIN
        return OPEN_MARGIN if spot.is_open or num_repeated else CERTAIN_MARGIN

    def _is_shortened(self, run: Run) -> bool:
        """Whether a definition that may go on in the original shows less than stands there."""
        num_new = sum(1 for text in self._core[run.new : run.new_end] if text.strip())
        return not run.is_closed and num_new < self._index.num_filled(run.old, run.old_end)

    def _is_firm(self, spot: Spot) -> bool:
        """Whether every replaced stretch lies between runs that say something."""
        return all(
            min(left.weight, right.weight) >= MIN_FIRM_WEIGHT
            or self._index.num_filled(left.old_end, right.old) <= 1
            for left, right in pairwise(spot.runs)
        )

    def _is_as_written(self, placement: Placement) -> bool:
        """Whether the lines have kept the indentation that the update gives them."""
        written = [line for line in placement.lines if line.strip()]
        return written == [text for text in self._core if text.strip()]

    def _num_dropped(self, spot: Spot, words: frozenset[str]) -> int:
        """How many definitions would go that the segment does not mention."""
        dropped = self._table.inside(spot.start, spot.end, limit=_MAX_INSIDE)
        return sum(not mentions(words, symbol.name) for symbol in dropped)

    def _num_repeated(self, spot: Spot) -> int:
        """How many new lines of the segment stand close by in the original: they may have moved."""
        num_repeated = 0
        covered = {place for run in spot.runs for place in range(run.new, run.new_end)}
        near = range(spot.start - NEAR_LINES, spot.start), range(spot.end, spot.end + NEAR_LINES)
        for number, text in enumerate(self._core):
            if number in covered or self._index.fullness(text.strip()) < 1.0:
                continue
            places = self._index.places(text.strip())
            if len(places) == 1 and (places[0] in near[0] or places[0] in near[1]):
                num_repeated += 1
        return num_repeated

    def _is_sound(self, placement: Placement) -> bool:
        """No bracket is lost, and no definition goes that the segment does not show."""
        if self._balances.of(placement.start, placement.end) != balance_of(placement.lines):
            return False
        shown = {definition_name(line) for line in placement.lines}
        dropped = self._table.inside(placement.start, placement.end)
        words = words_of(placement.lines)
        return all(
            symbol.name in shown
            or (symbol.kind not in ("function", "class") and mentions(words, symbol.name))
            for symbol in dropped
        )


def is_airy(segments: Sequence[Segment]) -> bool:
    """Whether an update sets its markers off by blank lines, which then mean nothing."""
    sides = [
        not segment.lines[side].text.strip()
        for segment in segments
        for side, has_gap in ((0, segment.has_gap_before), (-1, segment.has_gap_after))
        if has_gap and segment.lines
    ]
    return sum(sides) >= MIN_AIRY_SIDES


def words_of(lines: Sequence[str]) -> frozenset[str]:
    """The words of some lines."""
    return frozenset(word for line in lines for word in WORD.findall(line))


def mentions(words: frozenset[str], name: str) -> bool:
    """Whether all words of a name are among `words`."""
    return words.issuperset(WORD.findall(name))
