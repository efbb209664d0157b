"""Merges of updates that name the lines they replace, where all these lines are in the file."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter

from apply_service.edit.place.sent_part import SentPart
from apply_service.edit.read.segment import Segment
from apply_service.edit.text.alignment import (
    MAX_GAP_CELLS,
    Block,
    changed_hunks,
    matching_blocks,
    small_blocks,
)
from apply_service.edit.text.indentation import reindented_by
from apply_service.edit.text.line_index import LineIndex, indent_of
from apply_service.edit.text.work_budget import check_size

MAX_MATCHES = 64
# The certainty of the best of several places, or of lines with a stray sign, is at most this: less
# than what is applied unasked.
MAX_DOUBTFUL = 0.75
MAX_MERGES = 8
# What lines between a heading and its block begin with; "" are blank ones.
_BORDERS = ("", ")", "]", "}", "{")
_SIGNS = ("=======", "<<<<<<<", ">>>>>>>", "-------", "+++++++")
# The log odds of the place that a hunk's line number names against one 200 lines away; agents'
# line numbers are often wrong.
MAX_HINT_GAIN, HINT_REACH = 3.0, 200
_start_of = attrgetter("start")


@dataclass(frozen=True, slots=True)
class ExactPlace:
    """`lines` replace lines `[start, end)`; `cost` is how far off the hunk's line number is.

    `is_doubtful` if the hunk says that it stands elsewhere.
    """

    start: int
    end: int
    lines: tuple[str, ...]
    cost: float
    is_doubtful: bool = False


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


def exact_merges(
    original_lines: Sequence[str], segments: Sequence[Segment], *, is_ordered: bool = False
) -> ExactMerges | None:
    """None if the old lines of a segment are not in the file, nor in what others have made of it.

    `is_ordered` if the segments should come in the order of the file, as hunks do.

    Raises OverlapError.
    """
    try:
        found = _together(original_lines, segments, is_ordered=is_ordered)
    except OverlapError:
        in_turn = _in_turn(original_lines, segments)
        if in_turn is None:
            raise
        return in_turn
    return _in_turn(original_lines, segments) if found is None else found


def _in_turn(original_lines: Sequence[str], segments: Sequence[Segment]) -> ExactMerges | None:
    """The merge if each segment has one place in what those before it have made."""
    lines = tuple(original_lines)
    made = (line for segment in segments for line in segment.texts)
    known = {"", *(line.strip() for line in (*lines, *made))}
    if any(old.strip() not in known for segment in segments for old in segment.old or ()):
        return None
    for segment in segments:
        found = _together(lines, [segment])
        if found is None or found.certainty < 1:
            return None
        lines = found.merges[0]
    parts = tuple(
        SentPart(start=hunk.old_start, end=hunk.old_end, lines=lines[hunk.new_start : hunk.new_end])
        for hunk in changed_hunks(original_lines, lines)
    )
    return ExactMerges(merges=(lines,), weights=(0.0,), parts=parts, certainty=1.0)


def _together(
    original_lines: Sequence[str], segments: Sequence[Segment], *, is_ordered: bool = False
) -> ExactMerges | None:
    """The merges in which each segment has a place in the original. Raises OverlapError."""
    search = _ExactPlaces(original_lines)
    places: list[list[ExactPlace]] = []
    for segment in segments:
        found = search.of(segment)
        if not found:
            return None
        places.append(found)
    ways = _best_ways(places, is_ordered=is_ordered)
    if not ways:
        raise OverlapError
    merges: dict[tuple[str, ...], float] = {}
    for way in ways:
        merges.setdefault(_spliced(original_lines, way), -sum(one.cost for one in way))
    total = math.log(sum(map(math.exp, merges.values())))
    has_doubt = any(one.is_doubtful for one in ways[0])
    is_only = len(merges) == 1 and not has_doubt and not any(map(search.has_stray_sign, segments))
    weights = tuple(weight - total for weight in merges.values())
    return ExactMerges(
        merges=tuple(merges),
        weights=weights,
        parts=tuple(SentPart(start=one.start, end=one.end, lines=one.lines) for one in ways[0]),
        certainty=1.0 if is_only else min(math.exp(weights[0]), MAX_DOUBTFUL),
    )


def merge_everywhere(original_lines: Sequence[str], segment: Segment) -> tuple[str, ...] | None:
    """The text with a segment in all of its places that do not overlap.

    None without a place, with more than are looked at, or if one can be written in several ways.
    """
    way: list[ExactPlace] = []
    places = _ExactPlaces(original_lines).of(segment)
    if len({one.start for one in places}) in (0, MAX_MATCHES):
        return None
    for place in places:
        if way and place.start == way[-1].start:
            return None
        if not way or place.start >= way[-1].end:
            way.append(place)
    added = [line for one in way for line in one.lines]
    check_size(
        sum(map(len, original_lines)) + sum(map(len, added)), len(original_lines) + len(added)
    )
    return _spliced(original_lines, way)


def _best_ways(
    places: Sequence[Sequence[ExactPlace]], *, is_ordered: bool
) -> list[tuple[ExactPlace, ...]]:
    """A place for each segment, in the order of the file; at most `MAX_MERGES` ways.

    Where segments come in the order of the file, others are looked at only if there is no such way.
    """
    ways: list[tuple[float, tuple[ExactPlace, ...]]] = [(0.0, ())]
    for found in places:
        longer: list[tuple[float, int, int, ExactPlace]] = []
        for number, (cost, way) in enumerate(ways):
            for one in found:
                at = bisect_right(way, one.start, key=_start_of)
                is_free = (not at or way[at - 1].end <= one.start) and (
                    at == len(way) or one.end <= way[at].start
                )
                if is_free and (at == len(way) or not is_ordered):
                    longer.append((cost + one.cost, number, at, one))
        longer.sort(key=itemgetter(0))
        ways = [
            (cost, (*ways[number][1][:at], one, *ways[number][1][at:]))
            for cost, number, at, one in longer[:MAX_MERGES]
        ]
    if is_ordered and not ways:
        return _best_ways(places, is_ordered=False)
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
        if not segment.has_gap_after:
            found = [span for span in found if not any(self._index.stripped[span[1] :])] or found
        heading = segment.old_line_hint if segment.is_below_hint else None
        below = [] if heading is None else [span for span in found if span[1] >= heading]
        if heading is not None and below and self._is_in_block(heading - 1, below[0][0]):
            found = below[:1]
        is_doubtful = heading is not None and not below
        written: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        places = []
        for start, end in found:
            present = tuple(self._index.lines[start:end])
            if present not in written:
                written[present] = [
                    lines
                    for texts in _with_blanks_of(present, old, segment.texts)
                    for lines in self._written(old, texts, present)
                ]
            cost = _hint_cost(segment, start)
            places += [
                ExactPlace(start, end, lines, cost, is_doubtful) for lines in written[present]
            ]
        return sorted(places, key=lambda one: (one.cost, one.start))

    def has_stray_sign(self, segment: Segment) -> bool:
        """Whether a sign of the format stands among the new lines, where it cannot be meant."""
        return any(
            text.startswith(_SIGNS) and not self._index.places(text.strip())
            for text in segment.texts
        )

    def _is_in_block(self, heading: int, place: int) -> bool:
        """Whether a line stands in the block below a heading; both from 0."""
        depth = len(indent_of(self._index.lines[heading]))
        return all(
            len(indent_of(line)) > depth or line.strip()[:1] in _BORDERS
            for line in self._index.lines[heading + 1 : place + 1]
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
                found.append(self._with_edges(places[0], places[-1] + 1, stripped))
                if len(found) == MAX_MATCHES:
                    break
        return found

    def _with_edges(self, start: int, end: int, stripped: Sequence[str]) -> tuple[int, int]:
        """The span with the blank lines beside it, if the old lines begin or end with some."""
        above, below = _blank_head(stripped), _blank_head(stripped[::-1])
        return (
            start - _blank_head(self._index.stripped[max(start - above, 0) : start][::-1]),
            end + _blank_head(self._index.stripped[end : end + below]),
        )

    def _written(
        self, old: Sequence[str], texts: Sequence[str], lines: Sequence[str]
    ) -> list[tuple[str, ...]]:
        """The new lines, indented as the file is; lines that stay are those of the file.

        In several ways where lines with one indentation have several in the file.
        """
        if list(lines) == texts:
            return [tuple(texts)]
        present = [line for line in lines if line.strip()]
        filled = [place for place, text in enumerate(old) if text.strip()]
        stands = dict(zip(filled, present, strict=False))
        kept = list(_kept_rows(old, texts))
        seen = [(indent_of(old[place]), indent_of(line)) for place, line in stands.items()]
        pairs = dict(seen)
        found: dict[tuple[str, ...], None] = {}
        if list(map(str.strip, texts)) == list(map(str.strip, old)) and list(lines) != old:
            found[tuple(texts)] = None  # an indentation is sent, and the old one was another
        for sent, meant in dict.fromkeys((*pairs.items(), *seen)):
            written = reindented_by(texts, {**pairs, sent: meant})
            for place, row, is_same in kept:
                if is_same and len(lines) == len(old):
                    written[row] = lines[place]
                elif is_same and place in stands:
                    written[row] = stands[place]
                elif place in stands and indent_of(old[place]) == indent_of(texts[row]):
                    written[row] = indent_of(stands[place]) + texts[row].lstrip()
            found.setdefault(tuple(written))
        return list(found)


def _with_blanks_of(
    lines: Sequence[str], old: Sequence[str], new: Sequence[str]
) -> list[list[str]]:
    """The new lines with the file's own blank lines where the old ones misremember them.

    Blank lines that old and new have alike change nothing. Where both are wrong and differ, the new
    ones are meant as they were sent, or as so many more or fewer than there are: two texts.
    """
    old_filled, old_gaps = _filled_and_gaps(old)
    new_filled, new_gaps = _filled_and_gaps(new)
    own_gaps = _filled_and_gaps(lines)[1]
    if not new_filled or list(map(len, old_gaps)) == list(map(len, own_gaps)):
        return [list(new)]
    former = {row: place for place, row, _ in _kept_rows(old_filled, new_filled)}
    as_sent: list[str] = []
    by_number: list[str] = []
    for row, sent in enumerate(new_gaps):
        counted, place = sent, former.get(row)
        if row == 0:
            place = 0
        elif row == len(new_filled):
            place = len(old_filled)
        elif place is not None and former.get(row - 1) != place - 1:
            place = None
        if place is not None:
            own, num_more = own_gaps[place], len(sent) - len(old_gaps[place])
            if not num_more:
                counted = sent = own
            elif len(own) not in (len(sent), len(old_gaps[place])):
                counted = (own + [""] * num_more)[: max(len(own) + num_more, 0)]
        as_sent += [*sent, *new_filled[row : row + 1]]
        by_number += [*counted, *new_filled[row : row + 1]]
    return [as_sent] if as_sent == by_number else [as_sent, by_number]


def _filled_and_gaps(lines: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """The lines with text; the blank ones above each of them, and those at the end."""
    filled: list[str] = []
    gaps: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            filled.append(line)
            gaps.append([])
        else:
            gaps[-1].append(line)
    return filled, gaps


def _blank_head(stripped: Sequence[str]) -> int:
    """Number of blank lines before the first other one."""
    return next((place for place, text in enumerate(stripped) if text), len(stripped))


def _kept_rows(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, bool]]:
    """Old lines with the new ones that they are, or that stand in their place one for one."""
    is_small = len(old) * len(new) <= MAX_GAP_CELLS
    blocks = (small_blocks if is_small else matching_blocks)(old, new)
    old_end = new_end = 0
    for block in (*blocks, Block(len(old), len(new), 0)):
        if block.old_start - old_end == block.new_start - new_end:
            for step in range(block.old_start - old_end):
                yield old_end + step, new_end + step, False
        for step in range(block.length):
            yield block.old_start + step, block.new_start + step, True
        old_end, new_end = block.old_start + block.length, block.new_start + block.length


def _hint_cost(segment: Segment, start: int) -> float:
    if segment.old_line_hint is None:
        return 0.0
    distance = abs(segment.old_line_hint - 1 - start)
    return MAX_HINT_GAIN * min(distance, HINT_REACH) / HINT_REACH
