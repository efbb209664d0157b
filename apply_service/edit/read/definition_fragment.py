"""Updates without markers that consist of whole definitions, each replacing the one of its name."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from apply_service.edit.read.original_index import is_telling
from apply_service.edit.syntax.definitions import BLOCKS_OR_RULES, NOT_BLOCKS, SymbolTable
from apply_service.edit.syntax.new_definitions import NewDefinitions
from apply_service.edit.syntax.symbol import Symbol
from apply_service.edit.text.brackets import BLOCK_ENDS, balance_of
from apply_service.edit.text.definition_names import bound_name, is_attribute
from apply_service.edit.text.indentation import lacks_first_indent
from apply_service.edit.text.line_index import LineIndex, indent_of, leaves
from apply_service.edit.text.similarity import MIN_SIMILARITY, Similarity

# A definition that is so many lines shorter than the one it replaces rather lacks a marker.
MAX_LOST = 10
# The share of a class that an update shows when it may mean the whole of it.
MIN_WHOLE_SHARE = 0.5
# The share of a definition's lines that stays in one that ends with another line.
MIN_KEPT_SHARE = 0.5
# Classes in classes that are looked into.
MAX_DEPTH = 8
# Pairs of changed lines that are compared.
MAX_COMPARED = 256
# Where such a sign need not end a definition.
_INDENTED = frozenset({"python", "yaml"})
# Whether a definition is whole no parser tells: bodies of functions are texts to SQL's.
_LOOSE = frozenset({None, "sql"})
_COMMENTS = ("#", "//", "/*", "*", "--", "<!--")


@dataclass(frozen=True, slots=True)
class Replacement:
    """Rows `[new, new_end)` of an update replace lines `[old, old_end)`.

    `is_open` says that the definition may continue behind them.
    """

    new: int
    new_end: int
    old: int
    old_end: int
    is_open: bool = False


class DefinitionFragment:
    """Finds the old lines that the definitions of one update replace; `texts` are its lines.

    `symbols` are the definitions of the original, `shown` those of the update.
    """

    def __init__(
        self,
        texts: Sequence[str],
        index: LineIndex,
        *,
        symbols: Sequence[Symbol],
        shown: Sequence[Symbol],
        language: str | None,
    ) -> None:
        self._texts = texts
        self._stripped = [text.strip() for text in texts]
        self._index = index
        self._symbols = symbols
        self._shown = shown
        self._places = {symbol: place for place, symbol in enumerate(symbols)}
        self._inner = _inner_places(symbols)
        self._shown_inner = _inner_places(shown)
        self._shown_headers = sorted((symbol.header, symbol.name) for symbol in shown)
        self._last_row = max((row for row, text in enumerate(self._stripped) if text), default=-1)
        self._language = language
        self._similarity = Similarity(index.stripped)
        self._table = SymbolTable(symbols, index, self._similarity)
        self._new_rows = NewDefinitions(self._table, index, sent=texts).rows(shown, texts)

    def replacements(self) -> list[Replacement]:
        """All replacements in the order of the update; none if any part has no certain place."""
        found = self._read(None, range(len(self._texts)), frozenset(), depth=0) or []
        spans = sorted((one.old, one.old_end) for one in found)
        return found if all(left[1] <= right[0] for left, right in pairwise(spans)) else []

    def _read(
        self, parent: int | None, rows: range, context: Collection[str], *, depth: int
    ) -> list[Replacement] | None:
        """The replacements directly inside `parent`, or None if any is uncertain.

        Every other line with text on `rows` must be one of `context`. A new definition follows the
        one before it.
        """
        inner = [(place, self._shown[place]) for place in self._shown_inner.get(parent, ())]
        covered = {row for _, symbol in inner for row in range(symbol.start, symbol.end)}
        outside = {self._stripped[row] for row in rows if row not in covered}
        if not outside <= {"", *context}:
            return None
        found: list[Replacement] = []
        before: Symbol | None = None
        for place, symbol in inner:
            matches = self._matches(symbol)
            if len(matches) == 1:
                parts = self._parts(place, matches[0], depth=depth)
                if not parts:
                    return None
                found.extend(parts)
                is_whole = parts[-1].new <= symbol.header < symbol.end == parts[-1].new_end
                before = symbol if is_whole else None
            elif matches or before is None or not self._is_new(symbol, before):
                return None
            else:
                found[-1] = replace(found[-1], new_end=symbol.end)
                before = symbol
        return found

    def _matches(self, new: Symbol) -> Sequence[Symbol]:
        """The old definitions that `new` may be; of several, those with which it shares lines.

        Only lines that stand nowhere else in the original count. A definition with a body does not
        match a mere declaration in an interface.
        """
        found = self._table.matches(self._shown, new)
        matches = [old for old in found if old.kind == new.kind] or found
        if len(matches) > 1 and new.kind == "function":
            is_declared = _is_declaration(self._texts[new.header : new.end])
            lines = self._index.lines
            alike = [
                old
                for old in matches
                if _is_declaration(lines[old.header : old.end]) == is_declared
            ]
            matches = alike or matches
        if len({old.parent for old in matches}) < len(matches):
            return matches
        shown = self._stripped[new.start : new.end]
        stand = [self._index.places(text) for text in shown if is_telling(text)]
        lone = [places[0] for places in stand if len(places) == 1]
        known = [old for old in matches if any(old.start <= place < old.end for place in lone)]
        return known or matches

    def _is_new(self, symbol: Symbol, before: Symbol) -> bool:
        """True if the original has no similar definition and `new` follows `before`, as deep."""
        indents = {indent_of(self._texts[one.header]) for one in (before, symbol)}
        if len(indents) > 1 or any(self._stripped[before.end : symbol.start]):
            return False
        if symbol.kind == "constant":
            return symbol.name not in self._bound
        return symbol.header in self._new_rows

    def _parts(self, place: int, old: Symbol, *, depth: int) -> list[Replacement] | None:
        """The replacements of one definition: all of `old`, or the parts that the update shows."""
        new = self._shown[place]
        if not new.is_complete or not self._is_in_scope(new, old):
            return None
        if not self._is_whole(new, old):
            return self._shown_parts(place, old, depth=depth)
        starts = self._starts(new, old)
        if starts is None:
            return None
        is_open = not self._is_closed(new, old)
        return [Replacement(starts[0], new.end, starts[1], old.end, is_open=is_open)]

    def _is_in_scope(self, new: Symbol, old: Symbol) -> bool:
        """True unless `new` is a local variable of the same name or moved out of a function."""
        line, old_line = self._texts[new.header], self._index.lines[old.header]
        if indent_of(line) != indent_of(old_line):
            is_inner = old.parent is not None and self._symbols[old.parent].kind == "function"
            return new.kind != "constant" and not is_inner
        return new.kind != "constant" or self._num_bound[_binding(old_line)] == 1

    @cached_property
    def _num_bound(self) -> Counter[tuple[str | None, str]]:
        return Counter(map(_binding, self._index.lines))

    @cached_property
    def _bound(self) -> frozenset[str | None]:
        return frozenset(name for name, _ in self._num_bound)

    def _is_whole(self, new: Symbol, old: Symbol) -> bool:
        """True unless something shows that `new` is only a part of the new `old`."""
        texts = self._texts[new.header : new.end]
        old_texts = self._index.lines[old.header : old.end]
        num_new, num_old = self._num_filled(new), self._index.num_filled(old.header, old.end)
        return (
            num_old - num_new <= MAX_LOST
            and (self._language is not None or balance_of(texts) == balance_of(old_texts))
            and self._has_all_inside(new, old)
        )

    def _num_filled(self, symbol: Symbol) -> int:
        return sum(map(bool, self._stripped[symbol.header : symbol.end]))

    def _is_closed(self, new: Symbol, old: Symbol) -> bool:
        """True if the update shows the end of the definition."""
        texts = self._texts[new.header : new.end]
        old_texts = self._index.lines[old.header : old.end]
        old_margin = len(indent_of(old_texts[0]))
        is_first_alone = lacks_first_indent(texts, old_texts)
        shown = _shown(texts, old_margin if is_first_alone else len(indent_of(texts[0])))
        old_shown = _shown(old_texts, old_margin)
        (depth, last), (old_depth, old_last) = shown[-1], old_shown[-1]
        if new.kind == "constant" or shown[-1] == old_shown[-1]:
            return True
        if len(shown) == 1:
            return not last.endswith(":")
        is_end = last[-1] in ";}" and (depth <= 0 or self._language not in _LOOSE)
        is_end |= last.startswith(BLOCK_ENDS) and depth <= 0
        if is_end and self._language not in _INDENTED:
            return True
        if old_shown[-1] in shown and is_telling(old_last):
            return True
        if leaves(last) and 0 < depth == min(depth for depth, _ in shown[1:]):
            return True
        if self._table.is_cut(new, old, self._texts):
            return False
        if depth == old_depth and self._similarity.ratio(old_last, last) >= MIN_SIMILARITY:
            return True
        if not self._is_last(new):
            return True
        known = {text for _, text in shown}
        num_kept = sum(text in known for _, text in old_shown[1:])
        return len(shown) >= len(old_shown) and num_kept >= MIN_KEPT_SHARE * (len(old_shown) - 1)

    def _is_last(self, new: Symbol) -> bool:
        """True if the definition is the last one of the update: only that may break off."""
        return new.end > self._last_row

    def _has_all_inside(self, new: Symbol, old: Symbol) -> bool:
        """True if `new` accounts for all definitions in `old`, and for the lines between them."""
        inner = self._definitions_in(old)
        if not inner:
            return True
        first, last = (
            bisect_left(self._shown_headers, row, key=lambda one: one[0])
            for row in (new.start, new.end)
        )
        names = {name for _, name in self._shown_headers[first:last]}
        if any(symbol.name not in names for symbol in inner):
            return False
        return old.kind == "function" or self._has_lines_between(new, old)

    def _lines_between(self, old: Symbol, start: int) -> list[str]:
        """The lines of an old definition, from `start`, outside its inner definitions."""
        inner = self._definitions_in(old)
        covered = {place for symbol in inner for place in range(symbol.start, symbol.end)}
        places = range(start, old.end)
        return [self._index.stripped[place] for place in places if place not in covered]

    def _definitions_in(self, old: Symbol) -> list[Symbol]:
        """The functions, classes and the like directly inside a definition of the original."""
        places = self._inner.get(self._places[old], ())
        return [
            self._symbols[place] for place in places if self._symbols[place].kind in BLOCKS_OR_RULES
        ]

    def _has_lines_between(self, new: Symbol, old: Symbol) -> bool:
        """True if `new` has the lines between the definitions in `old`, or similar lines."""
        shown = set(filter(None, self._stripped[new.start : new.end]))
        lost = set(self._lines_between(old, old.header)) - {"", *shown}
        added = shown.difference(self._index.stripped[old.start : old.end])
        return len(lost) * len(added) <= MAX_COMPARED and all(
            any(self._similarity.ratio(line, text) >= MIN_SIMILARITY for text in added)
            for line in lost
        )

    def _shown_parts(self, place: int, old: Symbol, *, depth: int) -> list[Replacement] | None:
        """The replacements of inner definitions, if the original has all other lines."""
        new, context = self._shown[place], set(self._lines_between(old, old.start))
        if old.kind == "function" or depth == MAX_DEPTH:
            return None
        found: list[Replacement] = []
        header, old_header = self._stripped[new.header], self._index.stripped[old.header]
        if header != old_header:
            if not header or header[-1] != old_header[-1]:
                return None
            context.add(header)
            found.append(Replacement(new.header, new.header + 1, old.header, old.header + 1))
        parts = self._read(place, range(new.start, new.end), context, depth=depth + 1)
        if not parts:
            return None
        return found + parts

    def _starts(self, new: Symbol, old: Symbol) -> tuple[int, int] | None:
        """The first row and the first line of a replacement, comments above the header included.

        None if attributes there would go that the update does not show.
        """
        lead = self._stripped[new.start : new.header]
        old_lead = self._index.stripped[old.start : old.header]
        if not lead or not old_lead:
            return (new.start if lead else new.header), old.header
        aligned = self._similarity.aligned(old_lead, lead, limit=MAX_COMPARED)
        pairs = [pair for pair in aligned if pair[2] >= MIN_SIMILARITY and lead[pair[1]]]
        if not pairs:
            kinds, old_kinds = ({_is_comment(text) for text in one} for one in (lead, old_lead))
            return (new.start, old.header) if kinds.isdisjoint(old_kinds) else None
        first = pairs[0][0]
        paired = {number for number, _, _ in pairs}
        is_covered = all(
            number in paired or not text or _is_comment(text)
            for number, text in enumerate(old_lead[first:], first)
        )
        return (new.start, old.start + first) if is_covered else None


def _inner_places(symbols: Sequence[Symbol]) -> dict[int | None, list[int]]:
    """Indexes of the definitions directly inside each one; None stands for the whole text."""
    inner: dict[int | None, list[int]] = {}
    for place, symbol in enumerate(symbols):
        if symbol.kind not in NOT_BLOCKS:
            inner.setdefault(symbol.parent, []).append(place)
    return inner


def _shown(lines: Sequence[str], margin: int) -> list[tuple[int, str]]:
    """The lines with text, each with its indentation beyond `margin`."""
    return [(len(indent_of(line)) - margin, line.strip()) for line in lines if line.strip()]


def _is_declaration(lines: Sequence[str]) -> bool:
    """True if a function has no body: `int size();`."""
    text = "".join(lines).rstrip()
    return text.endswith(";") and "{" not in text and "=>" not in text


def _is_comment(text: str) -> bool:
    return text.startswith(_COMMENTS) and not is_attribute(text)


def _binding(line: str) -> tuple[str | None, str]:
    return bound_name(line), indent_of(line)
