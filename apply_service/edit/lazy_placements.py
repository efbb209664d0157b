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
# What is left of the weight where a segment of some lines would change nothing.
_IDLE_SHARE = 0.5
_MIN_IDLE_LINES = 3
_DROPPED_COST = 3.0
_MAX_DROPPED = 3


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
            dropped = min(self._num_dropped(spot, "\n".join(core)), _MAX_DROPPED)
            spot = replace(spot, weight=spot.weight - _DROPPED_COST * dropped)
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
        plain = self._placement(number, spot, (start, end), lines)
        is_idle = lines == list(self._index.lines[start:end])
        old_before, old_after = self._index.blank_before(start), self._index.blank_after(end)
        head = [""] * num_before if num_before > old_before and start > old_before else []
        tail: list[str] = []
        if num_after > old_after and end + old_after < len(self._index):
            tail = [""] * num_after
        if not head and not tail:
            yield self._sober(plain) if is_idle else plain
            return
        wants_head = bool(head) and spot.is_open_before and not self._opens(start)
        wants_tail = bool(tail) and spot.is_open_after and not self._closes(end)
        wanted = (bool(head), bool(tail)) if is_idle else (wants_head, wants_tail)
        for shown in ((False, False), (bool(head), False), (False, bool(tail)), (True, True)):
            if (shown[0] and not head) or (shown[1] and not tail):
                continue
            placement = self._placement(
                number,
                spot,
                (start - old_before if shown[0] else start, end + old_after if shown[1] else end),
                [*(head if shown[0] else ()), *lines, *(tail if shown[1] else ())],
            )
            cost = _BLANK_COST * ((shown[0] != wanted[0]) + (shown[1] != wanted[1]))
            yield replace(placement, weight=placement.weight - cost)

    def _opens(self, border: int) -> bool:
        return border == 0 or self._index.stripped[border - 1].endswith(("{", "(", "[", ":"))

    def _closes(self, border: int) -> bool:
        text = self._index.stripped[border] if border < len(self._index) else ""
        return not text or text.startswith(("}", ")", "]", "end"))

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

    def _num_dropped(self, spot: Spot, text: str) -> int:
        """How many definitions would go that the segment does not mention."""
        dropped = self._table.inside(spot.start, spot.end)
        return sum(symbol.name not in text for symbol in dropped)

    def _is_sound(self, placement: Placement) -> bool:
        """No bracket is lost, and no definition goes that the segment does not show."""
        if self._balances.of(placement.start, placement.end) != balance_of(placement.lines):
            return False
        shown = {definition_name(line) for line in placement.lines}
        dropped = self._table.inside(placement.start, placement.end)
        text = "\n".join(placement.lines)
        return all(symbol.name in shown or symbol.name in text for symbol in dropped)
