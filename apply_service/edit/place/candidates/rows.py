"""A segment as rows: lines to find in the original, lines to write, mostly both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from apply_service.edit.read.segment import Segment, SnippetFormat
from apply_service.edit.text.alignment import small_blocks
from apply_service.edit.text.block_bounds import columns


@dataclass(frozen=True)
class Row:
    """A line of a segment; one that is not written only says what stood there.

    `is_found` rows may stand in the original; `is_optional` ones may be left out. `blank` are the
    blank lines that were sent above it, `tail` is the white space that was sent behind the text.
    """

    text: str
    is_written: bool = True
    is_found: bool = True
    is_optional: bool = False
    blank: tuple[str, ...] = ()
    tail: str = ""

    @property
    def num_blank(self) -> int:
        """Blank lines that were sent above it."""
        return len(self.blank)

    @cached_property
    def stripped(self) -> str:
        """The text without the space around it."""
        return self.text.strip()

    @cached_property
    def indent(self) -> int:
        """The indentation in columns."""
        return columns(self.text)


def rows_of(segment: Segment, snippet_format: SnippetFormat) -> list[Row]:
    """The rows of a segment without its blank lines.

    Lines that the format names as old are rows as well, removed ones before those that come. What
    a fragment replaces is a guess of its reader, so its lines are looked for like others.
    """
    new: list[Row] = []
    blank: list[str] = []
    for line in segment.lines:
        text = line.text.rstrip()
        if not text:
            blank.append(line.text)
            continue
        new.append(
            Row(
                text,
                is_found=segment.old is not None or line.role != "new",
                is_optional=line.is_optional,
                blank=tuple(blank),
                tail=line.text[len(text) :],
            )
        )
        blank = []
    if segment.old is None or snippet_format == "fragment":
        return new
    old = [line.rstrip() for line in segment.old if line.strip()]
    new = [replace(row, is_optional=False) for row in new]
    written = [row.text for row in new]
    rows: list[Row] = []
    old_end = new_end = 0
    for old_start, new_start, length in [*_kept(old, written), (len(old), len(written), 0)]:
        rows += [Row(text, is_written=False) for text in old[old_end:old_start]]
        rows += [replace(row, is_found=False) for row in new[new_end:new_start]]
        rows += new[new_start : new_start + length]
        old_end, new_end = old_start + length, new_start + length
    return rows


def _kept(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, int]]:
    return [(block.old_start, block.new_start, block.length) for block in small_blocks(old, new)]
