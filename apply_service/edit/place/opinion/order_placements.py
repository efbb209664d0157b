"""Guesses places for segments unlike anything in the original, from their neighbours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from apply_service.edit.place.opinion.placement import Placement
from apply_service.edit.place.opinion.variants import SURE_KEPT, VariantFinder
from apply_service.edit.syntax.definition_levels import DefinitionLevels, opens
from apply_service.edit.syntax.symbol import Symbol
from apply_service.edit.text.brackets import balance_of
from apply_service.edit.text.definition_names import bound_name, definition_name
from apply_service.edit.text.line_index import LineIndex, indent_of, leaves
from apply_service.edit.text.similarity import MIN_SIMILARITY, Similarity
from apply_service.edit.text.word_weights import WordWeights
from apply_service.edit.text.work_budget import spend

# Guesses weigh less than anything that the lines themselves speak for.
GUESS_WEIGHT = -4.0
MAX_GUESSES = 24
# Lines that are compared with a lone new one.
MAX_VARIANTS = 2_000
VARIANT_GAIN = 1.0
# What a better likeness adds, and by how much the best must be ahead of all others.
VARIANT_SLOPE = 12.0
CLEAR_LEAD = 0.08
MAX_HEADERS = 4
# Longer segments are not looked for by the names that their lines bind.
MAX_BOUND_LINES = 12
# Of two lines that leave a block the second is never reached.
LEAVING_GAIN = 4.5
# Lines of one kind ("pub const ...", `"os/signal"`) and how far apart they may stand.
MAX_KIN_LINES = 3
MAX_KIN_GAP = 2
_KIND = re.compile(
    r"(?:(?:export|public|private|protected|internal|static|final|readonly|pub|const|let|var|val|"
    r"type|extern|define|local|field|use|readonly)\s+)+|[\"'<#@$-]"
)
_IMPORT = re.compile(
    r"(?:import|from|use|using|#\s*include|require|require_relative|const\s.*=\s*require\()\b"
)


def is_import(text: str) -> bool:
    """Whether a stripped line imports something."""
    return bool(_IMPORT.match(text))


class OrderPlacements:
    """Places new lines by what stands around them."""

    def __init__(
        self,
        index: LineIndex,
        symbols: Sequence[Symbol],
        imports: Sequence[tuple[int, int]] | None,
        similarity: Similarity,
        weights: WordWeights,
    ) -> None:
        self._index = index
        self._similarity = similarity
        self._variants = VariantFinder(index, weights)
        self._levels = DefinitionLevels(symbols, index)
        self._imports = self._import_spans() if imports is None else list(imports)

    def of(
        self,
        number: int,
        texts: Sequence[str],
        *,
        low: int,
        high: int,
        has_definition: bool = False,
        is_cut: bool = False,
        has_neighbour: bool = False,
        is_first: bool = False,
    ) -> list[Placement]:
        """Places in `[low, high]`, best first; `has_definition`: the new lines define something.

        With `has_neighbour` a segment that has its place stands directly before, and `low` is its
        end. `is_cut`: the definition goes on behind a marker. With `is_first` the update begins
        with the segment, and no marker stands before it.
        """
        core = _core(texts)
        spend(high - low + len(core))
        if has_definition:
            variants = self._header_of(number, core, low, high) if is_cut else []
        else:
            variants = self._variants_of(number, core, low, high)
        if all(is_import(text.strip()) for text in core if text.strip()):
            return [*variants, *self._after_imports(number, core, low, high)]
        borders = [] if has_definition else self._after_kin(core, low, high)
        depth = len(indent_of(core[0]))
        if is_first:
            borders += [*self._levels.at(depth).starts(low, high, MAX_GUESSES)[0], low]
        elif has_neighbour:
            borders += self._borders_behind(low, high, depth, has_definition=has_definition)
        else:
            borders += self._borders(low, high, depth)
        placements = self._variant_of(number, core, low, high, has_neighbour=has_neighbour)
        placements = [*variants, *placements]
        for rank, border in enumerate(dict.fromkeys(borders)):
            lines = self._spaced(core, border) if has_definition else core
            placements.append(_guess(number, border, lines, GUESS_WEIGHT - 0.5 * rank))
            if len(placements) == MAX_GUESSES:
                break
        return placements

    def changed(self, number: int, texts: Sequence[str], *, low: int, high: int) -> list[Placement]:
        """Lines in `[low, high)` of which the new ones are almost surely changed versions."""
        found = self._variants_of(number, _core(texts), low, high)
        return found if found and found[0].reason == "variant" else []

    def _variant_of(
        self, number: int, core: Sequence[str], low: int, high: int, *, has_neighbour: bool
    ) -> list[Placement]:
        """A lone line takes the place of the one line that it is a variant of.

        That is the line most like it in the definition it stands in, or the only one anywhere
        that binds its name.
        """
        if len(core) > 1 or not core[0].startswith((" ", "\t")):
            return []
        indent, text = indent_of(core[0]), core[0].strip()
        if has_neighbour:
            high = min(self._levels.block_end(low, len(indent)), high)
        name = bound_name(text)
        places = [
            place
            for place in range(low, min(high, low + MAX_VARIANTS))
            if indent_of(self._index.lines[place]) == indent
            and bound_name(self._index.lines[place]) == name
        ]
        ratios = {
            place: self._similarity.ratio(self._index.stripped[place], text) for place in places
        }
        best = max(places, key=ratios.__getitem__, default=None)
        if best is None or ratios[best] < MIN_SIMILARITY:
            return []
        if not has_neighbour and (name is None or len(places) > 1):
            return []
        gain = LEAVING_GAIN if leaves(text) else VARIANT_GAIN
        return [replace(_guess(number, best, core, GUESS_WEIGHT + gain), end=best + 1)]

    def _variants_of(
        self, number: int, core: Sequence[str], low: int, high: int
    ) -> list[Placement]:
        """Lines that the new ones rewrite; "variant" if almost nothing else is possible."""
        placements = []
        found = self._variants.find(list(map(self._similarity.with_old_names, core)), low, high)
        balance = balance_of(core)
        found = [
            one for one in found if balance_of(self._index.lines[one.start : one.end]) == balance
        ]
        rival = found[1].score if len(found) > 1 else 0.0
        for one in found:
            is_sure = one is found[0] and one.kept >= SURE_KEPT and one.score - rival > CLEAR_LEAD
            placement = replace(
                _guess(number, one.start, core, GUESS_WEIGHT + VARIANT_SLOPE * (one.score - 0.7)),
                end=one.end,
            )
            placements.append(replace(placement, reason="variant") if is_sure else placement)
        bound = self._bound_alike(core, low, high)
        if bound is not None:
            placements = [one for one in placements if one.start != bound]
            sure = _guess(number, bound, core, GUESS_WEIGHT + VARIANT_SLOPE / 2)
            placements.insert(0, replace(sure, end=bound + len(core), reason="variant"))
        return placements

    def _header_of(self, number: int, core: Sequence[str], low: int, high: int) -> list[Placement]:
        """The header of a block whose name differs and whose body a marker stands for."""
        if len(core) > 1:
            return []
        ratios = {
            place: self._similarity.ratio(self._index.stripped[place], core[0].strip())
            for place in range(low, min(high, low + MAX_VARIANTS))
            if definition_name(self._index.lines[place]) is not None
            and indent_of(self._index.lines[place]) == indent_of(core[0])
        }
        found = sorted(ratios, key=lambda place: -ratios[place])[:MAX_HEADERS]
        return [
            replace(
                _guess(number, place, core, GUESS_WEIGHT + VARIANT_SLOPE * (ratios[place] - 0.7)),
                end=place + 1,
            )
            for place in found
            if ratios[place] >= MIN_SIMILARITY
        ]

    def _bound_alike(self, core: Sequence[str], low: int, high: int) -> int | None:
        """The only lines as deep as the new ones that bind their names, with the same brackets."""
        names = [bound_name(self._similarity.with_old_names(line)) for line in core]
        first = names[0]
        if first is None or None in names or len(core) > MAX_BOUND_LINES:
            return None
        lines, depths = self._index.lines, list(map(indent_of, core))
        places = [
            place
            for place in range(low, min(high - len(core) + 1, low + MAX_VARIANTS))
            if first in self._index.stripped[place]
            and [bound_name(line) for line in lines[place : place + len(core)]] == names
            and [indent_of(line) for line in lines[place : place + len(core)]] == depths
        ]
        if len(places) != 1:
            return None
        (place,) = places
        is_alike = balance_of(lines[place : place + len(core)]) == balance_of(core)
        return place if is_alike else None

    def _import_spans(self) -> list[tuple[int, int]]:
        spans: list[tuple[int, int]] = []
        for place, text in enumerate(self._index.stripped):
            if not is_import(text) or indent_of(self._index.lines[place]):
                continue
            if spans and spans[-1][1] == place:
                spans[-1] = (spans[-1][0], place + 1)
            else:
                spans.append((place, place + 1))
        return spans

    def _after_imports(
        self, number: int, core: Sequence[str], low: int, high: int
    ) -> list[Placement]:
        """The alphabetical place, if the imports keep that order; then after each block."""
        places: list[int] = []
        for start, end in self._imports:
            if low <= end and start <= high:
                kept = self._sorted_places(core, start, end)
                places.extend([*kept, end])
        if not places:
            places = [low] if low else [0]
        inside = [place for place in places if low <= place <= high]
        return [
            _guess(number, place, list(core), GUESS_WEIGHT + 2.0 - 0.5 * rank)
            for rank, place in enumerate(list(dict.fromkeys(inside))[:MAX_GUESSES])
        ]

    def _sorted_places(self, core: Sequence[str], start: int, end: int) -> list[int]:
        block = self._index.lines[start:end]
        if len(core) > 1 or len(block) < 3 or list(block) != sorted(block):
            return []
        return [start + sum(line < core[0] for line in block)]

    def _after_kin(self, core: Sequence[str], low: int, high: int) -> list[int]:
        """After the last of the lines that begin as a lone new line does, if they stand together.

        A list in the order of the alphabet takes the line at its place.
        """
        if len(core) > MAX_KIN_LINES:
            return []
        indent, word = indent_of(core[0]), _first_word(core[0])
        kin = [
            place
            for place in range(low, high)
            if self._index.lines[place].startswith(indent + word)
            and _first_word(self._index.lines[place]) == word
            and indent_of(self._index.lines[place]) == indent
        ]
        if not kin:
            return []
        last = next((a for a, b in pairwise(kin) if b > a + MAX_KIN_GAP), kin[-1])
        block = [self._index.lines[place] for place in kin if place <= last]
        if len(block) > 2 and block == sorted(block):
            later = [place for place, line in zip(kin, block, strict=False) if line > core[0]]
            if later:
                return [later[0]]
        return [last + 1]

    def _borders(self, low: int, high: int, depth: int) -> list[int]:
        """Ends of definitions at the depth of the new lines, the last first."""
        level = self._levels.at(depth)
        ends, starts = (
            found[1]
            for found in (level.ends(low, high, MAX_GUESSES), level.starts(low, high, MAX_GUESSES))
        )
        return [*ends, *starts, high]

    def _borders_behind(
        self, low: int, high: int, depth: int, *, has_definition: bool
    ) -> list[int]:
        """The same, those near the neighbour first; a class's header is near its last member."""
        level = self._levels.at(depth)
        ends = level.ends(low, high, MAX_GUESSES)[0]
        starts = level.starts(low, high, MAX_GUESSES)[1]
        beside = level.around(low)
        around = [beside.end] if beside is not None and beside.end <= high else []
        if not has_definition:
            return [self._paragraph_end(low, high), low, *around, *ends, *starts, high]
        members: list[int] = []
        if beside is None:
            block_end = min(self._levels.block_end(low, depth), high)
            members = level.ends(low, block_end, MAX_GUESSES)[1]
        return [*around, *members, *ends, *starts, low, high]

    def _paragraph_end(self, low: int, high: int) -> int:
        """Where the lines without a blank one between them end that begin at `low`."""
        end = low
        while end < high and self._index.stripped[end] and not opens(self._index, end + 1):
            end += 1
        return end

    def _spaced(self, core: Sequence[str], border: int) -> list[str]:
        """The lines with blank lines as the file has them between its definitions."""
        gap = [""] * self._levels.at(len(indent_of(core[0]))).usual_gap
        is_filled = border > 0 and bool(self._index.stripped[border - 1])
        if is_filled and not opens(self._index, border):
            return [*gap, *core]
        if border < len(self._index) and self._index.stripped[border]:
            return [*core, *gap]
        return list(core)


def _first_word(line: str) -> str:
    """The words that say what kind of line it is: up to the first that is not a keyword."""
    match = _KIND.match(line.strip())
    return match[0] if match else line.strip()[:1]


def _core(texts: Sequence[str]) -> list[str]:
    filled = [place for place, text in enumerate(texts) if text.strip()]
    return list(texts[filled[0] : filled[-1] + 1])


def _guess(number: int, place: int, lines: Sequence[str], weight: float) -> Placement:
    return Placement(
        segment=number,
        start=place,
        end=place,
        lines=tuple(lines),
        weight=weight,
        reason="order",
    )
