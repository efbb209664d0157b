"""The merges of an update: each reading's best ways, as texts, best first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
from numpy.typing import NDArray

from apply_service.edit.place.candidates.filled_lines import words_of
from apply_service.edit.place.candidates.original_facts import OriginalFacts
from apply_service.edit.place.candidates.parts import parts_of
from apply_service.edit.place.candidates.way import Way
from apply_service.edit.place.features.feature import Rows, rows_of_views
from apply_service.edit.place.features.merge_features import MERGE_FEATURES
from apply_service.edit.place.features.merge_view import MergeView, Reading
from apply_service.edit.place.features.telling_words import telling_words
from apply_service.edit.place.features.text_flaws import TextFlaws
from apply_service.edit.place.features.update_shape import UpdateShape
from apply_service.edit.place.lattice.beam import Beam, Scorer
from apply_service.edit.place.lattice.merged_text import merged_text
from apply_service.edit.place.lattice.moved_definitions import Move, moves_of
from apply_service.edit.place.sent_part import SentPart
from apply_service.edit.read.fences import fenced_parts
from apply_service.edit.read.marker_scan import MarkerScan
from apply_service.edit.read.markers import parse_marker
from apply_service.edit.read.original_index import OriginalIndex
from apply_service.edit.read.readings import readings_of
from apply_service.edit.read.segment import (
    EXPLICIT_FORMATS,
    Removal,
    Segment,
    SegmentLine,
    Snippet,
)
from apply_service.edit.read.snippet import read_snippet
from apply_service.edit.read.snippet_error import NoMarkerError, SnippetError
from apply_service.edit.syntax.languages import language_of

# Ways of the update as it stands, and of each other reading, that become texts.
MAX_WAYS, MAX_OTHER_WAYS = 12, 5
MAX_MERGES = 10
# Other readings are left out once so many candidates have been looked at.
MAX_SEEN = 9_000
# Of the lines that a segment says it replaces so many must be there, as much alike as this.
MIN_OLD_SHARE, MIN_OLD_LIKENESS = 0.7, 0.75
# The number of readings that see a move.
NUM_OF_MOVES = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """A text that the update may mean, with the way to it and what is known of it."""

    lines: Sequence[str]
    reading: Reading
    way: Way
    rows: Sequence[NDArray[np.float32]]
    num_readings: int = 1

    def sent_parts(self, update_lines: Sequence[str]) -> Iterator[SentPart]:
        """What was sent, each part with the lines of the original whose place it takes."""
        segments = self.reading.snippet.segments
        for part, candidate in zip(self.way.parts, self.way.candidates, strict=True):
            if part.kind == "segment":
                lines = tuple(segments[part.number].texts)
            elif part.kind == "removal" and part.sent_line:
                lines = (update_lines[part.sent_line - 1].strip(),)
            else:
                continue
            start, end = part.original.span_of(candidate.start, candidate.end)
            yield SentPart(start=start, end=end, lines=lines)

    def misfits(self) -> Iterator[Segment]:
        """Segments that name the lines they replace, which the file does not have there.

        Some of the lines around those that go may be missing.
        """
        snippet = self.reading.snippet
        if snippet.format not in EXPLICIT_FORMATS:
            return
        for part, candidate in zip(self.way.parts, self.way.candidates, strict=True):
            segment = snippet.segments[part.number] if part.rows else None
            if segment is None or segment.old is None:
                continue
            old = {row for row, line in enumerate(part.rows) if line.is_found}
            ratios = part.matcher.ratios
            there = {pair[0] for pair in candidate.pairs if ratios[pair] >= MIN_OLD_LIKENESS}
            removed = {row for row in old if not part.rows[row].is_written}
            if len(there) < MIN_OLD_SHARE * len(old) or removed - there:
                yield segment


class MergeSource:
    """All readings of one update of one original; `local` and `step` score candidates.

    `instruction` is what the caller said the update does, if anything.
    """

    def __init__(
        self,
        original_lines: Sequence[str],
        update_lines: Sequence[str],
        *,
        path: str | None,
        language: str | None,
        local: Scorer | None,
        step: Scorer | None,
        instruction: str | None = None,
    ) -> None:
        self._said = telling_words([instruction or ""])
        language = language_of(path, language, original_lines)
        self.original = OriginalFacts(original_lines, language)
        self.beams: list[tuple[Reading, Beam]] = []
        index = OriginalIndex(original_lines)
        for number, update in enumerate(readings_of(update_lines, index, language=language)):
            try:
                snippet = read_snippet(update, original_lines, path=path, language=language)
            except NoMarkerError:
                snippet = self._one_segment(update, path, language)
            except SnippetError:
                continue
            self._add(_reading(number, snippet, update), snippet, local, step)
        for move in moves_of(update_lines, self.original, MarkerScan(index, language=language)):
            try:
                snippet = read_snippet(move.lines, original_lines, path=path, language=language)
            except SnippetError:
                continue
            snippet = _with_move(snippet, move)
            self._add(_reading(NUM_OF_MOVES, snippet, move.lines), snippet, local, step)

    def _add(
        self, reading: Reading, snippet: Snippet, local: Scorer | None, step: Scorer | None
    ) -> None:
        num_seen = sum(len(part.candidates) for _, beam in self.beams for part in beam.parts)
        if num_seen <= MAX_SEEN:
            self.beams += ((reading, beam) for beam in self._beams_of(snippet, local, step))

    def merges(self) -> list[Merge]:
        """At most `MAX_MERGES` different texts, those of likelier ways first."""
        found: dict[tuple[str, ...], Merge] = {}
        unchanged = tuple(line for line in self.original.all_lines if line.strip())
        for reading, beam in self.beams:
            rows_of = {
                id(one): row
                for part, rows in zip(beam.parts, beam.rows, strict=True)
                for one, row in zip(part.candidates, rows, strict=True)
            }
            for way in beam.search(MAX_OTHER_WAYS if reading.number else MAX_WAYS):
                lines = merged_text(self.original, way)
                key = tuple(line for line in lines if line.strip())
                if key == unchanged and self._has_news(way):
                    continue
                known = found.get(key)
                if known is None:
                    rows = [rows_of[id(one)] for one in way.candidates if len(rows_of[id(one)])]
                    found[key] = Merge(lines=lines, reading=reading, way=way, rows=rows)
                elif known.reading.number != reading.number:
                    found[key] = replace(known, num_readings=known.num_readings + 1)
        order = sorted(found.values(), key=lambda merge: -merge.way.score)
        return order[:MAX_MERGES]

    def _has_news(self, way: Way) -> bool:
        """Whether something was sent that the original has nowhere."""
        known = set(self.original.stripped)
        return any(
            row.is_written and not row.is_optional and row.stripped not in known
            for part in way.parts
            for row in part.rows
        )

    def features(self, merges: Sequence[Merge]) -> Rows:
        """The features of each merge."""
        scores = [merge.way.score for merge in merges]
        flaws_before = TextFlaws(self.original)
        views = [
            MergeView(
                self.original,
                merge.reading,
                merge.way,
                merge.lines,
                rank=rank,
                scores=scores,
                num_readings=merge.num_readings,
                rows=merge.rows,
                flaws_before=flaws_before,
                said=self._said,
            )
            for rank, merge in enumerate(merges)
        ]
        return rows_of_views(MERGE_FEATURES, views)

    def _beams_of(
        self, snippet: Snippet, local: Scorer | None, step: Scorer | None
    ) -> Iterator[Beam]:
        parts = parts_of(self.original, snippet)
        if not parts or any(not part.candidates for part in parts):
            return
        beam = Beam(parts, local, step)
        yield beam
        order = beam.natural_order()
        if order != list(range(len(parts))):
            yield beam.reordered(order)

    def _one_segment(
        self, update: Sequence[str], path: str | None, language: str | None
    ) -> Snippet:
        """All lines of an update as one part of the file."""
        parts = fenced_parts(update, self.original.counts, path=path, language=language)
        shown = [SegmentLine(update[line], line + 1) for part in parts for line in range(*part)]
        return Snippet(format="fragment", segments=(Segment(lines=tuple(shown)),))


def _with_move(snippet: Snippet, move: Move) -> Snippet:
    """The snippet with lines that are new where they stand, and go where they stood."""
    segments = [
        msgspec.structs.replace(
            segment,
            lines=tuple(
                msgspec.structs.replace(line, role="new") if line.number in move.new_lines else line
                for line in segment.lines
            ),
        )
        for segment in snippet.segments
    ]
    removals = [Removal(name, 0, len(segments)) for name in move.removed]
    return msgspec.structs.replace(
        snippet, segments=tuple(segments), removals=(*snippet.removals, *removals)
    )


def _reading(number: int, snippet: Snippet, update_lines: Sequence[str]) -> Reading:
    shape = UpdateShape(snippet)
    sent = [line for line in update_lines if line.strip()]
    ends = (sent[0], sent[-1]) if sent else ("", "")
    is_lazy = snippet.format not in EXPLICIT_FORMATS
    first, last = (is_lazy and parse_marker(line) is None for line in ends)
    return Reading(
        number=number,
        snippet=snippet,
        words=words_of("\n".join(shape.counts)),
        noted=frozenset(removal.name for removal in snippet.removals),
        num_markers=sum(segment.has_gap_before for segment in snippet.segments),
        shape=shape,
        is_open=(first, last),
    )
