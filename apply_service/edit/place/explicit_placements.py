"""Placements of segments that name the lines they replace: diffs, blocks and patches."""

from __future__ import annotations

from collections.abc import Sequence

from apply_service.edit.place.lazy_places import LazyPlacer
from apply_service.edit.place.placement import Placement
from apply_service.edit.read.segment import Segment
from apply_service.edit.text.alignment import MAX_GAP_CELLS, matching_blocks, small_blocks
from apply_service.edit.text.indentation import reindented_by
from apply_service.edit.text.line_index import LineIndex, indent_of
from apply_service.edit.text.similarity import Similarity

MAX_MATCHES = 64
_SIGNS = ("=======", "<<<<<<<", ">>>>>>>", "-------", "+++++++")
EXACT_WEIGHT = 20.0
_INDENTED_COST = 4.0
_BLANK_COST = 6.0
_NEAR_COST = 14.0
_MAX_HINT_GAIN = 3.0
# The share of the filled old lines that must stand in the original for a near match.
MIN_NEAR_SHARE = 0.7


class ExplicitPlacements:
    """Finds the old lines of segments: exact, then indented differently, then without blanks."""

    def __init__(self, index: LineIndex, similarity: Similarity) -> None:
        self._index = index
        self._similarity = similarity
        self._filled = [place for place, text in enumerate(index.stripped) if text]
        self._known: dict[tuple[str, ...], list[str]] = {}
        self._ranks = {place: rank for rank, place in enumerate(self._filled)}

    def of(self, number: int, segment: Segment) -> list[Placement]:
        """Placements of segment `number`, best first."""
        old = list(segment.old or ())
        stripped = [text.strip() for text in old]
        if not any(stripped):
            return self._insertion(number, segment)
        spans = [(start, start + len(old)) for start in self._places(stripped)]
        exact = [span for span in spans if list(self._index.lines[span[0] : span[1]]) == old]
        weight, found = EXACT_WEIGHT, exact
        if not found:
            weight, found = EXACT_WEIGHT - _INDENTED_COST, spans
        if not found:
            weight, found = EXACT_WEIGHT - _BLANK_COST, self._without_blanks(stripped)
        if not found:
            return self._near(number, segment, old)
        is_only = len(found) == 1 and not self._has_stray_sign(segment)
        self._known.clear()
        placements = [
            self._placement(number, segment, span, weight, is_certain=is_only) for span in found
        ]
        return sorted(placements, key=lambda one: (-one.weight, one.start))

    def _has_stray_sign(self, segment: Segment) -> bool:
        """Whether a sign of the format stands among the new lines, where it cannot be meant."""
        return any(
            text.startswith(_SIGNS) and not self._index.places(text.strip())
            for text in segment.texts
        )

    def _places(self, stripped: Sequence[str]) -> list[int]:
        """Where the old lines stand one after another, compared without indentation."""
        rarest = min(
            (place for place, text in enumerate(stripped) if text),
            key=lambda place: len(self._index.places(stripped[place])),
        )
        size = len(stripped)
        starts = [place - rarest for place in self._index.places(stripped[rarest])]
        wanted = list(stripped)
        found: list[int] = []
        for start in starts:
            if start >= 0 and self._index.stripped[start : start + size] == wanted:
                found.append(start)
                if len(found) == MAX_MATCHES:
                    break
        return found

    def _without_blanks(self, stripped: Sequence[str]) -> list[tuple[int, int]]:
        """Where the filled old lines follow one another with any blank lines between."""
        wanted = [text for text in stripped if text]
        rarest = min(range(len(wanted)), key=lambda rank: len(self._index.places(wanted[rank])))
        found: list[tuple[int, int]] = []
        for place in self._index.places(wanted[rarest]):
            first = self._ranks[place] - rarest
            places = self._filled[max(first, 0) : first + len(wanted)]
            if first >= 0 and [self._index.stripped[one] for one in places] == wanted:
                found.append((places[0], places[-1] + 1))
                if len(found) == MAX_MATCHES:
                    break
        return found

    def _placement(
        self,
        number: int,
        segment: Segment,
        span: tuple[int, int],
        weight: float,
        *,
        is_certain: bool,
    ) -> Placement:
        present = tuple(self._index.lines[span[0] : span[1]])
        if present not in self._known:
            self._known[present] = self._written(segment, span)
        lines = self._known[present]
        weight -= _hint_cost(segment, span[0])
        return Placement(
            segment=number,
            start=span[0],
            end=span[1],
            lines=tuple(lines),
            weight=weight,
            reason="explicit",
            is_certain=is_certain,
        )

    def _written(self, segment: Segment, span: tuple[int, int]) -> list[str]:
        """The new lines, indented as the file is; lines that stay are those of the file."""
        texts, old = segment.texts, list(segment.old or ())
        present = [line for line in self._index.lines[span[0] : span[1]] if line.strip()]
        filled = [place for place, text in enumerate(old) if text.strip()]
        pairs = {
            indent_of(old[place]): indent_of(line)
            for place, line in zip(filled, present, strict=False)
        }
        written = reindented_by(texts, pairs)
        stands = dict(zip(filled, present, strict=False))
        is_small = len(old) * len(texts) <= MAX_GAP_CELLS
        for block in (small_blocks if is_small else matching_blocks)(old, texts):
            for step in range(block.length):
                if block.old_start + step in stands:
                    written[block.new_start + step] = stands[block.old_start + step]
        return written

    def _insertion(self, number: int, segment: Segment) -> list[Placement]:
        """Without old lines only the line number of the hunk says where to."""
        if segment.old_line_hint is None:
            return []
        place = min(max(segment.old_line_hint - 1, 0), len(self._index))
        return [
            Placement(
                segment=number,
                start=place,
                end=place,
                lines=tuple(segment.texts),
                weight=-_MAX_HINT_GAIN,
                reason="order",
            )
        ]

    def _near(self, number: int, segment: Segment, old: Sequence[str]) -> list[Placement]:
        """Placements where most old lines stand and the others are similar."""
        filled = [place for place, text in enumerate(old) if text.strip()]
        core = list(old[filled[0] : filled[-1] + 1])
        spots = LazyPlacer(core, self._index, similarity=self._similarity).spots()
        placements: list[Placement] = []
        for spot in spots[:8]:
            present = {text for text in self._index.stripped[spot.start : spot.end] if text}
            num_present = sum(old[place].strip() in present for place in filled)
            if num_present < MIN_NEAR_SHARE * len(filled):
                continue
            weight = EXACT_WEIGHT - _NEAR_COST - len(placements)
            placements.append(
                Placement(
                    segment=number,
                    start=spot.start,
                    end=spot.end,
                    lines=tuple(segment.texts),
                    weight=weight - _hint_cost(segment, spot.start),
                    reason="similar",
                )
            )
        return placements


def _hint_cost(segment: Segment, start: int) -> float:
    """Line numbers of agents are often wrong: they only decide between equals."""
    if segment.old_line_hint is None:
        return 0.0
    distance = abs(segment.old_line_hint - 1 - start)
    return _MAX_HINT_GAIN * min(distance, 200) / 200
