"""Updates without any marker: a fragment of the file, the whole file, or neither."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from msgspec.structs import replace

from apply_service.edit.read.changed_stretch import ChangedStretch
from apply_service.edit.read.definition_fragment import DefinitionFragment, Replacement
from apply_service.edit.read.original_index import OriginalIndex, is_telling
from apply_service.edit.read.segment import Segment, SegmentLine, Snippet
from apply_service.edit.read.snippet_error import NoMarkerError
from apply_service.edit.syntax.definitions import find_definitions
from apply_service.edit.syntax.syntax import SyntaxTree, parse, parse_fragment
from apply_service.edit.text.alignment import Block, matching_blocks
from apply_service.edit.text.definition_names import definition_name, definition_names
from apply_service.edit.text.indentation import lacks_first_indent, reindented, reindented_by
from apply_service.edit.text.line_index import LineIndex, indent_of
from apply_service.edit.text.words import counted

# The share of the original's filled lines that an update shows in order when it is the whole file.
MIN_WHOLE_SHARE = 0.5
# More lines than these, lost between two adjacent lines of a fragment, want a marker.
MAX_LOST_INSIDE = 10
_MAX_LOST_AT_BORDER = 2


def read_plain(
    lines: Sequence[SegmentLine],
    original: OriginalIndex,
    *,
    language: str | None = None,
    tree: SyntaxTree | None = None,
) -> Snippet:
    """Read an update without markers and in none of the other formats, of a file with text.

    `tree` is the parsed original; without it the original is parsed if `language` has a grammar.
    Raises NoMarkerError.
    """
    view = _Alignment(lines, original)
    segment = Segment(lines=tuple(lines))
    if view.is_nearly_whole():
        return _nearly_whole(segment, view)
    index = LineIndex(original.lines)
    lines = [line for line in lines if not line.is_optional] or lines
    found = _definitions(lines, index, tree or parse(original.lines, language))
    if found and not any(one.is_open for one in found):
        return _replacing(lines, found, index)
    stretch = ChangedStretch([line.text for line in lines], index).find()
    if stretch is not None and stretch.is_certain:
        whole = Replacement(0, len(lines), stretch.start, stretch.end)
        return _replacing(lines, [whole], index)
    if stretch is None and not found:
        _check_place(view, original)
    return Snippet(format="fragment", segments=(segment,))


def _nearly_whole(segment: Segment, view: _Alignment) -> Snippet:
    """Read the update as the whole file; lines missing at a border may stay."""
    has_gaps = view.has_lost_before(), view.has_lost_after()
    segment = replace(segment, has_gap_before=has_gaps[0], has_gap_after=has_gaps[1])
    return Snippet(format="fragment" if any(has_gaps) else "whole", segments=(segment,))


def _replacing(
    lines: Sequence[SegmentLine], found: Sequence[Replacement], index: LineIndex
) -> Snippet:
    """One segment for each replacement, with the lines that it replaces."""
    segments = tuple(_segment(lines, one, index) for one in found)
    return Snippet(format="fragment", segments=segments)


def _check_place(view: _Alignment, original: OriginalIndex) -> None:
    """Raise NoMarkerError if lines inside would be lost, or the place is unknown."""
    lost = view.lost_inside()
    if lost is not None:
        raise NoMarkerError(_lost_message(*lost, original))
    if not view.is_fragment():
        raise NoMarkerError(_unanchored_message(view.num_lines, original))


def _definitions(
    lines: Sequence[SegmentLine], index: LineIndex, tree: SyntaxTree | None
) -> list[Replacement]:
    """The replacements, if the update consists of definitions with certain places."""
    texts = [line.text for line in lines]
    language = None if tree is None else tree.language
    reader = DefinitionFragment(
        texts,
        index,
        symbols=find_definitions(index.lines) if tree is None else tree.symbols,
        shown=find_definitions(texts) if tree is None else parse_fragment(texts, language),
        language=language,
    )
    return reader.replacements()


def _segment(lines: Sequence[SegmentLine], one: Replacement, index: LineIndex) -> Segment:
    """A replacement as a segment, indented as the lines that it replaces."""
    filled = [row for row in range(one.new, one.new_end) if lines[row].text.strip()]
    shown = lines[filled[0] : filled[-1] + 1]
    texts = [line.text for line in shown]
    old = index.lines[one.old : one.old_end]
    written = reindented(texts, old, index)
    indents = indent_of(texts[0]), indent_of(old[0])
    if written == texts and indents[0] != indents[1]:
        moved = texts[:1] if lacks_first_indent(texts, old) else texts
        written = [*reindented_by(moved, dict([indents])), *texts[len(moved) :]]
    return Segment(
        lines=tuple(replace(line, text=text) for line, text in zip(shown, written, strict=True)),
        old=tuple(old),
        old_line_hint=one.old + 1,
    )


class _Alignment:
    """The filled lines of an update, aligned with those of the original."""

    def __init__(self, lines: Sequence[SegmentLine], original: OriginalIndex) -> None:
        self.num_lines = len(lines)
        self._lines = [line for line in lines if line.text.strip()]
        self._texts = [line.text.strip() for line in self._lines]
        self._original = original
        self._places = [place for place, text in enumerate(original.stripped) if text]
        self._old = [original.stripped[place] for place in self._places]
        self._blocks = matching_blocks(self._old, self._texts)

    def is_nearly_whole(self) -> bool:
        """True if the update shows (almost) the whole file, from its first to its last line."""
        num_matched = sum(block.length for block in self._blocks)
        has_borders = self._texts[0] == self._old[0] and self._texts[-1] == self._old[-1]
        num_shown = len(self._texts) if has_borders else num_matched
        if num_shown < MIN_WHOLE_SHARE * len(self._old):
            return False
        return max(self._num_lost_before(), self._num_lost_after()) <= _MAX_LOST_AT_BORDER

    def has_lost_before(self) -> bool:
        """True if the original has more lines at its beginning than the update shows."""
        return self._num_lost_before() > 0

    def has_lost_after(self) -> bool:
        """True if the original has more lines at its end than the update shows."""
        return self._num_lost_after() > 0

    def _num_lost_before(self) -> int:
        first = self._blocks[0]
        return 0 if self._texts[0] == self._old[0] else first.old_start - first.new_start

    def _num_lost_after(self) -> int:
        if self._texts[-1] == self._old[-1]:
            return 0
        last = self._blocks[-1]
        num_shown = len(self._texts) - last.new_start - last.length
        return len(self._old) - last.old_start - last.length - num_shown

    def lost_inside(self) -> tuple[SegmentLine, int] | None:
        """The line of the update before which most lines of the original are lost, if many."""
        anchors = [block for block in self._blocks if self._is_anchor(block)]
        worst: tuple[SegmentLine, int] | None = None
        for left, right in pairwise(anchors):
            num_old = right.old_start - left.old_start - left.length
            num_new = right.new_start - left.new_start - left.length
            num_lost = num_old - num_new
            if num_lost > MAX_LOST_INSIDE + num_new and (worst is None or num_lost > worst[1]):
                worst = (self._lines[right.new_start], num_lost)
        return worst

    def is_fragment(self) -> bool:
        """True if a border has a unique line of the original, or the original defines its name."""
        texts, counts = self._texts, self._original.counts
        for border in (texts, texts[::-1]):
            run: list[str] = []
            for text in border:
                if text not in counts:
                    break
                run.append(text)
            if any(counts[text] == 1 and is_telling(text) for text in run):
                return True
        names = {definition_name(line.text) for line in self._lines[:1]} - {None}
        if names & definition_names(self._original.lines):
            return True
        num_anchors = sum(counts.get(text) == 1 and is_telling(text) for text in texts)
        return num_anchors >= 2 and num_anchors * 2 >= sum(map(is_telling, texts))

    def _is_anchor(self, block: Block) -> bool:
        texts = self._texts[block.new_start : block.new_start + block.length]
        return any(is_telling(text) for text in texts)


def _lost_message(line: SegmentLine, num_lost: int, original: OriginalIndex) -> str:
    return (
        f"the update has no marker, and {num_lost} of the {len(original.lines)} lines of the"
        f" original would be lost just before line {line.number} of the update"
        f" (`{line.text.strip()[:80]}`); add a line `// ... existing code ...` there, in the"
        " comment syntax of the file, or `// remove NAME` for a definition that goes"
    )


def _unanchored_message(num_lines: int, original: OriginalIndex) -> str:
    return (
        f"the update has {counted(num_lines, 'line')} and no marker, the original has"
        f" {counted(len(original.lines), 'line')}, and nothing says where the update begins and"
        " ends in it; add unchanged lines around the change, and a line"
        " `// ... existing code ...`, in the comment syntax of the file, for each part that stays"
    )
