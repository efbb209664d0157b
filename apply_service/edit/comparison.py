"""Original, update and result side by side, with what the checks share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise

from apply_service.edit.alignment import Hunk, changed_hunks
from apply_service.edit.blank_lines import GapTable, gaps_of, squeeze
from apply_service.edit.markers import MarkerReader


class Comparison:
    """The three texts with what the checks share, computed on first use."""

    def __init__(
        self,
        original_lines: Sequence[str],
        update_lines: Sequence[str],
        result_lines: Sequence[str],
    ) -> None:
        self.original = list(original_lines)
        self.update = list(update_lines)
        self.result = list(result_lines)
        self.reader = MarkerReader(original_lines)
        self.removed_names: set[str] = set()
        self.segments = self._cut_update()

    def _cut_update(self) -> list[list[tuple[int, str]]]:
        """Non-blank text lines of the update as (number from 1, line), cut at its markers."""
        segments: list[list[tuple[int, str]]] = [[]]
        for number, line in enumerate(self.update, start=1):
            marker = self.reader.read(line)
            if marker is not None and marker.name is not None:
                self.removed_names.add(marker.name.rpartition(".")[2])
            if marker is not None or self.reader.has_inline_marker(line):
                segments.append([])
            elif line.strip():
                segments[-1].append((number, line))
        return segments

    @cached_property
    def snippet(self) -> list[tuple[int, str]]:
        return [numbered for segment in self.segments for numbered in segment]

    @cached_property
    def original_lines(self) -> frozenset[str]:
        return frozenset(self.original)

    @cached_property
    def original_counts(self) -> Counter[str]:
        return Counter(squeeze(line) for line in self.original)

    @cached_property
    def snippet_counts(self) -> Counter[str]:
        return Counter(squeeze(line) for _, line in self.snippet)

    @cached_property
    def result_counts(self) -> Counter[str]:
        return Counter(squeeze(line) for line in self.result)

    @cached_property
    def new_lines(self) -> list[tuple[int, str]]:
        """Lines of the update that the original does not have."""
        return [
            (number, line)
            for number, line in self.snippet
            if squeeze(line) not in self.original_counts
        ]

    @cached_property
    def original_pairs(self) -> set[tuple[str, str]]:
        """Neighbouring filled lines of the original; "" stands for the border of the file."""
        return set(pairwise(["", *filter(None, map(squeeze, self.original)), ""]))

    @cached_property
    def snippet_pairs(self) -> set[tuple[str, str]]:
        """Adjacent lines of the update; "" stands for the border of the file."""
        pairs = {
            (squeeze(left[1]), squeeze(right[1]))
            for segment in self.segments
            for left, right in pairwise(segment)
        }
        if self.segments[0]:
            pairs.add(("", squeeze(self.segments[0][0][1])))
        if self.segments[-1]:
            pairs.add((squeeze(self.segments[-1][-1][1]), ""))
        return pairs

    @cached_property
    def original_gaps(self) -> GapTable:
        """Blank lines in the original."""
        table = GapTable()
        table.add(gaps_of(self.original))
        return table

    @cached_property
    def snippet_gaps(self) -> GapTable:
        """Blank lines in the update; next to a marker they count for their one neighbour.

        None beside a marker says nothing: the original's own may stand there.
        """
        table = GapTable()
        for segment in self.segments:
            if not segment:
                continue
            first, last = segment[0][0], segment[-1][0]
            start = first - self._num_blank(range(first - 2, -1, -1))
            end = last + self._num_blank(range(last, len(self.update)))
            for gap in gaps_of(self.update[start - 1 : end]):
                if gap.left and gap.right:
                    table.add([gap])
                elif gap.num_blank and gap.right:
                    table.before[gap.right].add(gap.num_blank)
                elif gap.num_blank:
                    table.after[gap.left].add(gap.num_blank)
        return table

    def _num_blank(self, places: range) -> int:
        """How many of the update's lines at these places are blank before the first filled one."""
        filled = (count for count, place in enumerate(places) if self.update[place].strip())
        return next(filled, len(places))

    @cached_property
    def hunks(self) -> list[Hunk]:
        return changed_hunks(self.original, self.result)

    def neighbours(self, hunk: Hunk) -> tuple[str, str]:
        """The nearest filled lines of the result around a hunk; "" at the file's border."""
        before = (self.result[place] for place in range(hunk.new_start - 1, -1, -1))
        after = (self.result[place] for place in range(hunk.new_end, len(self.result)))
        return first_filled(before), first_filled(after)


def first_filled(lines: Iterator[str]) -> str:
    return next((squeezed for squeezed in map(squeeze, lines) if squeezed), "")


def shown(line: str) -> str:
    text = squeeze(line)
    return f"`{text[:77]}…`" if len(text) > 78 else f"`{text}`"
