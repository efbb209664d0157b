"""Tells which lines of an update are markers, with the help of the lines around them.

One line alone does not tell: a marker may stand in the original as text too, "# remove cache" may
be the comment of the line below it, and `...` is a statement in some languages.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from apply_service.edit.read.markers import Marker, MarkerReader, parse_marker
from apply_service.edit.read.original_index import OriginalIndex
from apply_service.edit.read.removal_notes import RemovalNotes
from apply_service.edit.read.segment import SegmentLine

# Languages where a line of three dots alone says nothing else.
_DOTS_ARE_MARKERS = frozenset(
    {"javascript", "typescript", "tsx", "go", "rust", "java", "c", "cpp", "csharp", "ruby", "php"}
    | {"kotlin", "swift", "scala", "html", "css", "json", "toml", "sql", "bash"}
)


class MarkerScan:
    """Finds the markers of updates of one original in `language` (a canonical name)."""

    def __init__(self, original: OriginalIndex, *, language: str | None = None) -> None:
        self._original = original
        self._reader = MarkerReader(original.lines)
        self._notes = RemovalNotes(original, language=language)
        self._language = language

    def is_marker(self, line: str) -> bool:
        """True if `line` by itself is a marker or a removal directive."""
        return self._read(line) is not None

    def has_inline_marker(self, line: str) -> bool:
        """True if `line` is code that contains a marker."""
        return self._reader.has_inline_marker(line)

    def scan(self, lines: Sequence[SegmentLine]) -> list[Marker | None]:
        """The marker of each line of a lazy update, or None for text."""
        filled = [place for place, line in enumerate(lines) if line.text.strip()]
        markers: list[Marker | None] = [None] * len(lines)
        for rank, place in enumerate(filled):
            text = lines[place].text
            before = lines[filled[rank - 1]].text if rank else None
            after = lines[filled[rank + 1]].text if rank + 1 < len(filled) else None
            marker = self._read_lazy(text)
            if marker is not None and marker.kind == "remove":
                is_next = rank + 1 < len(filled) and filled[rank + 1] == place + 1
                marker = None if is_next and self._is_new_text(after) else marker
            elif marker is None:
                marker = self._read_in_context(text, before, after)
            markers[place] = marker
        cuts = [marker is not None for marker in markers]
        for place, names in self._notes.among([line.text for line in lines], cuts).items():
            markers[place] = Marker("remove", names)
        return markers

    def _read_lazy(self, line: str) -> Marker | None:
        marker = self._read(line)
        if marker is None and self._is_listing(line):
            return Marker("keep")
        return marker

    def _is_listing(self, line: str) -> bool:
        """True for a listing; in Markdown most comments with dots stand in samples of code."""
        is_comment = self._language != "markdown" or line.lstrip().startswith("<!--")
        return is_comment and self._reader.is_listing(line)

    def _read(self, line: str) -> Marker | None:
        has_bare_dots = self._language in _DOTS_ARE_MARKERS
        if has_bare_dots and line.strip() == "..." and not self._original.has(line):
            return Marker("keep")
        return self._reader.read(line)

    def _read_in_context(self, line: str, before: str | None, after: str | None) -> Marker | None:
        """Read a line that is text by itself."""
        marker = parse_marker(line)
        if marker is None:
            return None
        is_alone = self._is_border(before) and self._is_border(after)
        if marker.kind == "remove":
            # Alone between two markers even a name that the original lacks is a directive.
            return marker if is_alone and not self._original.has(line) else None
        # A marker that the original has as text is that text only next to a neighbour of it.
        befores, afters = self._neighbours.get(line.strip(), (set(), set()))
        is_text = (before or "").strip() in befores or (after or "").strip() in afters
        return None if is_text else marker

    def _is_border(self, line: str | None) -> bool:
        return line is None or self._read_lazy(line) is not None

    def _is_new_text(self, line: str | None) -> bool:
        return line is not None and self._read_lazy(line) is None and not self._original.has(line)

    @cached_property
    def _neighbours(self) -> dict[str, tuple[set[str], set[str]]]:
        """The filled lines before and after each marker that stands in the original."""
        neighbours: dict[str, tuple[set[str], set[str]]] = {}
        filled = self._original.filled
        kinds = {text: parse_marker(text) for text in self._original.counts}
        for rank, text in enumerate(filled):
            if kinds[text] is not None:
                befores, afters = neighbours.setdefault(text, (set(), set()))
                befores.add(filled[rank - 1] if rank else "")
                afters.add(filled[rank + 1] if rank + 1 < len(filled) else "")
        return neighbours
