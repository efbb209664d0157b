"""Merges of updates that name the lines they replace, where all these lines are in the file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from apply_service.edit.place.sent_part import SentPart
from apply_service.edit.read.segment import Segment
from apply_service.edit.text.alignment import MAX_GAP_CELLS, matching_blocks, small_blocks
from apply_service.edit.text.indentation import reindented_by
from apply_service.edit.text.line_index import LineIndex, indent_of

MAX_MATCHES = 64
# The certainty of the best of several places, or of lines with a stray sign, is at most this: less
# than what is applied unasked.
MAX_DOUBTFUL = 0.75
MAX_MERGES = 8
_SIGNS = ("=======", "<<<<<<<", ">>>>>>>", "-------", "+++++++")
# The log odds of the place that a hunk's line number names against one 200 lines away; agents'
# line numbers are often wrong.
MAX_HINT_GAIN, HINT_REACH = 3.0, 200


@dataclass(frozen=True, slots=True)
class ExactPlace:
    """`lines` replace lines `[start, end)`; `cost` is how far off the hunk's line number is."""

    start: int
    end: int
    lines: tuple[str, ...]
    cost: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactMerges:
    """Merges with their log-probabilities, the likeliest first.

    `parts` are the places of the first one. It is certain only if each segment has one place.
    """

    merges: tuple[tuple[str, ...], ...]
    weights: tuple[float, ...]
    parts: tuple[SentPart, ...]
    certainty: float


class OverlapError(Exception):
    """Every segment has its place, but not beside the others."""


def exact_merges(original_lines: Sequence[str], segments: Sequence[Segment]) -> ExactMerges | None:
    """None if the old lines of a segment are not all in the file. Raises OverlapError."""
    search = _ExactPlaces(original_lines)
    places: list[list[ExactPlace]] = []
    for segment in segments:
        found = search.of(segment)
        if not found:
            return None
        places.append(found)
    ways = _best_ways(places)
    if not ways:
        raise OverlapError
    merges: dict[tuple[str, ...], float] = {}
    for way in ways:
        merges.setdefault(_spliced(original_lines, way), -sum(one.cost for one in way))
    total = math.log(sum(map(math.exp, merges.values())))
    is_only = len(ways) == 1 and not any(map(search.has_stray_sign, segments))
    weights = tuple(weight - total for weight in merges.values())
    return ExactMerges(
        merges=tuple(merges),
        weights=weights,
        parts=tuple(SentPart(start=one.start, end=one.end, lines=one.lines) for one in ways[0]),
        certainty=1.0 if is_only else min(math.exp(weights[0]), MAX_DOUBTFUL),
    )


def _best_ways(places: Sequence[Sequence[ExactPlace]]) -> list[tuple[ExactPlace, ...]]:
    """A place for each segment, in the order of the file; at most `MAX_MERGES` ways."""
    order = sorted(range(len(places)), key=lambda number: places[number][0].start)
    ways: list[tuple[float, tuple[ExactPlace, ...]]] = [(0.0, ())]
    for number in order:
        longer = [
            (cost + one.cost, (*way, one))
            for cost, way in ways
            for one in places[number]
            if not way or one.start >= way[-1].end
        ]
        ways = sorted(longer, key=lambda one: one[0])[:MAX_MERGES]
    return [way for _, way in ways]


def _spliced(original_lines: Sequence[str], way: Sequence[ExactPlace]) -> tuple[str, ...]:
    merged: list[str] = []
    end = 0
    for one in way:
        merged += original_lines[end : one.start]
        merged += one.lines
        end = one.end
    return (*merged, *original_lines[end:])


class _ExactPlaces:
    """Finds old lines: exact, then indented differently, then with other blank lines between."""

    def __init__(self, original_lines: Sequence[str]) -> None:
        self._index = LineIndex(original_lines)
        self._filled = [place for place, text in enumerate(self._index.stripped) if text]
        self._ranks = {place: rank for rank, place in enumerate(self._filled)}

    def of(self, segment: Segment) -> list[ExactPlace]:
        """The places of a segment, those nearest to its line number first."""
        old = list(segment.old or ())
        stripped = [text.strip() for text in old]
        if not any(stripped):
            return []
        spans = [(start, start + len(old)) for start in self._places(stripped)]
        exact = [span for span in spans if list(self._index.lines[span[0] : span[1]]) == old]
        found = exact or spans or self._without_blanks(stripped)
        written: dict[tuple[str, ...], tuple[str, ...]] = {}
        places = []
        for start, end in found:
            present = tuple(self._index.lines[start:end])
            if present not in written:
                written[present] = tuple(self._written(segment, present))
            cost = _hint_cost(segment, start)
            places.append(ExactPlace(start, end, written[present], cost))
        return sorted(places, key=lambda one: (one.cost, one.start))

    def has_stray_sign(self, segment: Segment) -> bool:
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
        wanted, size = list(stripped), len(stripped)
        found: list[int] = []
        for place in self._index.places(stripped[rarest]):
            start = place - rarest
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

    def _written(self, segment: Segment, lines: Sequence[str]) -> list[str]:
        """The new lines, indented as the file is; lines that stay are those of the file."""
        texts, old = segment.texts, list(segment.old or ())
        present = [line for line in lines if line.strip()]
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


def _hint_cost(segment: Segment, start: int) -> float:
    if segment.old_line_hint is None:
        return 0.0
    distance = abs(segment.old_line_hint - 1 - start)
    return MAX_HINT_GAIN * min(distance, HINT_REACH) / HINT_REACH
