"""Finds the definitions of an original and of a segment, and matches them with each other."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property

from msgspec.structs import replace

from apply_service.edit.syntax.symbol import Symbol
from apply_service.edit.text.brackets import BLOCK_ENDS, BLOCK_OPENERS
from apply_service.edit.text.definition_names import definition_name
from apply_service.edit.text.line_index import LineIndex, indent_of, leaves
from apply_service.edit.text.similarity import Similarity

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

    def matches(self, fragment: Sequence[Symbol], symbol: Symbol) -> list[Symbol]:
        """The old definitions with the name, kind and owners of a segment's `symbol`."""
        owners = self._owners(fragment, symbol)
        named = self._by_name.get(symbol.name, [])[:MAX_LOOKED_AT]
        fitting = (self.symbols[place] for place in named)
        return [old for old in fitting if self._fits(old, symbol, owners)][:MAX_SAME_NAME]

    def is_cut(self, new: Symbol, old: Symbol, texts: Sequence[str]) -> bool:
        """True if the segment's definition ends with a line from the middle of the old one.

        False if the segment goes on behind it.
        """
        if any(map(str.strip, texts[new.end :])):
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


def _parts(name: str) -> list[str]:
    """Split `Server.close`, `Server::close` or `Server#close` into its parts."""
    return [part for part in re.split(r"[.:#]+", name) if part] or [name]


def shifted(symbol: Symbol, by: int) -> Symbol:
    """A symbol moved down by `by` lines."""
    return replace(symbol, start=symbol.start + by, header=symbol.header + by, end=symbol.end + by)
