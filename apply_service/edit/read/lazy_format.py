"""Lazy updates: the changed code, with markers in place of unchanged code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, pairwise

from msgspec.structs import replace

from apply_service.edit.read.inline_markers import find_inline_marker, merge_items
from apply_service.edit.read.instruction_comments import is_comment, is_instruction
from apply_service.edit.read.marker_scan import MarkerScan
from apply_service.edit.read.markers import Marker
from apply_service.edit.read.original_index import OriginalIndex, is_telling
from apply_service.edit.read.segment import Removal, Segment, SegmentLine, Snippet
from apply_service.edit.text.definition_names import (
    bound_name,
    definition_names,
    is_attribute,
)

# An update that begins (or ends) without a marker still may stand in the middle of the file. It
# does if this many more lines than it shows would be lost at the border otherwise.
MAX_LOST_AT_BORDER = 1
# Context lines at the border of the file that are looked for in front of new ones.
MAX_CONTINUED = 64
# Each inline marker is looked for in the whole original.
MAX_INLINE_MARKERS = 50
_DOCSTRING = re.compile(r"""(?:\"{3}|'{3}).*(?:\"{3}|'{3})""")
_CLOSING_TAIL = frozenset(")]}>;, \t")


class LazyReader:
    """Reads lazy updates of one original; other formats use it for their lines."""

    def __init__(self, original: OriginalIndex, scan: MarkerScan) -> None:
        self._original = original
        self._scan = scan
        self._comments: dict[str, bool] = {}

    def has_marker_lines(self, parts: Sequence[Sequence[SegmentLine]]) -> bool:
        """True if any whole line is a marker or a removal directive."""
        return any(marker is not None for part in parts for marker in self._scan.scan(part))

    def read(self, parts: Sequence[Sequence[SegmentLine]]) -> Snippet:
        """Cut at markers, directives and between parts; drop runs that are all blank lines."""
        splitter = _Splitter()
        num_inline = 0
        for number, part in enumerate(parts):
            if number:
                splitter.cut(None, part[0].number if part else 0)
            for line, marker in zip(part, self._scan.scan(part), strict=True):
                if marker is not None:
                    splitter.cut(marker, line.number, indent=_width_of_indent(line.text))
                elif self._scan.has_inline_marker(line.text):
                    num_inline += 1
                    self._add_inline(splitter, line, is_resolved=num_inline <= MAX_INLINE_MARKERS)
                else:
                    splitter.add(line)
        segments = [self.with_optional(segment) for segment in splitter.finish()]
        self._open_borders(segments)
        return Snippet(format="lazy", segments=tuple(segments), removals=tuple(splitter.removals))

    def with_optional(self, segment: Segment) -> Segment:
        """The segment with its instruction comments marked as optional."""
        filled = [place for place, line in enumerate(segment.lines) if line.text.strip()]
        lines = list(segment.lines)
        for place, after in pairwise([*filled, None]):
            assert place is not None, "only the last place has no line"
            following = None if after is None else lines[after].text
            before = lines[place - 1].text if place else ""
            if self._is_instruction(lines[place].text, before=before, following=following):
                lines[place] = replace(lines[place], is_optional=True)
        return replace(segment, lines=tuple(lines))

    def _is_instruction(self, line: str, *, before: str, following: str | None) -> bool:
        """True for an instruction comment; a continued comment is part of a longer text."""
        if not self._is_comment(line) or self._original.has(line) or self._is_comment(before):
            return False
        is_known = following is not None and self._is_known_code(following)
        return is_instruction(line, is_before_known_code=is_known)

    def _is_comment(self, line: str) -> bool:
        if line not in self._comments:
            self._comments[line] = is_comment(line)
        return self._comments[line]

    def _is_known_code(self, line: str) -> bool:
        """True if the original has `line`, or another line that binds the same name."""
        if self._is_comment(line):
            return False
        return self._original.has(line) or bound_name(line) in self._original.known_names

    def _add_inline(self, splitter: _Splitter, line: SegmentLine, *, is_resolved: bool) -> None:
        marker = find_inline_marker(line.text)
        assert marker is not None, "the line has an inline marker"
        merged = merge_items(marker, self._original) if is_resolved else None
        head = marker.head.strip()
        if merged is not None:
            splitter.add(replace(line, text=merged))
        elif head and (
            not marker.tail or (set(marker.tail) <= _CLOSING_TAIL and self._original.has(head))
        ):
            splitter.add(replace(line, text=marker.head))
            splitter.cut(None, line.number)
        else:
            splitter.add(replace(line, has_inline_marker=True))

    def _open_borders(self, segments: list[Segment]) -> None:
        """Give the outer borders without a marker a gap where the agent forgot a marker."""
        if segments and not segments[0].has_gap_before:
            is_inside = self._is_inside(segments[0])
            segments[0] = replace(segments[0], has_gap_before=is_inside)
        if segments and not segments[-1].has_gap_after:
            is_inside = self._is_inside(segments[-1], is_end=True)
            segments[-1] = replace(segments[-1], has_gap_after=is_inside)

    def _is_inside(self, segment: Segment, *, is_end: bool = False) -> bool:
        """True if a border segment without a marker leaves lines of the original beyond it.

        False if the lines between the segment's border and a line that the original has can replace
        the original's lines there; a segment that shows no such lines replaces none. The outermost
        line in common counts, or any that is unique.
        """
        original = self._original
        texts = [text.strip() for text in segment.texts]
        filled = [text for text in (reversed(texts) if is_end else texts) if text]
        places = original.last_places if is_end else original.first_places
        total = original.num_filled_before
        if not filled:
            return False
        is_lone = self._is_lone_inside(filled[:1], places)
        if self._is_continued(segment, is_end=is_end) and not is_lone:
            return False
        is_outermost = self._is_outermost(filled, segment, is_end=is_end)
        if is_outermost is not None:
            return not is_outermost
        has_anchor = False
        for num_shown, text in enumerate(filled):
            if text not in places or not is_telling(text) or _is_bare_attribute(text):
                continue
            if not has_anchor or original.counts[text] == 1:
                place = places[text]
                num_beyond = total[-1] - total[place + 1] if is_end else total[place]
                can_stand = num_shown and num_beyond <= num_shown + MAX_LOST_AT_BORDER
                lost = original.lines[place + 1 :] if is_end else original.lines[:place]
                if not has_anchor and num_shown and num_beyond and self._is_about_file(lost):
                    return not self._is_comment(filled[0])
                if not num_beyond or (can_stand and self._is_shown(lost, segment)):
                    return False
            has_anchor = True
        if has_anchor or is_lone:
            return True
        names = definition_names(segment.texts)
        return bool(names) and not names.isdisjoint(definition_names(original.lines))

    def _is_outermost(self, shown: Sequence[str], segment: Segment, *, is_end: bool) -> bool | None:
        """True if the update's border line is the file's border line or a variant of it.

        None if it is like no line that says anything. `shown` are the filled lines from the border
        inwards.
        """
        original, text = self._original, shown[0]
        border = len(original.filled) - 1 if is_end else 0
        says_much = is_telling(text) and not _is_bare_attribute(text)
        if not says_much and self._is_deeper(segment, is_end=is_end):
            return False
        if text == original.filled_at(border):
            return not self._is_met_before(shown, is_end=is_end) if says_much else None
        if text in original.counts:
            if original.counts[text] > 1 and not says_much:
                return None
            return False
        rank = original.variant_rank(text)
        return None if rank is None else rank == border

    def _is_deeper(self, segment: Segment, *, is_end: bool) -> bool:
        """True if the update's border line is indented deeper than the file's border line."""
        step = -1 if is_end else 1
        new, old = (
            next(line for line in lines[::step] if line.strip())
            for lines in (segment.texts, self._original.lines)
        )
        return _width_of_indent(new) > _width_of_indent(old)

    def _is_met_before(self, shown: Sequence[str], *, is_end: bool) -> bool:
        """True if the border line also stands nearer to the next unique line."""
        original = self._original
        unique = (text for text in shown[1:] if original.counts[text] == 1 and is_telling(text))
        anchor = next(unique, None)
        if anchor is None:
            return False
        place = original.filled_places[anchor][0]
        met = original.filled_places[shown[0]]
        return len(met) > 1 and (place < met[-2] if is_end else met[1] < place)

    def _is_shown(self, lost: Sequence[str], segment: Segment) -> bool:
        """True if the segment defines every name that these few lines of the original define."""
        return definition_names(lost) <= definition_names(segment.texts)

    def _is_about_file(self, lines: Sequence[str]) -> bool:
        """True if lines describe the file itself; new code does not replace them."""
        said = filter(None, map(str.strip, lines))
        return all(self._is_comment(line) or _DOCSTRING.fullmatch(line) for line in said)

    def _is_lone_inside(self, outermost: Sequence[str], places: Mapping[str, int]) -> bool:
        """True if the border line stands once in the original, and not at its border."""
        original = self._original
        return any(
            original.counts[text] == 1 and text not in (original.filled[0], original.filled[-1])
            for text in outermost
            if text in places
        )

    def _is_continued(self, segment: Segment, *, is_end: bool) -> bool:
        """True if the original ends with the segment's beginning, or begins with its end.

        Behind (before) a marker such a segment adds new lines at the end (start) of the file. Lines
        that say little ("}") must be as deep as those of the original.
        """
        if not (segment.has_gap_before if is_end else segment.has_gap_after):
            return False
        texts, lines = segment.texts, self._original.lines
        shown = _outermost(texts if is_end else reversed(texts))
        filled = _outermost(reversed(lines) if is_end else lines)
        limit = min(len(shown), len(filled))
        return any(shown[:size] == filled[:size][::-1] for size in range(1, limit))


