"""Placements that break the syntax of the file step back behind those that keep it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from apply_service.edit.path_search import PathSearch
from apply_service.edit.placement import MergePath, Placement, RemovedSpan
from apply_service.edit.splice import splice
from apply_service.edit.syntax import SyntaxTree, parse

# A placement that breaks the syntax is this much less likely.
SYNTAX_COST = 6.0
MAX_TRIALS = 6
# Characters of merges that are parsed for one plan: parsing takes 0.25 s a megabyte.
MAX_PARSED = 300_000

Layers = list[list[Placement]]
_Key = tuple[int, int, int, tuple[str, ...]]


class SoundMerges:
    """Looks for a best merge without syntax errors, in an original that has none.

    `order` lists the segments as they follow one another in the file.
    """

    def __init__(
        self,
        original_lines: Sequence[str],
        tree: SyntaxTree,
        *,
        order: Sequence[int],
        removed: Sequence[RemovedSpan],
    ) -> None:
        self._original_lines = original_lines
        self._language = tree.language
        self._order = order
        self._removed = tuple(removed)
        self._num_left = MAX_PARSED

    def settle(self, candidates: Layers) -> Layers:
        """The candidates with the guilty placements lowered; as they were if nothing helps."""
        settled = candidates
        lowered: set[_Key] = set()
        for _ in range(MAX_TRIALS):
            path = PathSearch([settled[number] for number in self._order]).best_path()
            if path is None or all(one.is_certain for one in path):
                return settled
            errors = self._error_lines(path)
            if errors is None:
                return candidates
            if not errors:
                return settled
            guilty = self._guilty(path, errors[0], settled, lowered)
            if guilty is None:
                return candidates
            lowered.add(_key(guilty))
            settled = _lowered(settled, guilty)
        return candidates

    def _error_lines(self, path: Sequence[Placement]) -> Sequence[int] | None:
        """Lines of the merge with syntax errors; None if it is too long to be parsed."""
        merged = splice(
            self._original_lines, MergePath(placements=tuple(path), removed=self._removed)
        )
        num_characters = sum(map(len, merged)) + len(merged)
        if num_characters > self._num_left:
            return None
        self._num_left -= num_characters
        tree = parse(merged, self._language)
        return None if tree is None else tree.error_lines

    def _guilty(
        self, path: Sequence[Placement], error: int, settled: Layers, lowered: set[_Key]
    ) -> Placement | None:
        """The placement nearest to line `error` of the merge that has an alternative."""
        distances: list[tuple[int, int, Placement]] = []
        shift = 0
        for number, one in enumerate(path):
            start = one.start + shift
            end = start + len(one.lines)
            shift += len(one.lines) - (one.end - one.start)
            if len(settled[one.segment]) > 1 and _key(one) not in lowered:
                distance = max(start - error, error - end + 1, 0)
                distances.append((distance, number, one))
        return min(distances)[2] if distances else None


def _lowered(candidates: Layers, guilty: Placement) -> Layers:
    """The candidates with one placement less likely, and no certain one in its segment."""
    layer = [replace(one, is_certain=False) for one in candidates[guilty.segment]]
    place = candidates[guilty.segment].index(guilty)
    layer[place] = replace(layer[place], weight=guilty.weight - SYNTAX_COST)
    layer.sort(key=lambda one: -one.weight)
    return [layer if number == guilty.segment else one for number, one in enumerate(candidates)]


def _key(placement: Placement) -> _Key:
    """A placement without its weight."""
    return placement.segment, placement.start, placement.end, placement.lines
