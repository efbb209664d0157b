"""Prefers placements that keep the syntax of the file to those that break it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice, pairwise

from apply_service.edit.place.opinion.lazy_placements import mentions, words_of
from apply_service.edit.place.opinion.path_search import PathSearch
from apply_service.edit.place.opinion.placement import MAX_WEIGHT_GAP, Placement, RemovedSpan
from apply_service.edit.place.opinion.syntax_check import SyntaxCheck
from apply_service.edit.syntax.symbol import Symbol

# A placement that breaks the syntax is this much less likely.
SYNTAX_COST = 6.0
# One that breaks it is left out beside a sound one, unless it fits better by more than this.
MAX_BROKEN_LEAD = 2.0
MAX_TRIALS = 6
# Rivals that are tried, and merges with each of them: one may need others in another place.
MAX_RIVALS = 12
MAX_COMPLETIONS = 3

Layers = Sequence[Sequence[Placement]]
Path = tuple[Placement, ...]
_Key = tuple[int, int, int, tuple[str, ...]]


class SoundMerges:
    """Looks for merges without syntax errors, in an original that has none.

    `order` lists the segments as they follow one another in the file.
    """

    def __init__(
        self,
        check: SyntaxCheck,
        symbols: Sequence[Symbol],
        *,
        order: Sequence[int],
        removed: Sequence[RemovedSpan],
    ) -> None:
        """`symbols` are those of the original."""
        self._check = check
        self._symbols = symbols
        self._order = order
        self._removed = removed

    def settle(self, candidates: Layers) -> list[list[Placement]]:
        """The candidates, with less weight for placements that cause syntax errors.

        Those that break the syntax beside a best merge that keeps it are left out; the candidates
        stay as they were if no such merge is found.
        """
        unsettled = [list(layer) for layer in candidates]
        settled = unsettled
        lowered: set[_Key] = set()
        for _ in range(MAX_TRIALS):
            path = self._search(settled).best_path()
            if path is None or all(one.is_certain for one in path):
                return settled
            errors = self._check.error_lines(path, self._removed)
            if errors is None:
                return unsettled
            if not errors:
                return self._without_broken(settled, path, candidates)
            guilty = self._guilty(path, errors[0], settled, lowered)
            if guilty is None:
                return unsettled
            lowered.add(_key(guilty))
            settled = _lowered(settled, guilty)
        return unsettled

    def _without_broken(
        self, settled: Layers, path: Path, candidates: Layers
    ) -> list[list[Placement]]:
        """The candidates without the rivals of a sound path with which all merges break.

        A doubt is left where a rival fits much better by all else, and beside a placement that is
        doubtful by itself: that it keeps the syntax does not prove it.
        """
        weights = {_key(one): one.weight for layer in candidates for one in layer}
        trusted = [one for one in path if not self._is_doubtful(one)]
        limits = {one.segment: one.weight + MAX_BROKEN_LEAD for one in trusted}
        broken = {
            _key(one)
            for one in islice(_rivals(settled, trusted), MAX_RIVALS)
            if weights[_key(one)] <= limits[one.segment] and self._breaks(one, settled, path)
        }
        return [[one for one in layer if _key(one) not in broken] for layer in settled]

    def _is_doubtful(self, placement: Placement) -> bool:
        """Whether a placement is a guess, takes others' brackets, or drops unnamed definitions."""
        if placement.reason == "order" or not self._check.keeps_blocks(placement):
            return True
        words = words_of(placement.lines)
        return any(
            placement.start <= symbol.start
            and symbol.end <= placement.end
            and not mentions(words, symbol.name)
            for symbol in self._symbols
        )

    def _breaks(self, rival: Placement, layers: Layers, path: Path) -> bool:
        """Whether the merges with a rival have syntax errors: the sound one and the best others."""
        swapped = tuple(rival if one.segment == rival.segment else one for one in path)
        fits = all(before.end <= one.start for before, one in pairwise(swapped))
        through = [[rival] if number == rival.segment else one for number, one in enumerate(layers)]
        others = islice(self._search(through).paths(), MAX_COMPLETIONS)
        has_way = False
        for way in chain([swapped] if fits else [], others):
            has_way = True
            if not self._check.error_lines(way, self._removed):
                return False
        return has_way

    def _search(self, layers: Layers) -> PathSearch:
        return PathSearch([layers[number] for number in self._order])

    def _guilty(
        self, path: Path, error: int, settled: Layers, lowered: set[_Key]
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


def _rivals(layers: Layers, path: Sequence[Placement]) -> Iterator[Placement]:
    """Alternatives to the placements of a path, the likeliest first."""
    found = [
        (one.weight - other.weight, one.segment, place)
        for one in path
        if not one.is_certain
        for place, other in enumerate(layers[one.segment])
        if other != one and other.weight >= one.weight - MAX_WEIGHT_GAP
    ]
    for _, segment, place in sorted(found):
        yield layers[segment][place]


def _lowered(candidates: Layers, guilty: Placement) -> list[list[Placement]]:
    """The candidates with one placement less likely, and no certain one in its segment."""
    layer = [replace(one, is_certain=False) for one in candidates[guilty.segment]]
    place = candidates[guilty.segment].index(guilty)
    layer[place] = replace(layer[place], weight=guilty.weight - SYNTAX_COST)
    layer.sort(key=lambda one: -one.weight)
    return [
        layer if number == guilty.segment else list(one) for number, one in enumerate(candidates)
    ]


def _key(placement: Placement) -> _Key:
    """A placement without its weight."""
    return placement.segment, placement.start, placement.end, placement.lines
