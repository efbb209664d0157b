"""Puts placements into an original, and finds the placements that made a given result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from apply_service.edit.place.opinion.placement import MergePath, Placement, RemovedSpan
from apply_service.edit.text.work_budget import spend

# Ways through a result that are followed at the same time.
MAX_STATES = 256
# Lines of a list that are compared in one go.
LINES_PER_COMPARISON = 100


def splice(original_lines: Sequence[str], path: MergePath) -> list[str]:
    """The result of a merge: every line outside the placements and cuts stays as it is."""
    kept = _Kept(original_lines, path.removed)
    merged: list[str] = []
    place = 0
    for placement in path.placements:
        merged += kept.lines[kept.number(place) : kept.number(placement.start)]
        merged += placement.lines
        place = placement.end
    return merged + kept.lines[kept.number(place) :]


class _Kept:
    """The original without its removed spans, and where each border stands in it."""

    def __init__(self, original_lines: Sequence[str], removed: Sequence[RemovedSpan]) -> None:
        self._removed = removed
        cut = [False] * len(original_lines)
        for span in removed:
            for place in range(span.start, span.end):
                cut[place] = True
        self.lines = [line for line, is_cut in zip(original_lines, cut, strict=True) if not is_cut]
        self._numbers = [0]
        if removed:
            for is_cut in cut:
                self._numbers.append(self._numbers[-1] + (not is_cut))

    def number(self, border: int) -> int:
        """How many kept lines stand before `border`."""
        return self._numbers[border] if self._removed else border


@dataclass(frozen=True, slots=True)
class _State:
    """The state of a reading of the result: the next line, and the placements so far."""

    place: int
    read: int
    weight: float = 0.0
    placement: Placement | None = None
    previous: _State | None = None

    def path(self) -> tuple[Placement, ...]:
        """The placements so far, in order."""
        placements: list[Placement] = []
        state: _State | None = self
        while state is not None:
            if state.placement is not None:
                placements.append(state.placement)
            state = state.previous
        return tuple(reversed(placements))


class Membership:
    """Whether a text is one of the merges that `layers` of placements allow.

    With `ignores_blank_lines` texts are compared without their blank lines.
    """

    def __init__(
        self,
        original_lines: Sequence[str],
        layers: Sequence[Sequence[Placement]],
        removed: Sequence[RemovedSpan] = (),
        *,
        ignores_blank_lines: bool = False,
    ) -> None:
        kept = _Kept(original_lines, removed)
        self._layers = layers
        self._removed = tuple(removed)
        self._ignores_blank_lines = ignores_blank_lines
        self._lines = self._seen(kept.lines)
        filled = [0]
        for line in kept.lines:
            filled.append(filled[-1] + (not ignores_blank_lines or bool(line.strip())))
        self._numbers = [filled[kept.number(border)] for border in range(len(original_lines) + 1)]

    def find(self, result_lines: Sequence[str]) -> MergePath | None:
        """The merge that makes `result_lines`, or None. Of several the one with more weight."""
        result = self._seen(result_lines)
        states = {(0, 0): _State(0, 0)}
        for layer in self._layers:
            states = self._step(states, layer, result)
            if not states:
                return None
        paths = [
            MergePath(placements=state.path(), removed=self._removed)
            for state in states.values()
            if self._lines[state.place :] == result[state.read :]
        ]
        return max(paths, key=lambda path: path.weight, default=None)

    def _step(
        self,
        states: dict[tuple[int, int], _State],
        layer: Sequence[Placement],
        result: list[str],
    ) -> dict[tuple[int, int], _State]:
        reached: dict[tuple[int, int], _State] = {}
        last = max((self._numbers[placement.start] for placement in layer), default=0)
        for state in sorted(states.values(), key=lambda state: -state.weight)[:MAX_STATES]:
            num_equal = self._num_equal(state, result, last)
            spend(len(layer) + num_equal // LINES_PER_COMPARISON)
            for placement in layer:
                start, end = self._numbers[placement.start], self._numbers[placement.end]
                if not state.place <= start <= state.place + num_equal:
                    continue
                if state.placement is not None and placement.start < state.placement.end:
                    continue
                read = state.read + start - state.place
                lines = self._seen(placement.lines)
                if result[read : read + len(lines)] != lines:
                    continue
                weight = state.weight + placement.weight
                found = _State(end, read + len(lines), weight, placement, state)
                known = reached.get((placement.end, found.read))
                if known is None or known.weight < weight:
                    reached[placement.end, found.read] = found
        return reached

    def _num_equal(self, state: _State, result: list[str], last: int) -> int:
        """How many lines of the original follow unchanged from here, looked for up to `last`."""
        limit = min(last - state.place, len(result) - state.read)
        low, step = 0, 64
        while low < limit:
            step = min(step * 2, limit - low)
            old = self._lines[state.place + low : state.place + low + step]
            if old != result[state.read + low : state.read + low + step]:
                break
            low += step
        while low < limit and self._lines[state.place + low] == result[state.read + low]:
            low += 1
        return low

    def _seen(self, lines: Sequence[str]) -> list[str]:
        if not self._ignores_blank_lines:
            return list(lines)
        return [line for line in lines if line.strip()]
