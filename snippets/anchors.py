"""Checks that context lines name exactly one place in a text."""

from __future__ import annotations

from collections.abc import Sequence

from snippets.hunks import EditHunk


class Anchors:
    """Finds blocks of lines in one text. Blank lines anchor nothing by themselves."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = list(lines)
        self._places: dict[str, list[int]] = {}
        for number, line in enumerate(self.lines):
            self._places.setdefault(line, []).append(number)

    def places(self, block: Sequence[str]) -> list[int]:
        """The starts of `block`, in order; none if the block has no text."""
        if not any(line.strip() for line in block):
            return []
        size = len(block)
        wanted = list(block)
        return [p for p in self._places.get(block[0], []) if self.lines[p : p + size] == wanted]

    def is_unique(self, block: Sequence[str]) -> bool:
        """True if `block` stands exactly once in the text."""
        return len(self.places(block)) == 1

    def reach_up(self, border: int, num_lines: int) -> int:
        """The start of a context of `num_lines` lines with text that ends at `border`."""
        start = border
        while num_lines > 0 and border > 0:
            border -= 1
            if self.lines[border].strip():
                start = border
                num_lines -= 1
        return 0 if num_lines > 0 and not border else start

    def reach_down(self, border: int, num_lines: int) -> int:
        """The end of a context of `num_lines` lines with text that starts at `border`."""
        end = border
        while num_lines > 0 and border < len(self.lines):
            border += 1
            if self.lines[border - 1].strip():
                end = border
                num_lines -= 1
        return len(self.lines) if num_lines > 0 and border == len(self.lines) else end


def is_placed(anchors: Anchors, hunk: EditHunk, start: int, end: int) -> bool:
    """True if the context `start:hunk` and `hunk:end` leaves the hunk only one place.

    A border of the text is a place by itself, because no marker stands there.
    """
    lines = anchors.lines
    before, after = lines[start : hunk.old_start], lines[hunk.old_end : end]
    if hunk.is_insertion:
        at_border = start == 0 or end == len(lines)
        return at_border or anchors.is_unique(lines[start:end])
    is_start_fixed = start == 0 or anchors.is_unique(before)
    is_end_fixed = end == len(lines) or anchors.is_unique(after)
    if is_start_fixed and is_end_fixed:
        return True
    if is_start_fixed and after:
        later = [place for place in anchors.places(after) if place >= hunk.old_start]
        return later[:1] == [hunk.old_end]
    if is_end_fixed and before:
        earlier = [p for p in anchors.places(before) if p + len(before) <= hunk.old_end]
        return earlier[-1:] == [start]
    is_renamed_in_place = not before or not after
    return is_renamed_in_place and (is_start_fixed or is_end_fixed)
