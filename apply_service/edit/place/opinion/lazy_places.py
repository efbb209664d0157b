"""Where a lazy segment may stand: every pair of borders that its own lines speak for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise

import msgspec
from msgspec.structs import replace

from apply_service.edit.place.opinion.chains import Chain, ChainFinder
from apply_service.edit.place.opinion.insertions import Insertion, InsertionFinder
from apply_service.edit.place.opinion.placement import PlacementReason
from apply_service.edit.place.opinion.segment_borders import (
    OPEN_BORDER_COST,
    Border,
    SegmentBorders,
)
from apply_service.edit.text.brackets import CLOSERS_OR_END, BalanceIndex, balance_of
from apply_service.edit.text.line_index import LineIndex, indent_of, leaves
from apply_service.edit.text.runs import REPEATED_SHARE, Run, find_runs
from apply_service.edit.text.similarity import Similarity
from apply_service.edit.text.word_weights import WordWeights
from apply_service.edit.text.work_budget import spend

BORDER_WEIGHT = 4.0
# An equal line that is indented in another way, beside lines that are not.
ODD_INDENT_SHARE = 0.35
MAX_CHAINS = 40
MAX_ALIKE_CHAINS = 8
# Insertions that are looked at however many other spots are better.
MAX_INSERTIONS = 8
UNBALANCED_COST = 4.0
# Nothing of the original goes.
CLEAN_BONUS = 2.0
# A line after `return` at the same depth is never reached.
DEAD_COST = 3.0
# No line of any file.
_UNKNOWN = "new\nlines"
_BRANCH_STARTS = ("case ", "default", "else", "elif", "except", "finally", "catch")
_CONTINUING = (*CLOSERS_OR_END, *_BRANCH_STARTS)


class Spot(msgspec.Struct, frozen=True, gc=False):
    """Lines `[start, end)` give way to the segment.

    `is_open` says that a border stands on new lines alone; `max_lost` counts the filled lines
    that are dropped between two neighbouring lines of the segment.
    """

    start: int
    end: int
    weight: float
    reason: PlacementReason
    runs: tuple[Run, ...] = ()
    max_lost: int = 0
    is_open: bool = False
    is_open_before: bool = False
    is_open_after: bool = False


class LazyPlacer:
    """Finds the spots of one segment; `texts` are its lines from the first to the last filled.

    Chains with some of the `alike_runs` come after all others.
    That a line of `new_rows` stands in the original as well says nothing about the place.
    `is_limited` says that there are more valid places than a limit let be found.
    """

    def __init__(
        self,
        texts: Sequence[str],
        index: LineIndex,
        *,
        definition_runs: Sequence[Run] = (),
        alike_runs: Sequence[Run] = (),
        new_rows: Collection[int] = (),
        balances: BalanceIndex | None = None,
        similarity: Similarity | None = None,
        weights: WordWeights | None = None,
        is_first: bool = False,
        is_last: bool = False,
    ) -> None:
        self._balances = balances or BalanceIndex(index.lines)
        self._balance = balance_of(texts)
        self._texts = texts
        self._stripped = [text.strip() for text in texts]
        self._index = index
        shown = [_UNKNOWN if row in new_rows else text for row, text in enumerate(texts)]
        plain = find_runs(shown, index)
        runs = [*_sober(plain), *definition_runs]
        self._borders = SegmentBorders(
            texts,
            index,
            runs=plain,
            new_rows=new_rows,
            similarity=similarity or Similarity(),
            weights=weights or WordWeights(index.stripped),
        )
        if is_first:
            runs.append(Run(0, 0, 0, 0, BORDER_WEIGHT, is_exact=True))
        if is_last:
            num_new, num_old = len(texts), len(index)
            runs.append(Run(num_new, num_new, num_old, num_old, BORDER_WEIGHT, is_exact=True))
        self._is_first, self._is_last = is_first, is_last
        finder = ChainFinder(runs, self._stripped, index)
        fitting = self._fitting(finder.find())
        self.chains = fitting[:MAX_CHAINS]
        if alike_runs and self.chains:
            further = self._fitting(ChainFinder([*alike_runs, *runs], self._stripped, index).find())
            alike = [chain for chain in further if any(run.is_alike for run in chain.runs)]
            self.chains += alike[:MAX_ALIKE_CHAINS]
        inserter = InsertionFinder(shown, index, is_first=is_first, is_last=is_last)
        self._insertions = inserter.find()
        self.is_limited = finder.is_limited or len(fitting) > MAX_CHAINS or inserter.is_limited

    def _fitting(self, chains: Iterable[Chain]) -> list[Chain]:
        """Those that reach the start and the end of the file where the segment does."""
        return [
            chain
            for chain in chains
            if (not self._is_first or chain.runs[0].old_end == 0)
            and (not self._is_last or chain.runs[-1].old == len(self._index))
        ]

    def spots(self) -> list[Spot]:
        """All spots, best first; of equal borders only the best.

        Lines that are alike only add weight to a spot that others speak for as well.
        """
        best: dict[tuple[int, int], Spot] = {}
        for chain in self.chains:
            for spot in self._spots_of(chain):
                known = best.get((spot.start, spot.end))
                if known is None:
                    best[spot.start, spot.end] = spot
                elif spot.weight > known.weight:
                    is_alike = any(run.is_alike for run in spot.runs)
                    better = replace(known, weight=spot.weight) if is_alike else spot
                    best[spot.start, spot.end] = better
        for insertion in self._insertions:
            if (insertion.start, insertion.end) not in best:
                best[insertion.start, insertion.end] = self._inserted(insertion)
        return sorted(best.values(), key=lambda spot: (-spot.weight, spot.start, spot.end))

    def insertions(self) -> set[tuple[int, int]]:
        """The borders of the first spots where nothing of the original goes."""
        return {(one.start, one.end) for one in self._insertions[:MAX_INSERTIONS]}

    def _spots_of(self, chain: Chain) -> Iterator[Spot]:
        first, last = chain.runs[0], chain.runs[-1]
        is_clean = all(
            not self._index.num_filled(left.old_end, right.old)
            for left, right in pairwise(chain.runs)
        ) and not any(run.is_definition or run.is_alike for run in chain.runs)
        for left in self._borders.lefts(first):
            for right in self._borders.rights(last):
                if left.place > right.place:
                    continue
                spend(1)
                weight = chain.weight + left.weight + right.weight
                if self._balances.of(left.place, right.place) != self._balance:
                    weight -= UNBALANCED_COST
                if self._is_dead(left.place, right.place):
                    weight -= DEAD_COST
                if is_clean and not left.is_open and not right.is_open:
                    weight += CLEAN_BONUS
                yield Spot(
                    left.place,
                    right.place,
                    weight,
                    self._reason(chain, left, right),
                    chain.runs,
                    max(chain.max_lost, left.max_lost, right.max_lost),
                    left.is_open or right.is_open,
                    left.is_open,
                    right.is_open,
                )

    def _inserted(self, insertion: Insertion) -> Spot:
        """The spot of an insertion: what stands around the new lines speaks for it."""
        start, end, size = insertion.start, insertion.end, insertion.num_before
        num_new, num_after = len(self._texts), insertion.num_after
        runs = []
        if size:
            runs.append(Run(0, size, start, start + size, 0.0, is_exact=True))
        if num_after:
            runs.append(Run(num_new - num_after, num_new, start + size, end, 0.0, is_exact=True))
        runs = [replace(run, weight=self._evidence(run)) for run in runs]
        is_open_before = not size and not self._is_first
        is_open_after = not num_after and not self._is_last
        weight = sum(run.weight for run in runs)
        weight += -OPEN_BORDER_COST if is_open_before or is_open_after else CLEAN_BONUS
        if self._balances.of(start, end) != self._balance:
            weight -= UNBALANCED_COST
        if self._is_dead(start, end):
            weight -= DEAD_COST
        return Spot(
            start,
            end,
            weight,
            "context",
            tuple(runs),
            0,
            is_open_before or is_open_after,
            is_open_before,
            is_open_after,
        )

    def _evidence(self, run: Run) -> float:
        weights = [self._index.weight(text) for text in self._stripped[run.new : run.new_end]]
        return max(weights) * (1 - REPEATED_SHARE) + sum(weights) * REPEATED_SHARE

    def _is_dead(self, start: int, end: int) -> bool:
        """Whether a line that leaves its block would be followed by another of the block."""
        lines, stripped = self._index.lines, self._index.stripped
        if end < len(lines) and stripped[end] and leaves(self._stripped[-1]):
            same_depth = indent_of(lines[end]) == indent_of(self._texts[-1])
            if same_depth and not stripped[end].startswith(_CONTINUING):
                return True
        if start > 0 and leaves(stripped[start - 1]):
            same_depth = indent_of(lines[start - 1]) == indent_of(self._texts[0])
            return same_depth and not self._stripped[0].startswith(_CONTINUING)
        return False

    def _reason(self, chain: Chain, left: Border, right: Border) -> PlacementReason:
        if any(run.is_definition for run in chain.runs):
            return "symbol"
        is_alike = any(run.is_alike for run in chain.runs)
        return "similar" if is_alike or "similar" in (left.reason, right.reason) else "context"


def _sober(runs: Sequence[Run]) -> list[Run]:
    """Where lines stand as they are, those that are indented in another way count little."""
    if not any(run.is_exact and run.weight > BORDER_WEIGHT for run in runs):
        return list(runs)
    return [
        run if run.is_exact else replace(run, weight=run.weight * ODD_INDENT_SHARE) for run in runs
    ]
