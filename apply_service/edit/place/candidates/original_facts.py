"""What candidates and features ask about a text: its filled lines, definitions, brackets."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from apply_service.edit.place.candidates.filled_lines import FilledLines
from apply_service.edit.place.candidates.line_arrays import LineArrays
from apply_service.edit.syntax.definitions import SymbolTable, find_definitions
from apply_service.edit.syntax.strict_grammars import is_sound
from apply_service.edit.syntax.symbol import Symbol
from apply_service.edit.syntax.syntax import SyntaxTree, parse
from apply_service.edit.text.brackets import BLOCK_OPENERS, balance_of
from apply_service.edit.text.definition_names import definition_name
from apply_service.edit.text.line_index import LineIndex


@dataclass(frozen=True, slots=True)
class Definition:
    """A named part of a text on filled lines [start, end); `header` is the line with its name."""

    name: str
    kind: str
    start: int
    header: int
    end: int


class OriginalFacts(FilledLines):
    """The filled lines of a text with what its syntax tells."""

    def __init__(self, lines: Sequence[str], language: str | None) -> None:
        super().__init__(lines)
        self.all_lines = lines
        self.language = language

    @cached_property
    def arrays(self) -> LineArrays:
        """What features ask about all lines at once."""
        return LineArrays(self)

    @cached_property
    def tree(self) -> SyntaxTree | None:
        """The syntax; None without a grammar."""
        return parse(self.all_lines, self.language)

    @cached_property
    def num_errors(self) -> int:
        """Syntax errors of the text."""
        return len(self.tree.error_lines) if self.tree is not None else 0

    @cached_property
    def _symbols(self) -> Sequence[Symbol]:
        """All that the text defines or imports, by its syntax or else by the look of its lines."""
        return self.tree.symbols if self.tree is not None else find_definitions(self.all_lines)

    @cached_property
    def definitions(self) -> list[Definition]:
        """The definitions, imports left out, in the order of the text."""
        found = []
        for one in self._symbols:
            start, header, end = map(self.place_of, (one.start, one.header, one.end))
            if one.kind != "import" and end > start:
                found.append(Definition(one.name, one.kind, start, header, end))
        return found

    @cached_property
    def _by_header(self) -> tuple[list[int], list[Definition]]:
        """The definitions in the order of their headers, and these headers."""
        ordered = sorted(self.definitions, key=lambda one: one.header)
        return [one.header for one in ordered], ordered

    def defined_in(self, start: int, end: int) -> list[Definition]:
        """The definitions whose header is one of the filled lines [start, end)."""
        headers, ordered = self._by_header
        return ordered[bisect_left(headers, start) : bisect_left(headers, max(start, end))]

    @cached_property
    def definition_starts(self) -> list[int]:
        """Where definitions begin, in order."""
        return sorted(one.start for one in self.definitions)

    @cached_property
    def definition_table(self) -> tuple[SymbolTable, LineIndex]:
        """The definitions by name, and the lines that they stand on, blank ones included."""
        index = LineIndex(self.all_lines)
        return SymbolTable(self._symbols, index), index

    @cached_property
    def names(self) -> Counter[str]:
        """How often each name is defined."""
        return Counter(one.name for one in self.definitions)

    @cached_property
    def name_indents(self) -> dict[str, int]:
        """How deep each name is defined that is defined once."""
        return {
            one.name: self.indents[one.header]
            for one in self.definitions
            if self.names[one.name] == 1
        }

    @cached_property
    def is_sound(self) -> bool | None:
        """Whether the strict grammar of the language takes the text; None if there is none."""
        return is_sound("\n".join(self.all_lines), self.language)

    @cached_property
    def header_names(self) -> dict[int, str]:
        """The name that a line defines, by line."""
        found = {one.header: one.name for one in self.definitions}
        for line, text in enumerate(self.lines):
            name = definition_name(text) if line not in found else None
            if name is not None:
                found[line] = name
        return found

    @cached_property
    def headers_of(self) -> dict[str, list[int]]:
        """The lines that define each name."""
        found: dict[str, list[int]] = {}
        for line, name in self.header_names.items():
            found.setdefault(name, []).append(line)
        return found

    @cached_property
    def definition_at(self) -> dict[int, Definition]:
        """The outermost definition that begins at a line."""
        return {one.start: one for one in reversed(self.definitions)}

    @cached_property
    def definition_ends(self) -> frozenset[int]:
        """Lines before which a definition ends."""
        return frozenset(one.end for one in self.definitions)

    @cached_property
    def depths(self) -> list[int]:
        """Brackets that are open at the border before each line, and at the end."""
        return [0, *accumulate(map(balance, self.stripped))]

    @cached_property
    def _places(self) -> list[int]:
        places, filled = [], 0
        for line in self.all_lines:
            places.append(filled)
            filled += bool(line.strip())
        return [*places, filled]

    def place_of(self, number: int) -> int:
        """The number of filled lines before line `number` of the text."""
        return self._places[number]

    def has_blank_before(self, line: int) -> bool:
        """Whether a blank line (or the border of the text) stands before a filled line."""
        if not 0 < line < len(self):
            return True
        return self.numbers[line] > self.numbers[line - 1] + 1

    def usual_gap(self, indent: int) -> int:
        """Blank lines above most definitions of several lines that are so deep; 0 without any."""
        gaps = self._gaps.get(indent)
        return gaps.most_common(1)[0][0] if gaps else 0

    @cached_property
    def _gaps(self) -> dict[int, Counter[int]]:
        """By depth, how often so many blank lines stand between a definition and what is above."""
        found: dict[int, Counter[int]] = {}
        for one in self.definitions:
            above = one.start - 1
            if above >= 0 and one.end > one.start + 1 and not self.opens(above):
                gap = self.numbers[one.start] - self.numbers[above] - 1
                found.setdefault(self.indents[one.start], Counter())[gap] += 1
        return found

    def opens(self, line: int) -> bool:
        """Whether a block begins behind a filled line."""
        return self.stripped[line].endswith(BLOCK_OPENERS)


def balance(text: str) -> int:
    """Brackets opened less brackets closed, of all kinds together."""
    return sum(balance_of((text,)))
