"""Plans the probable places of a snippet's segments in the original, from their tokens alone."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from lookup.suffix_automaton import ROOT, SuffixAutomaton

MIN_CONTEXT = 3
MAX_LEVELS = 4
MAX_PLACES = 24
MAX_EXITS = 256
CONTEXT_CAP = 48
REMOVED_COST = 1.0
INSERTION_COST = 6.0


@dataclass(frozen=True, slots=True)
class Switch:
    """Copy the original up to `enter`, the segment from `offset` to its end, then resume at `exit`.

    `gain` says how much of the segment is known context; segments are counted from 0.
    """

    segment: int
    enter: int
    offset: int
    exit: int
    gain: float


@dataclass(frozen=True, slots=True)
class _Level:
    """End positions, ascending, of one piece of context of `length` tokens in the original."""

    length: int
    ends: list[int]


class SegmentPlan:
    """One `Switch` for each segment that could be placed, found by weight and order.

    Context at a segment's head says where it is entered, context at its tail where the original
    goes on. Among the places of all segments the heaviest chain in the file's order is taken.
    """

    __slots__ = ("_heads", "_switches", "_tails")

    def __init__(self, original: SuffixAutomaton, segments: Sequence[Sequence[int]]) -> None:
        self._heads = [_head_levels(original, segment) for segment in segments]
        self._tails = [_tail_levels(original, segment) for segment in segments]
        candidates = [
            list(self._candidates(number, len(segment))) for number, segment in enumerate(segments)
        ]
        self._switches = _heaviest_chain(candidates)

    @property
    def switches(self) -> tuple[Switch, ...]:
        """The planned switches, by `enter`."""
        return tuple(self._switches)

    def next_switch(self, place: int, first_segment: int = 0) -> Switch | None:
        """The first planned switch at or behind `place`, of `first_segment` or a later one."""
        for at in range(bisect_left(self._switches, place, key=_enter_of), len(self._switches)):
            if self._switches[at].segment >= first_segment:
                return self._switches[at]
        return None

    def exit_of(self, segment: int, place: int) -> int:
        """The place where the original continues after `segment`, entered at `place`."""
        for switch in self._switches:
            if switch.segment == segment and switch.exit >= place:
                return switch.exit
        found = self._best_exit(segment, place, longest=CONTEXT_CAP)
        return place if found is None else found[0]

    def drop(self, segment: int) -> None:
        """Forget the switch of `segment`: it was written elsewhere, or the model skipped it."""
        self._switches = [switch for switch in self._switches if switch.segment != segment]

    def _candidates(self, number: int, size: int) -> Iterator[Switch]:
        """All places of one segment of `size` tokens that its context allows."""
        seen: set[int] = set()
        for level in self._heads[number]:
            for enter in level.ends:
                if enter in seen:
                    continue
                seen.add(enter)
                rest = size - level.length
                found = self._best_exit(number, enter, longest=rest) if rest else None
                after, weight = (enter, 0.0) if found is None else found
                gain = min(level.length, CONTEXT_CAP) + weight
                yield Switch(number, enter, level.length, after, gain)
        for level in self._tails[number]:
            for after in level.ends if len(level.ends) <= MAX_PLACES else ():
                enter = after - level.length
                gain = min(level.length, CONTEXT_CAP) - INSERTION_COST
                if enter not in seen and gain > 0:
                    yield Switch(number, enter, 0, after, gain)

    def _best_exit(self, segment: int, place: int, *, longest: int) -> tuple[int, float] | None:
        """The heaviest `(exit, weight)` behind `place`; long context near the place weighs most."""
        best: tuple[int, float] | None = None
        for level in self._tails[segment]:
            length = min(level.length, longest)
            at = bisect_left(level.ends, place)
            if at == len(level.ends):
                continue
            after = level.ends[at]
            num_removed = max(0, after - length - place)
            weight = min(length, CONTEXT_CAP) - REMOVED_COST * num_removed.bit_length()
            if best is None or weight > best[1]:
                best = after, weight
        return best


def _enter_of(switch: Switch) -> int:
    return switch.enter


def _head_levels(original: SuffixAutomaton, segment: Sequence[int]) -> list[_Level]:
    """Prefixes of `segment` that occur in the original, longest first, while they are rare."""
    path: list[int] = []
    state = ROOT
    for token in segment:
        target = original.step(state, token)
        if target is None:
            break
        state = target
        path.append(state)
    levels: list[_Level] = []
    num_before = 0
    for length in range(len(path), MIN_CONTEXT - 1, -1):
        num_ends = original.num_ends(path[length - 1])
        if num_ends > MAX_PLACES or len(levels) == MAX_LEVELS:
            break
        if num_ends > num_before:
            levels.append(_Level(length, original.end_positions(path[length - 1])))
            num_before = num_ends
    return levels


def _tail_levels(original: SuffixAutomaton, segment: Sequence[int]) -> list[_Level]:
    """Suffixes of `segment` that occur in the original, longest first, while they are rare."""
    state, length = original.advance(ROOT, 0, segment)
    levels: list[_Level] = []
    while length > 0 and len(levels) < MAX_LEVELS and original.num_ends(state) <= MAX_EXITS:
        levels.append(_Level(length, original.end_positions(state)))
        state, length = original.parent(state)
    return levels


def _heaviest_chain(candidates: Sequence[Sequence[Switch]]) -> list[Switch]:
    """The switches, at most one a segment and all in order, whose gains sum up highest."""
    frontier = _Frontier()
    for switches in candidates:
        chains = [_Chain(switch, frontier.best_until(switch.enter)) for switch in switches]
        for chain in chains:
            frontier.add(chain)
    planned: list[Switch] = []
    chain_end = frontier.best_until(None)
    while chain_end is not None:
        planned.append(chain_end.switch)
        chain_end = chain_end.before
    return planned[::-1]


class _Chain:
    """A switch, the chain before it and the gain of both."""

    __slots__ = ("before", "switch", "total")

    def __init__(self, switch: Switch, before: _Chain | None) -> None:
        self.switch = switch
        self.before = before
        self.total: float = switch.gain + (0.0 if before is None else before.total)


class _Frontier:
    """Chains, ascending by end and by weight: none ends later and weighs less than another."""

    __slots__ = ("_chains", "_exits")

    def __init__(self) -> None:
        self._exits: list[int] = []
        self._chains: list[_Chain] = []

    def best_until(self, place: int | None) -> _Chain | None:
        """The heaviest chain that ends at or before `place`, or at all."""
        at = len(self._exits) if place is None else bisect_right(self._exits, place)
        return self._chains[at - 1] if at else None

    def add(self, chain: _Chain) -> None:
        """Keep a chain if it is heavier than all that end no later."""
        after = chain.switch.exit
        best = self.best_until(after)
        if chain.total <= (0.0 if best is None else best.total):
            return
        begin = bisect_left(self._exits, after)
        end = begin
        while end < len(self._chains) and self._chains[end].total <= chain.total:
            end += 1
        self._exits[begin:end] = [after]
        self._chains[begin:end] = [chain]