class _Splitter:
    """Collects lines to segments between cuts."""

    def __init__(self) -> None:
        self.removals: list[Removal] = []
        self._segments: list[Segment] = []
        self._run: list[SegmentLine] = []
        self._has_gap_before = False

    def add(self, line: SegmentLine) -> None:
        """Take a line that belongs to the result."""
        self._run.append(line)

    def cut(self, marker: Marker | None, number: int, *, indent: int | None = None) -> None:
        """Make a gap at line `number`, with the marker that stands there if one does."""
        if self._segments and not any(line.text.strip() for line in self._run):
            self._leave(indent)
        self._close(has_gap_after=True, next_indent=indent)
        self._has_gap_before = True
        names = () if marker is None else marker.names
        self.removals += [Removal(name, number, len(self._segments)) for name in names]

    def finish(self) -> list[Segment]:
        """Return all segments; the last run ends with the update."""
        self._close(has_gap_after=False)
        return self._segments

    def _leave(self, indent: int | None) -> None:
        """Note a marker behind another marker.

        Further left, it stands for the code behind the block.
        """
        last = self._segments[-1]
        inner = last.next_indent if last.outer_indent is None else last.outer_indent
        if indent is not None and inner is not None and indent < inner:
            self._segments[-1] = replace(last, outer_indent=indent)

    def _close(self, *, has_gap_after: bool, next_indent: int | None = None) -> None:
        if any(line.text.strip() for line in self._run):
            self._segments.append(
                Segment(
                    lines=tuple(self._run),
                    has_gap_before=self._has_gap_before,
                    has_gap_after=has_gap_after,
                    next_indent=next_indent,
                )
            )
        self._run = []


def _is_bare_attribute(text: str) -> bool:
    """True for `@property` or `[Fact]`, which stand above many definitions."""
    return is_attribute(text) and "'" not in text and '"' not in text


def _outermost(lines: Iterable[str]) -> list[tuple[str, int | None]]:
    """The texts of the first lines, with the depth of each line that says little."""
    filled = islice(filter(str.strip, lines), MAX_CONTINUED)
    return [
        (line.strip(), None if is_telling(line.strip()) else _width_of_indent(line))
        for line in filled
    ]


def _width_of_indent(text: str) -> int:
    """The indentation in columns, as the parser counts them."""
    shown = text.expandtabs()
    return len(shown) - len(shown.lstrip())
