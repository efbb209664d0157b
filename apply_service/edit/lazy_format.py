"""Lazy updates: the changed code, and markers for what stays as it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from apply_service.edit.definition_names import definition_name, definition_names
from apply_service.edit.inline_markers import find_inline_marker, merge_items
from apply_service.edit.instruction_comments import is_instruction
from apply_service.edit.markers import Marker, MarkerReader, parse_marker
from apply_service.edit.original_index import OriginalIndex, is_telling
from apply_service.edit.segment import Removal, Segment, SegmentLine, Snippet

# An update that begins (or ends) without a marker still may stand in the middle of the file. It
# does if more lines than these would be lost at the border otherwise.
MAX_LOST_AT_BORDER = 3
_LOST_PER_SHOWN_LINE = 2
# Each inline marker is looked for in the whole original.
MAX_INLINE_MARKERS = 50
_CLOSERS = frozenset(")]}>;, \t")


class LazyReader:
    """Reads lazy updates of one original; also what the other formats need of their lines."""

    def __init__(self, original: OriginalIndex) -> None:
        self._original = original
        self._markers = MarkerReader(original.lines)

    def is_marker(self, line: str) -> bool:
        """Whether `line` is a marker or a removal directive by itself."""
        return self._markers.read(line) is not None

    def is_lazy(self, lines: Sequence[SegmentLine]) -> bool:
        """Whether any line is a marker or holds one."""
        return any(
            self.is_marker(line.text) or self._markers.has_inline_marker(line.text)
            for line in lines
        )

    def read(self, parts: Sequence[Sequence[SegmentLine]]) -> Snippet:
        """Cut at markers, directives and between parts; runs of blank lines alone are dropped."""
        splitter = _Splitter()
        num_inline = 0
        for number, part in enumerate(parts):
            if number:
                splitter.cut(None, part[0].number if part else 0)
            for line, marker in self._classified(part):
                if marker is not None:
                    splitter.cut(marker, line.number)
                elif self._markers.has_inline_marker(line.text):
                    num_inline += 1
                    self._add_inline(splitter, line, is_resolved=num_inline <= MAX_INLINE_MARKERS)
                else:
                    splitter.add(line)
        segments = [self.with_optional(segment) for segment in splitter.finish()]
        self._open_borders(segments)
        return Snippet(format="lazy", segments=tuple(segments), removals=tuple(splitter.removals))

    def with_optional(self, segment: Segment) -> Segment:
        """The segment with its instruction comments marked."""
        filled = [place for place, line in enumerate(segment.lines) if line.text.strip()]
        lines = list(segment.lines)
        for place, after in [*pairwise(filled), (filled[-1], None)] if filled else []:
            following = None if after is None else lines[after].text
            if self._original.has(lines[place].text):
                continue
            is_known = (
                following is not None
                and self._original.has(following)
                and definition_name(following) is not None
            )
            if is_instruction(lines[place].text, following if is_known else None):
                lines[place] = replace(lines[place], is_optional=True)
        return replace(segment, lines=tuple(lines))

    def _classified(
        self, part: Sequence[SegmentLine]
    ) -> Iterator[tuple[SegmentLine, Marker | None]]:
        """Each line with the marker it is; a directive in front of new code is its comment."""
        filled = [line for line in part if line.text.strip()]
        neighbours = dict(zip([line.number for line in filled], [*filled[1:], None], strict=True))
        is_after_text = False
        for line in part:
            marker = self._markers.read(line.text)
            following = neighbours.get(line.number)
            is_before_text = following is not None and parse_marker(following.text) is None
            if marker is not None and marker.kind == "remove":
                is_described = (
                    is_before_text
                    and following is not None
                    and following.number == line.number + 1
                    and not self._original.has(following.text)
                )
                marker = None if is_described else marker
            elif marker is None and not (is_before_text or is_after_text):
                # Alone between two markers even a name that the original lacks is a directive.
                marker = self._nameless(line.text)
            if line.text.strip():
                is_after_text = marker is None
            yield line, marker

    def _nameless(self, line: str) -> Marker | None:
        marker = parse_marker(line)
        is_removal = marker is not None and marker.kind == "remove"
        return marker if is_removal and not self._original.has(line) else None

    def _add_inline(self, splitter: _Splitter, line: SegmentLine, *, is_resolved: bool) -> None:
        marker = find_inline_marker(line.text)
        assert marker is not None, "the line has an inline marker"
        merged = merge_items(marker, self._original) if is_resolved else None
        head = marker.head.strip()
        if merged is not None:
            splitter.add(replace(line, text=merged))
        elif head and (
            not marker.tail or (set(marker.tail) <= _CLOSERS and self._original.has(head))
        ):
            splitter.add(replace(line, text=marker.head))
            splitter.cut(None, line.number)
        else:
            splitter.add(replace(line, has_inline_marker=True))

    def _open_borders(self, segments: list[Segment]) -> None:
        """Give the outer borders without a marker a gap where one was forgotten."""
        if segments and not segments[0].has_gap_before:
            is_inside = self._is_inside(segments[0])
            segments[0] = replace(segments[0], has_gap_before=is_inside)
        if segments and not segments[-1].has_gap_after:
            is_inside = self._is_inside(segments[-1], is_end=True)
            segments[-1] = replace(segments[-1], has_gap_after=is_inside)

    def _is_inside(self, segment: Segment, *, is_end: bool = False) -> bool:
        """Whether a border segment without a marker leaves lines of the original beyond it.

        The first of its lines that stands in the original tells how many would be lost.
        """
        original = self._original
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

    def cut(self, marker: Marker | None, number: int) -> None:
        """A gap at line `number`, with the marker that stands there if one does."""
        self._close(has_gap_after=True)
        self._has_gap_before = True
        if marker is not None and marker.name is not None:
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
