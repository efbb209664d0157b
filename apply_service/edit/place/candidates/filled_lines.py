"""A text without its blank lines: what candidates count in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise

from apply_service.edit.text.block_bounds import columns
from apply_service.edit.text.brackets import BLOCK_OPENERS
from apply_service.edit.text.line_index import indent_of
from apply_service.edit.text.words import WORD
from apply_service.edit.text.work_budget import add_characters

TAB_COLUMNS = 8


class FilledLines:
    """The lines of a text that are not blank, numbered from 0.

    `numbers` are their places among all lines, `indents` their indentation in columns.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        self.num_lines = len(lines)
        self.numbers = [number for number, line in enumerate(lines) if line.strip()]
        self.lines = [lines[number].rstrip() for number in self.numbers]
        self.stripped = [line.strip() for line in self.lines]
        self.indents = [columns(line) for line in self.lines]
        self.counts = Counter(self.stripped)

    def __len__(self) -> int:
        return len(self.lines)

    def span_of(self, start: int, end: int) -> tuple[int, int]:
        """Filled lines [start, end) as a span of all lines; an empty one is before its line."""
        if start == end:
            at = self.numbers[start] if start < len(self) else self.num_lines
            return at, at
        return self.numbers[start], self.numbers[end - 1] + 1

    @cached_property
    def _blocks(self) -> tuple[list[int], list[int]]:
        """For each line where its block ends, and the header of the block around it (-1: none)."""
        ends = [len(self)] * len(self)
        headers: list[int] = []
        open_lines: list[int] = []
        for line, indent in enumerate(self.indents):
            while open_lines and self.indents[open_lines[-1]] >= indent:
                ends[open_lines.pop()] = line
            headers.append(open_lines[-1] if open_lines else -1)
            open_lines.append(line)
        return ends, headers

    @property
    def block_ends(self) -> list[int]:
        """For each line where its block ends: the next line that is not deeper."""
        return self._blocks[0]

    @property
    def block_headers(self) -> list[int]:
        """For each line the header of the block around it; -1 outside of all."""
        return self._blocks[1]

    @cached_property
    def words(self) -> list[frozenset[str]]:
        """The different words of each line."""
        return [words_of(line) for line in self.stripped]

    @cached_property
    def word_counts(self) -> Counter[str]:
        """In how many lines each word stands."""
        return Counter(word for words in self.words for word in words)

    @cached_property
    def full_counts(self) -> Counter[str]:
        """How often each line stands there, indentation included."""
        return Counter(self.lines)

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """Where each line stands, by its text without the space around it."""
        found: dict[str, list[int]] = {}
        for line, text in enumerate(self.stripped):
            found.setdefault(text, []).append(line)
        return found

    @cached_property
    def neighbours(self) -> Counter[tuple[str, str]]:
        """How often each line follows another one."""
        return Counter(pairwise(self.stripped))

    def headers_above(self, line: int) -> set[str]:
        """The headers of all blocks in which a line stands."""
        found: set[str] = set()
        while (line := self.block_headers[line]) >= 0:
            found.add(self.stripped[line])
        return found

    def block_end(self, line: int) -> int:
        """Where the block of a header ends; its opening bracket may stand on a line of its own."""
        end = self.block_ends[line]
        if end == line + 1 < len(self) and self.stripped[end] in BLOCK_OPENERS:
            return self.block_ends[end]
        return end


def words_of(text: str) -> frozenset[str]:
    """The different words of a text."""
    return frozenset(WORD.findall(text))


def moved(line: str, num_columns: int) -> str:
    """A line with more or less indentation; tabs stay tabs where whole ones are added."""
    indent = indent_of(line)
    if num_columns >= 0:
        add_characters(num_columns)
        added = "\t" * (num_columns // TAB_COLUMNS) if "\t" in indent else " " * num_columns
        return added + line
    place = width = 0
    while place < len(indent) and width < -num_columns:
        width += TAB_COLUMNS if indent[place] == "\t" else 1
        place += 1
    return line[place:]
