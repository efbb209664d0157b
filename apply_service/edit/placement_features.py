"""What speaks for a placement of a lazy segment and against it, as numbers to be weighed."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from apply_service.edit.balance import BalanceIndex, balance_of
from apply_service.edit.definition_names import definition_name
from apply_service.edit.definitions import SymbolTable
from apply_service.edit.line_index import LineIndex, indent_of
from apply_service.edit.placement import Placement
from apply_service.edit.placement_change import Change, change_of

# In the order of the numbers that `PlacementFeatures.of` returns.
FEATURES = (
    # A tenth of the weight by the lines that are equal and alike, and by the borders.
    "evidence",
    # No line with text changes.
    "is_idle",
    # New lines stand at the border, and no marker is missing there.
    "is_open_before",
    "is_open_after",
    # Old lines that go (logarithms): those a new line looks like, the others; at an open border.
    "num_replaced",
    "num_lost_closed",
    "num_lost_open",
    # Lines in the midst of the change that stand on both sides.
    "num_kept",
    # New lines that stand close by as well, alone in the file; or of which a variant stands there.
    "num_moved",
    "num_stale",
    "num_doubled_definitions",
    "is_unbalanced",
    # Old and new lines at an open border: differently indented; how alike they are.
    "num_odd_indents",
    "likeness",
    # New lines go directly before a line that begins with the same word.
    "is_kin_after",
    "more_blanks",
)
STALE_LINES = 8
MOVED_LINES = 20
ALIKE_SHARE = 0.6
MAX_COMPARED = 24
MAX_SAME_NAME = 16
MAX_DOUBLED = 3
_MAX_READ = 200
_WORD = re.compile(r"\w+|[^\w\s]")
_FIRST_WORD = re.compile(r"[#@]?\w+|\W")


class PlacementFeatures:
    """Computes the features of the placements of one segment, given by its lines `core`."""

    def __init__(
        self,
        core: Sequence[str],
        index: LineIndex,
        *,
        table: SymbolTable,
        balances: BalanceIndex,
        is_first: bool,
        is_last: bool,
    ) -> None:
        self._index = index
        self._table = table
        self._balances = balances
        self._balance = balance_of(core)
        self._is_first, self._is_last = is_first, is_last
        self._words: dict[str, frozenset[str]] = {}
        self._likenesses: dict[tuple[str, str], float] = {}
        names = {name for text in core if (name := definition_name(text)) is not None}
        self._named = [
            symbol for name in sorted(names) for symbol in table.named(name)[:MAX_SAME_NAME]
        ]
        self._texts = frozenset(text.strip() for text in core)

    def of(self, placement: Placement) -> tuple[float, ...]:
        """The features of one placement, in the order of `FEATURES`."""
        span = self._index.lines[placement.start : placement.end]
        change = change_of(span, placement.lines)
        is_open_before = not change.has_head and not self._is_first
        is_open_after = not change.has_tail and not self._is_last
        is_open = is_open_before or is_open_after
        num_replaced = self._num_replaced(change)
        num_lost = len(change.lost) - num_replaced
        odd, likeness = self._border_doubts(placement, change, is_open_before, is_open_after)
        balance = self._balances.of(placement.start, placement.end)
        return (
            placement.weight / 10,
            float(change.is_idle),
            float(is_open_before),
            float(is_open_after),
            math.log1p(num_replaced),
            0.0 if is_open else math.log1p(num_lost),
            math.log1p(len(change.lost)) if is_open else 0.0,
            math.log1p(change.num_kept),
            math.log1p(self._num_moved(placement, change)),
            math.log1p(self._num_stale(placement, change)),
            float(self._num_doubled(placement)),
            float(balance != self._balance),
            float(odd),
            likeness,
            float(is_open_after and self._is_kin_after(placement)),
            float(change.more_blanks),
        )

    def _num_replaced(self, change: Change) -> int:
        """How many lost lines look like an added one."""
        added = change.added[:MAX_COMPARED]
        return sum(
            any(self._likeness(text, other) >= ALIKE_SHARE for other in added)
            for text in change.lost[:MAX_COMPARED]
        )

    def _likeness(self, left: str, right: str) -> float:
        """The share of words and signs in common, from 0 to 1."""
        key = (left, right)
        if key not in self._likenesses:
            old, new = self._words_of(left), self._words_of(right)
            self._likenesses[key] = len(old & new) / max(len(old), len(new), 1)
        return self._likenesses[key]

    def _words_of(self, text: str) -> frozenset[str]:
        if text not in self._words:
            self._words[text] = frozenset(_WORD.findall(text[:_MAX_READ]))
        return self._words[text]

    def _outside(self, placement: Placement, size: int) -> list[str]:
        stripped = self._index.stripped
        above = stripped[max(0, placement.start - size) : placement.start]
        return [*above, *stripped[placement.end : placement.end + size]]

    def _num_moved(self, placement: Placement, change: Change) -> int:
        """How many added lines stand beside the placement as well, and nowhere else."""
        near = set(self._outside(placement, MOVED_LINES))
        return sum(
            text in near and self._says_much(text) and len(self._index.places(text)) == 1
            for text in change.added
        )

    def _num_stale(self, placement: Placement, change: Change) -> int:
        """How many added lines have a variant beside the placement, which would stay there."""
        near = [
            text
            for text in self._outside(placement, STALE_LINES)
            if text not in self._texts and self._says_much(text)
        ]
        return sum(
            any(self._likeness(text, other) >= ALIKE_SHARE for other in near)
            for text in change.added[:MAX_COMPARED]
            if self._says_much(text)
        )

    def _says_much(self, text: str) -> bool:
        return self._index.fullness(text) >= 1.0

    def _num_doubled(self, placement: Placement) -> int:
        """How many definitions would stand twice in the block around the placement."""
        doubled = 0
        shown = self._shown_definitions(placement) if self._named else frozenset()
        for symbol in self._named:
            if placement.start <= symbol.header < placement.end:
                continue
            parent = None if symbol.parent is None else self._table.symbols[symbol.parent]
            low, high = (0, len(self._index)) if parent is None else (parent.start, parent.end)
            depth = len(indent_of(self._index.lines[symbol.header]))
            doubled += low < placement.end <= high and (symbol.name, depth) in shown
        return min(doubled, MAX_DOUBLED)

    def _shown_definitions(self, placement: Placement) -> frozenset[tuple[str, int]]:
        """Names that the placed lines define, with their depth."""
        return frozenset(
            (name, len(indent_of(text)))
            for text in placement.lines
            if (name := definition_name(text)) is not None
        )

    def _border_doubts(
        self, placement: Placement, change: Change, is_open_before: bool, is_open_after: bool
    ) -> tuple[int, float]:
        """Where lines go at an open border: how many are indented otherwise, and the likeness."""
        if not change.lost:
            return 0, 0.0
        old = [line for line in self._index.lines[placement.start : placement.end] if line.strip()]
        new = [line for line in placement.lines if line.strip()]
        odd, likeness = 0, 0.0
        for is_open, border in ((is_open_before, 0), (is_open_after, -1)):
            if is_open:
                odd += indent_of(old[border]) != indent_of(new[border])
                likeness += self._likeness(old[border].strip(), new[border].strip())
        return odd, likeness

    def _is_kin_after(self, placement: Placement) -> bool:
        """Whether the last line and the one directly below it begin with the same word."""
        below = self._index.stripped[placement.end : placement.end + 1]
        last = _FIRST_WORD.match(placement.lines[-1].strip())
        other = _FIRST_WORD.match(below[0]) if below else None
        return last is not None and other is not None and last[0] == other[0]
