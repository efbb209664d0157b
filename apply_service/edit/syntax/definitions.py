"""Finds the definitions of an original and of a segment, and matches them with each other."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property

from msgspec.structs import replace

from apply_service.edit.syntax.symbol import Symbol
from apply_service.edit.text.block_bounds import columns
from apply_service.edit.text.brackets import BLOCK_ENDS, BLOCK_OPENERS
from apply_service.edit.text.definition_names import bound_name, definition_name, is_attribute
from apply_service.edit.text.line_index import LineIndex, indent_of, leaves
from apply_service.edit.text.runs import REPEATED_SHARE, Run
from apply_service.edit.text.similarity import Similarity

# Evidence in a definition of the same name, on top of the lines that are equal.
DEFINITION_WEIGHT = 5.0
CONSTANT_WEIGHT = 1.0
# A last line more alike than this to one in the middle shows that the definition goes on.
MIN_CUT_SIMILARITY = 0.5
MAX_SAME_NAME = 16
# Definitions of one name that are compared with one of the segment.
MAX_LOOKED_AT = 64
LEADING = ("@", "#", "//", "/*", "*", "--", "[", "<!--")
BLOCKS = frozenset({"function", "class", "other"})
BLOCKS_OR_RULES = BLOCKS | {"rule"}
NOT_BLOCKS = frozenset({"key", "import", "section"})


def find_definitions(lines: Sequence[str]) -> tuple[Symbol, ...]:
    """Definitions by header line and indentation, for languages without a grammar."""
    symbols: list[Symbol] = []
    open_places: list[int] = []
    for header, line in enumerate(lines):
        name = definition_name(line)
        if name is None:
            continue
        while open_places and symbols[open_places[-1]].end <= header:
            open_places.pop()
        end = _end_of(lines, header)
        symbols.append(
            Symbol(
                name=name,
                kind="other",
                start=_start_of(lines, header),
                header=header,
                end=end,
                parent=open_places[-1] if open_places else None,
                is_complete=end < len(lines) or _is_closed(lines, header),
            )
        )
        open_places.append(len(symbols) - 1)
    return tuple(symbols)


def _is_closed(lines: Sequence[str], header: int) -> bool:
    """True if a definition that reaches the last line also ends there."""
    opening, last = lines[header].rstrip()[-1:], lines[-1].strip()
    if opening == ":":
        return header + 1 < len(lines)
    return opening not in BLOCK_OPENERS or last.startswith(BLOCK_ENDS)


def _start_of(lines: Sequence[str], header: int) -> int:
    """The first line of the comments and attributes directly above."""
    indent = indent_of(lines[header])
    start = header
    while start > 0 and lines[start - 1].strip() and indent_of(lines[start - 1]) >= indent:
        if not lines[start - 1].strip().startswith(LEADING):
            break
        start -= 1
    return start


def _end_of(lines: Sequence[str], header: int) -> int:
    depth = len(indent_of(lines[header]))
    end = header + 1
    for place in range(header + 1, len(lines)):
        text = lines[place].strip()
        if not text:
            continue
        indent = len(indent_of(lines[place]))
        if indent > depth:
            end = place + 1
            continue
        is_closing = indent == depth and text.startswith(BLOCK_ENDS)
        is_opening = indent == depth and end == header + 1 and text in ("{", "begin", "do")
        if is_closing or is_opening:
            end = place + 1
            if is_opening or (not text.endswith(("{", ":", "(")) and text[0] in ")]"):
                continue
        break
    return end


class SymbolTable:
    """The definitions of an original by name."""

    def __init__(
        self, symbols: Sequence[Symbol], index: LineIndex, similarity: Similarity | None = None
    ) -> None:
        self.symbols = symbols
        self._similarity = similarity or Similarity()
        self._index = index
        self._by_name: defaultdict[str, list[int]] = defaultdict(list)
        for place, symbol in enumerate(symbols):
            self._by_name[symbol.name].append(place)

    @cached_property
    def _headers(self) -> list[tuple[int, int]]:
        return sorted((symbol.header, place) for place, symbol in enumerate(self.symbols))

    @cached_property
    def _by_last_part(self) -> dict[str, list[Symbol]]:
        by_last_part: dict[str, list[Symbol]] = {}
        for symbol in self.symbols:
            if symbol.kind != "import":
                by_last_part.setdefault(_parts(symbol.name)[-1], []).append(symbol)
        return by_last_part

    def named(self, name: str, *, limit: int | None = None) -> list[Symbol]:
        """The first `limit` definitions of this name, in order."""
        return [self.symbols[place] for place in self._by_name.get(name, [])[:limit]]

    def called(self, name: str) -> list[Symbol]:
        """The definitions that a reader calls `name`, with or without the names of their owners."""
        parts = _parts(name)
        found = self._by_last_part.get(parts[-1], [])
        whole = [symbol for symbol in found if symbol.name == name]
        if whole or len(parts) == 1:
            return whole or found
        return [symbol for symbol in found if self._path(symbol)[-2:] == parts[-2:]]

    def _path(self, symbol: Symbol) -> list[str]:
        owner = self.owner(symbol)
        return [*(_parts(owner) if owner else ()), *_parts(symbol.name)]

    def owner(self, symbol: Symbol) -> str | None:
        """The name of the definition that contains `symbol`."""
        return self.symbols[symbol.parent].name if symbol.parent is not None else None

    def around(self, start: int, end: int) -> list[Symbol]:
        """The definitions that contain lines `[start, end)`, outer before inner."""
        return [symbol for symbol in self.symbols if symbol.start <= start and end <= symbol.end]

    def inside(self, start: int, end: int, *, limit: int | None = None) -> list[Symbol]:
        """The first `limit` definitions that lie wholly in `[start, end)`, in order."""
        first = bisect_left(self._headers, (start, -1))
        last = bisect_left(self._headers, (end, -1))
        found: list[Symbol] = []
        for _, place in self._headers[first:last]:
            if self.symbols[place].end <= end:
                found.append(self.symbols[place])
                if len(found) == limit:
                    break
        return found

    def runs(
        self, fragment: Sequence[Symbol], texts: Sequence[str], *, next_indent: int | None = None
    ) -> list[Run]:
        """One run for each pair of a segment's definition and an original's definition of its name.

        For a definition that is cut off, the run is its header. A name that the segment defines
        repeatedly says nothing about the place. `next_indent` is the number of columns before the
        marker that follows the segment, if one does.
        """
        runs: list[Run] = []
        num_named = Counter(symbol.name for symbol in fragment)
        for symbol in fragment:
            if symbol.kind in NOT_BLOCKS:
                continue
            if num_named[symbol.name] > MAX_LOOKED_AT:
                continue
            for old in self.matches(fragment, symbol):
                if symbol.kind not in BLOCKS and self._is_bound_deeper(symbol, old, texts):
                    continue
                if not symbol.is_complete:
                    runs.extend(self._header_runs(symbol, old, texts))
                elif not self.is_cut(symbol, old, texts, next_indent=next_indent):
                    runs.extend(self._variants(symbol, old, texts))
        return runs

    def _is_bound_deeper(self, new: Symbol, old: Symbol, texts: Sequence[str]) -> bool:
        """True if a value is deeper than the old one and another line binds it at that depth."""
        header, lines = texts[new.header], self._index.lines
        indent = indent_of(header)
        if len(indent) <= len(indent_of(lines[old.header])):
            return False
        name = bound_name(header)
        return name is not None and any(
            name in line and indent_of(line) == indent and bound_name(line) == name
            for line in lines
        )

    def matches(self, fragment: Sequence[Symbol], symbol: Symbol) -> list[Symbol]:
        """The old definitions with the name, kind and owners of a segment's `symbol`."""
        owners = self._owners(fragment, symbol)
        named = self._by_name.get(symbol.name, [])[:MAX_LOOKED_AT]
        fitting = (self.symbols[place] for place in named)
        return [old for old in fitting if self._fits(old, symbol, owners)][:MAX_SAME_NAME]

    def is_cut(
        self,
        new: Symbol,
        old: Symbol,
        texts: Sequence[str],
        *,
        next_indent: int | None = None,
    ) -> bool:
        """True if the segment's definition ends with a line from the middle of the old one.

        False if the segment goes on behind it, or with a marker beside its header.
        """
        if any(map(str.strip, texts[new.end :])):
            return False
        header = texts[new.header]
        if header[:1].isspace() and next_indent == columns(header):
            return False
        last = next(text for row in range(new.end - 1, -1, -1) if (text := texts[row].strip()))
        *inner, old_last = [text for text in self._index.stripped[old.header : old.end] if text]
        if last == old_last or self._is_left(new, texts):
            return False
        closest = max((self._similarity.ratio(line, last) for line in inner[1:]), default=0.0)
        return closest > max(MIN_CUT_SIMILARITY, self._similarity.ratio(old_last, last))

    def _is_left(self, new: Symbol, texts: Sequence[str]) -> bool:
        """True if a definition of the segment ends with a line that leaves the block for good."""
        rows = [row for row in range(new.header + 1, new.end) if texts[row].strip()]
        return (
            bool(rows)
            and leaves(texts[rows[-1]].strip())
            and indent_of(texts[rows[-1]]) == indent_of(texts[rows[0]])
        )

    def _owners(self, symbols: Sequence[Symbol], symbol: Symbol) -> list[str]:
        owners: list[str] = []
        parent = symbol.parent
        while parent is not None:
            owners.append(symbols[parent].name)
            parent = symbols[parent].parent
        return owners

    def _fits(self, old: Symbol, new: Symbol, owners: list[str]) -> bool:
        if old.kind != new.kind and "other" not in (old.kind, new.kind):
            return False
        is_inner = old.parent is not None or bool(owners)
        if new.kind not in BLOCKS and is_inner and len(self._by_name[old.name]) > 1:
            return False
        old_owners = self._owners(self.symbols, old)
        return old_owners[: len(owners)] == owners

    def _variants(self, new: Symbol, old: Symbol, texts: Sequence[str]) -> list[Run]:
        """Runs from header to end, and from the comments or attributes that both have above."""
        runs = [self._run(new, old, new.header, old.header, texts)]
        attribute, old_attribute = _attribute_of(new, texts), _attribute_of(old, self._index.lines)
        if attribute is not None and old_attribute is not None:
            runs.append(self._run(new, old, attribute, old_attribute, texts))
        if new.start < new.header and old.start < old.header:
            first, old_first = texts[new.start].strip(), self._index.stripped[old.start]
            is_other = (new.start, old.start) != (attribute, old_attribute)
            if is_other and first[:2] == old_first[:2]:
                runs.append(self._run(new, old, new.start, old.start, texts))
        return runs

    def _header_runs(self, new: Symbol, old: Symbol, texts: Sequence[str]) -> Iterator[Run]:
        """The header alone, if it differs and is one line in both texts.

        The lines behind the header are not shown.
        """
        row, place = new.header, old.header
        header, old_header = texts[row].strip(), self._index.stripped[place]
        is_block = new.kind in BLOCKS and old.end > place + 1
        if is_block and header != old_header and all(map(_ends_header, (header, old_header))):
            is_exact = indent_of(texts[row]) == indent_of(self._index.lines[place])
            weight = DEFINITION_WEIGHT
            yield Run(row, row + 1, place, place + 1, weight, is_exact, is_definition=True)

    def _run(
        self, new: Symbol, old: Symbol, new_start: int, old_start: int, texts: Sequence[str]
    ) -> Run:
        new_end = new.end
        while new_end > new.header + 1 and not texts[new_end - 1].strip():
            new_end -= 1
        shown = {text.strip() for text in texts[new_start:new_end]}
        equal = {text for text in self._index.stripped[old_start : old.end] if text in shown}
        weights = sorted(map(self._index.weight, equal), reverse=True)
        is_block = new.kind in BLOCKS
        weight = DEFINITION_WEIGHT if is_block else CONSTANT_WEIGHT
        weight += sum(weights[:1]) + REPEATED_SHARE * sum(weights[1:])
        is_exact = indent_of(texts[new.header]) == indent_of(self._index.lines[old.header])
        last = self._index.stripped[old.end - 1]
        return Run(
            new_start,
            new_end,
            old_start,
            old.end,
            weight,
            is_exact,
            is_definition=True,
            is_closed=texts[new_end - 1].strip() == last,
        )


def _parts(name: str) -> list[str]:
    """Split `Server.close`, `Server::close` or `Server#close` into its parts."""
    return [part for part in re.split(r"[.:#]+", name) if part] or [name]


def _attribute_of(symbol: Symbol, texts: Sequence[str]) -> int | None:
    """The first attribute or decorator above the header of a definition."""
    above = range(symbol.start, symbol.header)
    return next((row for row in above if is_attribute(texts[row])), None)


def _ends_header(line: str) -> bool:
    """True if a definition's body begins behind this line."""
    return line.endswith(("{", ":", "do", "=>", ")")) and not line.endswith("({")


def shifted(symbol: Symbol, by: int) -> Symbol:
    """A symbol moved down by `by` lines."""
    return replace(symbol, start=symbol.start + by, header=symbol.header + by, end=symbol.end + by)
