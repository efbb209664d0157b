"""Lazy updates: the changed code, and markers for what stays as it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from apply_service.edit.definition_names import definition_names
from apply_service.edit.markers import Marker, MarkerReader
from apply_service.edit.original_index import OriginalIndex, is_telling
from apply_service.edit.segment import Removal, Segment, SegmentLine, Snippet

# An update that begins (or ends) without a marker still may stand in the middle of the file. It
# does if more lines than these would be lost at the border otherwise.
MAX_LOST_AT_BORDER = 3
_LOST_PER_SHOWN_LINE = 2


def has_markers(lines: Sequence[SegmentLine], reader: MarkerReader) -> bool:
    """Whether any line is a marker or a removal directive by itself."""
    return any(reader.read(line.text) is not None for line in lines)


def read_lazy(
    lines: Iterable[SegmentLine], original: OriginalIndex, reader: MarkerReader
) -> Snippet:
    """Cut at markers and removal directives; runs of blank lines alone are dropped."""
    splitter = _Splitter()
    for line in lines:
        marker = reader.read(line.text)
        if marker is not None:
            splitter.cut(marker, line.number)
        else:
            splitter.add(line)
    segments = splitter.finish()
    if segments and not segments[0].has_gap_before:
        segments[0] = replace(segments[0], has_gap_before=_is_inside(segments[0], original))
    if segments and not segments[-1].has_gap_after:
        is_inside = _is_inside(segments[-1], original, is_end=True)
        segments[-1] = replace(segments[-1], has_gap_after=is_inside)
    return Snippet(format="lazy", segments=tuple(segments), removals=tuple(splitter.removals))


class _Splitter:
    """Collects lines to segments between cuts."""

    def __init__(self) -> None:
        self.removals: list[Removal] = []
        self._segments: list[Segment] = []
        self._run: list[SegmentLine] = []
        self._has_gap_before = False

    def add(self, line: SegmentLine) -> None:
        """`line` belongs into the result."""
        self._run.append(line)

    def cut(self, marker: Marker, number: int) -> None:
        """A marker stands on line `number`."""
        self._close(has_gap_after=True)
        self._has_gap_before = True
        if marker.name is not None:
            self.removals.append(Removal(marker.name, number, len(self._segments)))

    def finish(self) -> list[Segment]:
        """All segments; the last run ends with the update."""
        self._close(has_gap_after=False)
        return self._segments

    def _close(self, *, has_gap_after: bool) -> None:
        if any(line.text.strip() for line in self._run):
            self._segments.append(
                Segment(
                    lines=tuple(self._run),
                    has_gap_before=self._has_gap_before,
                    has_gap_after=has_gap_after,
                )
            )
        self._run = []


def _is_inside(segment: Segment, original: OriginalIndex, *, is_end: bool = False) -> bool:
    """Whether a border segment without a marker leaves lines of the original beyond it.

    The first of its lines that stands in the original tells how many lines would be lost.
    """
    texts = [text.strip() for text in segment.texts]
    filled = [text for text in (reversed(texts) if is_end else texts) if text]
    places = original.last_places if is_end else original.first_places
    total = original.num_filled_before
    for num_shown, text in enumerate(filled):
        if text not in places or not is_telling(text):
            continue
        place = places[text]
        num_beyond = total[-1] - total[place + 1] if is_end else total[place]
        return num_beyond > MAX_LOST_AT_BORDER + _LOST_PER_SHOWN_LINE * num_shown
    names = definition_names(segment.texts)
    return bool(names) and not names.isdisjoint(definition_names(original.lines))
