"""Placements of lazy segments: spots with the lines that are written there, and how sure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from apply_service.edit.balance import BalanceIndex, balance_of
from apply_service.edit.definition_names import definition_name
from apply_service.edit.definitions import SymbolTable, find_definitions
from apply_service.edit.indentation import reindented
from apply_service.edit.lazy_places import LazyPlacer, Spot
from apply_service.edit.line_index import LineIndex
from apply_service.edit.placement import Placement
from apply_service.edit.segment import Segment
from apply_service.edit.similarity import Similarity
from apply_service.edit.symbol import Symbol
from apply_service.edit.syntax import parse_fragment

MAX_CANDIDATES = 64
# Placements that are this much lighter than the best leave no doubt.
CERTAIN_MARGIN = 4.0
MIN_CERTAIN_WEIGHT = 5.0
# Filled lines dropped between two neighbouring snippet lines that still are no decision.
MAX_CERTAIN_LOST = 3
# Placements that repeat with and without instruction comments.
MAX_OPTIONAL_VARIANTS = 8
_OPTIONAL_COST = 6.0
# Blank lines beside a border that differ from the best guess.
_BLANK_COST = 3.0
_MAX_BLANK_VARIANTS = 4


class LazyPlacements:
    """Places the lazy segments of one request in its original."""

    def __init__(
        self,
        index: LineIndex,
        *,
        symbols: Sequence[Symbol],
        language: str | None,
        has_grammar: bool,
        similarity: Similarity,
    ) -> None:
        self._index = index
        self._similarity = similarity
        self._balances = BalanceIndex(index.lines)
        self._table = SymbolTable(symbols, index, similarity)
        self._language = language if has_grammar else None

    def of(
        self, number: int, segment: Segment, *, is_first: bool, is_last: bool
    ) -> list[Placement]:
        """Placements of segment `number`, best first; none if none of its lines is known."""
        lines = [line for line in segment.lines if not line.is_optional] or list(segment.lines)
        texts = [line.text for line in lines]
        best = self._of_texts(number, texts, is_first=is_first, is_last=is_last)
        if len(lines) < len(segment.lines):
            best = [*best, *self._with_optional(number, segment, best, is_first, is_last)]
        return best[:MAX_CANDIDATES]

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
        num_before, num_after = filled[0], len(texts) - filled[-1] - 1
        placer = LazyPlacer(
            core,
            self._index,
            definition_runs=self._table.runs(self._fragment(core), core),
            balances=self._balances,
            similarity=self._similarity,
            is_first=is_first,
            is_last=is_last,
        )
        known: dict[tuple[int, int, tuple[str, ...]], Placement] = {}
        for spot in placer.spots():
            lines = reindented(core, spot.runs, self._index)
            for placement in self._variants(number, spot, lines, num_before, num_after):
                key = self._difference(placement)
                if key not in known or placement.weight > known[key].weight:
                    known[key] = placement
            if len(known) > 2 * MAX_CANDIDATES:
                break
        ordered = sorted(known.values(), key=lambda one: (-one.weight, one.start, one.end))
        return self._judged(ordered, placer, core)[:MAX_CANDIDATES]

    def _fragment(self, core: Sequence[str]) -> Sequence[Symbol]:
        if self._language is None:
            return find_definitions(core)
        return parse_fragment(core, self._language)

    def _variants(
        self, number: int, spot: Spot, lines: list[str], num_before: int, num_after: int
    ) -> Iterator[Placement]:
        """The spot with the blank lines that the snippet shows around it.

        Blank lines that the original has there already are not written again.
        """
        start, end = spot.start, spot.end
        old_before, old_after = self._index.blank_before(start), self._index.blank_after(end)
        head = [""] * num_before if num_before > old_before and start > old_before else []
        tail: list[str] = []
        if num_after > old_after and end + old_after < len(self._index):
            tail = [""] * num_after
        yield self._placement(
            number,
            spot,
            (start - old_before if head else start, end + old_after if tail else end),
            [*head, *lines, *tail],
        )
        if head or tail:
            plain = self._placement(number, spot, (start, end), lines)
            yield replace(plain, weight=plain.weight - _BLANK_COST)

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
            is_certain=not spot.is_open and spot.max_lost <= MAX_CERTAIN_LOST,
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

    def _judged(
        self, ordered: Sequence[Placement], placer: LazyPlacer, core: Sequence[str]
    ) -> list[Placement]:
        """Only the first can be certain, and only if it is sound and no other comes near."""
        if not ordered:
            return []
        first = ordered[0]
        is_ahead = len(ordered) == 1 or first.weight - ordered[1].weight >= CERTAIN_MARGIN
        is_certain = (
            first.is_certain
            and is_ahead
            and first.weight >= MIN_CERTAIN_WEIGHT
            and first.reason in ("context", "symbol")
            and self._is_sound(first)
        )
        rest = [replace(one, is_certain=False) for one in ordered[1:]]
        return [replace(first, is_certain=is_certain), *rest]

    def _is_sound(self, placement: Placement) -> bool:
        """No bracket is lost, and no definition goes that the segment does not show."""
        if self._balances.of(placement.start, placement.end) != balance_of(placement.lines):
            return False
        shown = {definition_name(line) for line in placement.lines}
        dropped = self._table.inside(placement.start, placement.end)
        text = "\n".join(placement.lines)
        return all(symbol.name in shown or symbol.name in text for symbol in dropped)
