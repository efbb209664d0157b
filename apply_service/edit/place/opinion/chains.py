"""Chains of runs: how the lines of a segment follow one another in the original."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from apply_service.edit.text.line_index import LineIndex
from apply_service.edit.text.runs import Run
from apply_service.edit.text.work_budget import spend

# Runs that a chain may begin with, and chains kept for each of them.
MAX_FIRST_RUNS = 10
MAX_LEADING_RUNS = 8
MAX_LAST_RUNS = 8
# Runs that take part in chains, the weightiest.
MAX_CHAINED_RUNS = 48
# Lighter runs at the segment's borders that lie near one of the strongest take part as well.
MAX_STRONG_RUNS = 6
MAX_BORDER_RUNS = 16
NEAR_LINES = 12


class Chain(msgspec.Struct, frozen=True, gc=False):
    """Runs that follow one another on both sides; what lies between them is replaced.

    `max_lost` is the largest number of filled original lines, beyond what the snippet shows
    instead, that are dropped between two neighbouring runs.
    """

    runs: tuple[Run, ...]
    weight: float
    max_lost: int


class _Link(msgspec.Struct, frozen=True, gc=False):
    """The best chain so far that ends with one run."""

    weight: float
    max_lost: int
    previous: int


class ChainFinder:
    """Finds chains among the runs of one segment.

    `is_limited` says, after `find`, that a limit kept chains from being found.
    """

    def __init__(self, runs: Sequence[Run], stripped: Sequence[str], index: LineIndex) -> None:
        chosen = _chosen(runs, len(stripped))
        self.is_limited = len(chosen) < len(runs)
        self._runs = sorted(chosen, key=lambda run: (run.old_end, run.old, run.new))
        self._stripped = stripped
        self._index = index
        self._gaps: dict[tuple[int, int, int, int], tuple[float, int]] = {}

    def find(self) -> list[Chain]:
        """For pairs of a first and a last run the best chain between them, best chains first."""
        firsts = sorted(range(len(self._runs)), key=self._promise, reverse=True)
        chains: list[Chain] = []
        leading = [first for first in firsts[MAX_FIRST_RUNS:] if self._runs[first].new == 0]
        used = [*firsts[:MAX_FIRST_RUNS], *leading[:MAX_LEADING_RUNS]]
        self.is_limited |= len(used) < len(firsts)
        for first in used:
            chains.extend(self._from(first))
        return sorted(chains, key=lambda chain: -chain.weight)

    def _promise(self, first: int) -> float:
        """What a chain that begins with this run may weigh, roughly: it and what follows."""
        run = self._runs[first]
        reach = len(self._stripped) * 3 + 20
        later = {
            other.new: other.weight
            for other in self._runs[first + 1 :]
            if other.new >= run.new_end and run.old_end <= other.old <= run.old_end + reach
        }
        return run.weight + sum(later.values())

    def _from(self, first: int) -> Iterable[Chain]:
        links: dict[int, _Link] = {first: _Link(self._runs[first].weight, 0, -1)}
        for place in range(first + 1, len(self._runs)):
            spend(len(links))
            best: _Link | None = None
            for previous, link in links.items():
                step = self._step(self._runs[previous], self._runs[place])
                if step is None:
                    continue
                weight, lost = step
                total = link.weight + weight
                if best is None or total > best.weight:
                    best = _Link(total, max(link.max_lost, lost), previous)
            if best is not None:
                links[place] = best
        ends = sorted(links, key=lambda place: -links[place].weight)[:MAX_LAST_RUNS]
        self.is_limited |= len(ends) < len(links)
        for end in ends:
            yield self._chain(links, end)

    def _chain(self, links: dict[int, _Link], end: int) -> Chain:
        places: list[int] = []
        place = end
        while place >= 0:
            places.append(place)
            place = links[place].previous
        runs = tuple(self._runs[place] for place in reversed(places))
        return Chain(runs, links[end].weight, links[end].max_lost)

    def _step(self, left: Run, right: Run) -> tuple[float, int] | None:
        """Weight and lost lines of following `left` by what of `right` lies behind it."""
        if not precedes(left, right):
            return None
        cut = max(0, left.new_end - right.new, left.old_end - right.old)
        weight = right.weight
        if cut and not right.is_border:
            texts = self._stripped[right.new + cut : right.new_end]
            weight = sum(map(self._index.weight, texts))
            if weight <= 0:
                return None
        cost, lost = self._gap(left.new_end, right.new + cut, left.old_end, right.old + cut)
        return weight - cost, lost

    def _gap(self, new_start: int, new_end: int, old_start: int, old_end: int) -> tuple[float, int]:
        key = (new_start, new_end, old_start, old_end)
        if key not in self._gaps:
            self._gaps[key] = self._gap_cost(*key)
        return self._gaps[key]

    def _gap_cost(
        self, new_start: int, new_end: int, old_start: int, old_end: int
    ) -> tuple[float, int]:
        """The improbability of replacing these old lines by these new ones, and how many go."""
        new = [text for text in self._stripped[new_start:new_end] if text]
        num_old = self._index.num_filled(old_start, old_end)
        lost = max(0, num_old - len(new))
        if not num_old:
            return (0.2 if new else 0.05 * (old_end - old_start != new_end - new_start)), 0
        return 0.6 + 0.3 * math.log1p(num_old) + 2.0 * math.log1p(lost), lost


def _chosen(runs: Sequence[Run], num_lines: int) -> list[Run]:
    """The weightiest runs, and those at the borders of the segment that lie near these."""
    heaviest = sorted(runs, key=lambda run: -run.weight)
    chosen = heaviest[:MAX_CHAINED_RUNS]
    strong = [run for run in chosen[:MAX_STRONG_RUNS] if not run.is_border]
    for run in heaviest[MAX_CHAINED_RUNS:]:
        if run.new > 0 and run.new_end < num_lines:
            continue
        if any(abs(run.old - other.old) <= num_lines + NEAR_LINES for other in strong):
            chosen.append(run)
            if len(chosen) == MAX_CHAINED_RUNS + MAX_BORDER_RUNS:
                break
    return chosen


def precedes(left: Run, right: Run) -> bool:
    """Whether something of `right` lies behind `left` on both sides."""
    if left.is_border or right.is_border:
        return left.new_end <= right.new and left.old_end <= right.old
    if left.new >= right.new or left.old_end >= right.old_end:
        return False
    cut = max(0, left.new_end - right.new, left.old_end - right.old)
    if left.is_definition or right.is_definition:
        return cut == 0
    return cut < right.new_end - right.new
