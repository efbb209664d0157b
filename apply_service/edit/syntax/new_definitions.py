"""Finds the definitions that an update adds, even where the original has some of their lines."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cached_property

from apply_service.edit.syntax.definitions import BLOCKS_OR_RULES, LEADING, SymbolTable
from apply_service.edit.syntax.symbol import Symbol
from apply_service.edit.text.definition_names import definition_name, unqualified
from apply_service.edit.text.line_index import LineIndex
from apply_service.edit.text.words import IDENTIFIER, whole_name

# A new definition with this share of the lines of an old one may be that one under another name.
MIN_KIN_SHARE = 0.4
# One line in common is nothing for style rules.
MIN_KIN_LINES = 2
# A key with fewer lines is a value rather than a block.
MIN_KEY_LINES = 3
# Names that are looked for in all lines, as no definition that the parser saw has them.
MAX_LOOKED_FOR = 64
MAX_USES = 64
# Places of one line, of which the definitions around them are looked at.
MAX_PLACES = 64
_SAID = re.compile(r"(?:#(?!\[)|//|/\*|\*|--|<!--|\"\"\"|''')|[@#\[].*['\"]\S")


class NewDefinitions:
    """Tells added definitions of one request's segments from renamed ones."""

    def __init__(
        self,
        table: SymbolTable,
        index: LineIndex,
        sent: Iterable[str] = (),
    ) -> None:
        """`sent` are the lines of the whole update: what it names keeps its name."""
        self._sent = frozenset(map(str.strip, sent))
        self._words = frozenset(word for line in self._sent for word in IDENTIFIER.findall(line))
        self._table = table
        self._index = index
        self._known_by_look: dict[str, bool] = {}

    def rows(self, fragment: Sequence[Symbol], texts: Sequence[str]) -> set[int]:
        """The lines of the definitions that a segment adds, with the comments above each.

        An added definition is whole, the original has no definition of its name, and no old
        definition is so similar that it could have been renamed.
        """
        rows: set[int] = set()
        names = {symbol.name for symbol in fragment}
        cut = sorted(symbol.header for symbol in fragment if not symbol.is_complete)
        for symbol in fragment:
            is_whole = bisect_left(cut, symbol.header) == bisect_left(cut, symbol.end)
            is_new = is_whole and _is_block(symbol) and not self._is_known(symbol.name)
            if is_new and not self._has_kin(symbol, texts, names):
                has_lead = texts[symbol.start].strip().startswith(LEADING)
                start = symbol.start if has_lead else symbol.header
                # What ends the last key of a block may be the old end of the one before it.
                rows.update(range(start, symbol.end - (symbol.kind == "key")))
        return rows

    def _is_known(self, name: str) -> bool:
        """True if a definition has this name, if only by the look of its line.

        Only a limited number of names is looked for; all others count as known.
        """
        if self._table.named(name, limit=1):
            return True
        if name not in self._used_at:
            return False
        known = self._known_by_look.get(name)
        if known is None:
            known = len(self._known_by_look) >= MAX_LOOKED_FOR or any(
                name in line and definition_name(line) == name for line in self._index.lines
            )
            self._known_by_look[name] = known
        return known

    @cached_property
    def _used_at(self) -> dict[str, list[int]]:
        """The first lines, at most `MAX_USES`, that contain a word."""
        found: dict[str, list[int]] = {}
        for place, line in enumerate(self._index.lines):
            for word in IDENTIFIER.findall(line):
                places = found.setdefault(word, [])
                if len(places) < MAX_USES:
                    places.append(place)
        return found

    def _has_kin(self, new: Symbol, texts: Sequence[str], names: Container[str]) -> bool:
        """True if an old definition is so similar that the segment may have renamed it to `new`.

        It is similar if it has the header of `new`, many of its lines, or if the original has just
        once a comment of `new` or an attribute with a text of its own (not "@property"). An old
        definition with one of the `names` that the segment defines is not renamed, nor is one that
        the update names.
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
            for holder in {
                holder
                for row in self._index.places(text)[:MAX_PLACES]
                for holder in self._holders_of(row, new.kind)
            }
        )
        return any(
            count >= max(MIN_KIN_SHARE * len(shown), MIN_KIN_LINES if new.kind == "rule" else 1)
            and (old := self._table.symbols[holder]).name not in names
            and not self._is_needed(old, new)
            for holder, count in holders.items()
        )

    def _is_needed(self, old: Symbol, new: Symbol) -> bool:
        """True if the update names a definition, or code outside of it still uses it.

        Then the definition is probably not `new` under its old name. Test blocks and the like have
        a title that nothing uses.
        """
        if old.kind == "other":
            return False
        names = (old.name, new.name)
        name, new_name = names if old.kind == "rule" else map(unqualified, names)
        if name in self._words:
            return True
        pattern = whole_name(name)
        used = (
            self._index.stripped[place]
            for place in self._used_at.get(name, ())
            if not old.start <= place < old.end
        )
        return any(pattern.sub(lambda _: new_name, line) not in self._sent for line in used)

    def _holders_of(self, row: int, kind: str) -> Iterator[int]:
        """The definitions of this kind around a line of the original; of keys the innermost."""
        holder = self._holders[row]
        while holder is not None:
            if self._table.symbols[holder].kind == kind:
                yield holder
                if kind == "key":
                    return
            holder = self._table.symbols[holder].parent

    @cached_property
    def _holders(self) -> list[int | None]:
        """For each line of the original the innermost function or class around it."""
        holders: list[int | None] = [None] * len(self._index)
        for place, symbol in enumerate(self._table.symbols):
            if _is_block(symbol):
                holders[symbol.start : symbol.end] = [place] * (symbol.end - symbol.start)
        return holders


def _is_block(symbol: Symbol) -> bool:
    """True for a function, a class, a style rule or the like, and for a key over several lines."""
    is_long = symbol.end - symbol.header >= MIN_KEY_LINES
    return symbol.kind in BLOCKS_OR_RULES or (symbol.kind == "key" and is_long)
