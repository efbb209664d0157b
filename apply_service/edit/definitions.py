"""The definitions of an original and of a segment, and which of them are the same one."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from apply_service.edit.definition_names import WORD, definition_name
from apply_service.edit.line_index import LineIndex, indent_of
from apply_service.edit.runs import REPEATED_SHARE, Run
from apply_service.edit.similarity import Similarity
from apply_service.edit.symbol import Symbol

# Evidence in a definition of the same name, on top of the lines that are equal.
DEFINITION_WEIGHT = 5.0
CONSTANT_WEIGHT = 1.0
# A last line more alike than this to one in the middle shows that the definition goes on.
MIN_CUT_SIMILARITY = 0.5
MAX_SAME_NAME = 16
# Definitions of one name that are compared with one of the segment.
MAX_LOOKED_AT = 64
# Names that are looked for in all lines, as no definition that the parser saw has them.
MAX_LOOKED_FOR = 64
_CLOSING = (")", "]", "}", "end", "fi", "done", "esac")
_ATTRIBUTES = ("@", "#[", "[")
_LEADING = ("@", "#", "//", "/*", "*", "--", "[", "<!--")
# A new definition with this share of the lines of an old one may be that one under another name.
MIN_KIN_SHARE = 0.4
_SAID = re.compile(r"(?:#(?!\[)|//|/\*|\*|--|<!--|\"\"\"|''')|[@#\[].*['\"]\S")
BLOCKS = frozenset({"function", "class", "other"})
_NOT_BLOCKS = frozenset({"key", "import", "section"})


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
        symbols.append(
            Symbol(
                name=name,
                kind="other",
                start=_start_of(lines, header),
                header=header,
                end=_end_of(lines, header),
                parent=open_places[-1] if open_places else None,
            )
        )
        open_places.append(len(symbols) - 1)
    return tuple(symbols)


def _start_of(lines: Sequence[str], header: int) -> int:
    """The first line of the comments and attributes directly above."""
    indent = indent_of(lines[header])
    start = header
    while start > 0 and lines[start - 1].strip() and indent_of(lines[start - 1]) >= indent:
        if not lines[start - 1].strip().startswith(_LEADING):
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
        is_closing = indent == depth and text.startswith(_CLOSING)
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
        self._headers = sorted((symbol.header, place) for place, symbol in enumerate(symbols))
        self._known_by_look: dict[str, bool] = {}
        self._by_name: dict[str, list[int]] = {}
        for place, symbol in enumerate(symbols):
            self._by_name.setdefault(symbol.name, []).append(place)

    def named(self, name: str) -> list[Symbol]:
        """All definitions of this name, in order."""
        return [self.symbols[place] for place in self._by_name.get(name, ())]

    def owner(self, symbol: Symbol) -> str | None:
        """The name of the definition around `symbol`."""
        return self.symbols[symbol.parent].name if symbol.parent is not None else None

    def around(self, start: int, end: int) -> list[Symbol]:
        """The definitions that hold lines `[start, end)`, outer before inner."""
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

    def runs(self, fragment: Sequence[Symbol], texts: Sequence[str]) -> list[Run]:
        """A run for each definition of a segment, and each one of its name.

        Of a definition that is cut off that is its header. A name that the segment defines again
        and again says nothing of a place.
        """
        runs: list[Run] = []
        num_named = Counter(symbol.name for symbol in fragment)
        for symbol in fragment:
            if symbol.kind in _NOT_BLOCKS:
                continue
            if num_named[symbol.name] > MAX_LOOKED_AT:
                continue
            owners = self._owners(fragment, symbol)
            named = self._by_name.get(symbol.name, [])[:MAX_LOOKED_AT]
            matches = [
                self.symbols[place]
                for place in named
                if self._fits(self.symbols[place], symbol, owners)
            ][:MAX_SAME_NAME]
            for old in matches:
                if not symbol.is_complete:
                    runs.extend(self._header_runs(symbol, old, texts))
                elif not self._is_cut(symbol, old, texts):
                    runs.extend(self._variants(symbol, old, texts))
        return runs

    def new_rows(self, fragment: Sequence[Symbol], texts: Sequence[str]) -> set[int]:
        """The lines of the definitions that a segment adds, with what stands above each.

        Such a definition is whole, nothing has its name, and it is not like an old one, as one
        that gets another name would be.
        """
        rows: set[int] = set()
        cut = sorted(symbol.header for symbol in fragment if not symbol.is_complete)
        for symbol in fragment:
            is_whole = bisect_left(cut, symbol.header) == bisect_left(cut, symbol.end)
            is_new = is_whole and symbol.kind in BLOCKS and not self._is_known(symbol.name)
            if is_new and not self._has_kin(symbol, texts):
                has_lead = texts[symbol.start].strip().startswith(_LEADING)
                rows.update(range(symbol.start if has_lead else symbol.header, symbol.end))
        return rows

    def _is_known(self, name: str) -> bool:
        """Whether a definition has this name, if only by the look of its line.

        Only so many names are looked for; all others pass for known.
        """
        if self._by_name.get(name) or name not in self._words:
            return name in self._by_name
        known = self._known_by_look.get(name)
        if known is None:
            known = len(self._known_by_look) >= MAX_LOOKED_FOR or any(
                name in line and definition_name(line) == name for line in self._index.lines
            )
            self._known_by_look[name] = known
        return known

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(word for line in self._index.lines for word in WORD.findall(line))

    def splits(self, place: int, lines: Sequence[str]) -> bool:
        """Whether `lines`, put before line `place`, take the attributes of the definition there."""
        last = next((text.strip() for text in reversed(lines) if text.strip()), "")
        above = self._index.stripped[place - 1] if place else ""
        if not above.startswith(_ATTRIBUTES) or last.startswith(_ATTRIBUTES):
            return False
        holder = self._holders[place - 1]
        if holder is None:
            return False
        symbol = self.symbols[holder]
        return symbol.start < place <= symbol.header and any(map(definition_name, lines))

    def _has_kin(self, new: Symbol, texts: Sequence[str]) -> bool:
        """Whether an old definition has many lines of `new`, or its header, or alone what it says.

        That is a comment, or an attribute with a text of its own (not "@property").
        """
        if self._index.places(texts[new.header].strip()):
            return True
        for text in map(str.strip, texts[new.start : new.end]):
            is_said = _SAID.match(text) and self._index.fullness(text) >= 1.0
            if is_said and len(self._index.places(text)) == 1:
                return True
        stripped = {text.strip() for text in texts[new.header + 1 : new.end]}
        shown = [text for text in stripped if self._index.fullness(text) >= 1.0]
        holders = Counter(
            holder
            for text in shown
            for holder in {self._holders[row] for row in self._index.places(text)[:MAX_LOOKED_AT]}
            if holder is not None
        )
        return bool(shown) and max(holders.values(), default=0) >= MIN_KIN_SHARE * len(shown)

    @cached_property
    def _holders(self) -> list[int | None]:
        """For each line of the original the innermost function or class around it."""
        holders: list[int | None] = [None] * len(self._index)
        for place, symbol in enumerate(self.symbols):
            if symbol.kind in BLOCKS:
                holders[symbol.start : symbol.end] = [place] * (symbol.end - symbol.start)
        return holders

    def _is_cut(self, new: Symbol, old: Symbol, texts: Sequence[str]) -> bool:
        """Whether the segment's definition ends with a line from the middle of the old one."""
        last = next(text for row in range(new.end - 1, -1, -1) if (text := texts[row].strip()))
        *inner, old_last = [text for text in self._index.stripped[old.header : old.end] if text]
        if last == old_last:
            return False
        closest = max((self._similarity.ratio(line, last) for line in inner[1:]), default=0.0)
        return closest > max(MIN_CUT_SIMILARITY, self._similarity.ratio(old_last, last))

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
        if new.kind not in ("function", "class", "other") and (old.parent is not None or owners):
            return False
        old_owners = self._owners(self.symbols, old)
        return old_owners[: len(owners)] == owners

    def _variants(self, new: Symbol, old: Symbol, texts: Sequence[str]) -> list[Run]:
        """From header to end, and, if both have comments or attributes above, from these on."""
        runs = [self._run(new, old, new.header, old.header, texts)]
        if new.start < new.header and old.start < old.header:
            first, old_first = texts[new.start].strip(), self._index.stripped[old.start]
            if first[:2] == old_first[:2]:
                runs.append(self._run(new, old, new.start, old.start, texts))
        return runs

    def _header_runs(self, new: Symbol, old: Symbol, texts: Sequence[str]) -> Iterator[Run]:
        """The header alone, if it differs and is one line in both; what follows is not shown."""
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


def _ends_header(line: str) -> bool:
    """Whether a definition's body begins behind this line."""
    return line.endswith(("{", ":", "do", "=>", ")")) and not line.endswith("({")


def shifted(symbol: Symbol, by: int) -> Symbol:
    """The same symbol in a text with `by` more lines before it."""
    return replace(symbol, start=symbol.start + by, header=symbol.header + by, end=symbol.end + by)
