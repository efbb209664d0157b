"""Features that speak for or against a placement of a lazy segment, as numbers to be weighed."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, filterfalse, islice, takewhile

from apply_service.edit.place.opinion.placement import Placement
from apply_service.edit.place.opinion.placement_change import Change, change_of
from apply_service.edit.syntax.definitions import BLOCKS, SymbolTable
from apply_service.edit.text.bindings import Bindings, bound_names, declared_names, is_import_line
from apply_service.edit.text.brackets import BalanceIndex, balance_of
from apply_service.edit.text.definition_names import (
    MAX_LINE_LENGTH,
    bound_name,
    definition_name,
    is_title,
    unqualified,
)
from apply_service.edit.text.line_index import LineIndex, indent_of
from apply_service.edit.text.word_weights import WordWeights
from apply_service.edit.text.words import IDENTIFIER, WORD_OR_SIGN, begin_alike

# Those that the weight of a placement is made of, in the order of `PlacementFeatures.weighed`.
WEIGHED_FEATURES = (
    # A tenth of the weight by the lines that are equal and alike, and by the borders.
    "evidence",
    # No line with text changes.
    "is_idle",
    # New lines stand at the border, and no marker is missing there.
    "is_open_before",
    "is_open_after",
    # Old lines that go (logarithms): those a new line looks like, the others; at an open border.
    "num_replaced",
    "num_lost_closed",
    "num_lost_open",
    # Lines in the midst of the change that stand on both sides.
    "num_kept",
    # New lines that stand close by as well, alone in the file; or of which a variant stands there.
    "num_moved",
    "num_stale",
    "num_doubled_definitions",
    "is_unbalanced",
    # Old and new lines at an open border: differently indented; how alike they are.
    "num_odd_indents",
    "likeness",
    # New lines go directly before a line that begins with the same word.
    "is_kin_after",
    "more_blanks",
    # Names of lost lines that something still uses (at an open border; elsewhere it tells nothing),
    # and that other segments bind; names that are declared twice.
    "num_dangling",
    "num_superseded",
    "num_redeclared",
    # Added lines that give a value to a name or key that has one beside them.
    "num_reassigned",
    # A blank line stands between the last line and one like it.
    "is_apart_from_kin",
)
# What the trees look at besides, in the order of `PlacementFeatures.further`.
FURTHER_FEATURES = (
    # Of the words of lost lines: the share by weight that added lines lack, and the weight of
    # those that no other segment has either (a logarithm).
    "lost_share",
    "lost_words",
    # Definitions that go and are not named in the segment; those that something else names.
    "num_dropped",
    "num_dropped_used",
    # The same of constants, fields and keys.
    "num_dropped_values",
    # The segment begins with a definition whose name the file lacks.
    "begins_new",
    # A marker stands before the segment, and behind it.
    "has_gap_before",
    "has_gap_after",
)
FEATURES = (*WEIGHED_FEATURES, *FURTHER_FEATURES)
STALE_LINES = 8
MOVED_LINES = 20
ALIKE_SHARE = 0.6
MAX_COMPARED = 24
MAX_SAME_NAME = 16
MAX_DOUBLED = 3
MAX_DROPPED = 4
# Lines of a change that are searched for names, and names that are counted.
MAX_SEARCHED = 40
MAX_NAMES = 3
_MAX_READ = 200
_QUOTED = re.compile(r"(?P<quote>['\"])[^'\"]+(?P=quote)")
_PATH = re.compile(r"[\w.$:/@-]*")
_IMPORT_WORDS = frozenset({"import", "from", "export", "const", "require", "use", "type", "js"})
# `State::Done => …`, `case "a": …`: what a branch is for.
_BRANCH = re.compile(r"(?P<name>case\s.{1,80}?(?=:(?!:)|=>|->)|[^=(]{1,80}=>)")


class LineKinship:
    """Which stripped lines of one request are variants of one another, each pair compared once."""

    def __init__(self) -> None:
        self._words: dict[str, frozenset[str]] = {}
        self._known: dict[str, tuple[set[str], set[str]]] = {}

    def has_alike(self, text: str, others: Sequence[str]) -> bool:
        """Whether one of the others is a variant of `text`."""
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = set(), set()
        alike, different = known
        if not alike.isdisjoint(others):
            return True
        if different.issuperset(others):
            return False
        for other in others:
            if other not in different:
                if self.likeness(text, other) >= ALIKE_SHARE:
                    alike.add(other)
                    return True
                different.add(other)
        return False

    def likeness(self, left: str, right: str) -> float:
        """The share of words and signs in common, from 0 to 1."""
        old, new = self._words_of(left), self._words_of(right)
        return len(old & new) / max(len(old), len(new), 1)

    def _words_of(self, text: str) -> frozenset[str]:
        """What `text` is compared by: of an import the names alone, as all imports are alike."""
        if text not in self._words:
            shown = text[:_MAX_READ]
            words = (
                frozenset(IDENTIFIER.findall(shown)) - _IMPORT_WORDS
                if is_import_line(text)
                else None
            )
            self._words[text] = frozenset(WORD_OR_SIGN.findall(shown)) if words is None else words
        return self._words[text]


class PlacementFeatures:
    """Computes the features of the placements of one segment, given by its lines `core`."""

    def __init__(
        self,
        core: Sequence[str],
        index: LineIndex,
        *,
        table: SymbolTable,
        balances: BalanceIndex,
        bindings: Bindings,
        weights: WordWeights,
        other_lines: Sequence[str],
        is_first: bool,
        is_last: bool,
        defined: Iterable[tuple[str, str]] = (),
        begins_new: bool = False,
        gaps: tuple[bool, bool] = (False, False),
        kinship: LineKinship | None = None,
    ) -> None:
        """`other_lines` are those of the update's other segments.

        `defined` are the names of what the segment defines, each with its header line. `gaps` says
        whether markers stand before and after the segment, `begins_new` whether it begins with a
        definition whose name the file lacks.
        """
        self._index = index
        self._weights = weights
        self._bindings = bindings
        self._bound_elsewhere = frozenset(
            name
            for line in other_lines
            if not line.startswith((" ", "\t"))
            for name in declared_names(line)
        )
        self._used_elsewhere = frozenset(
            word for line in other_lines for word in IDENTIFIER.findall(line[:MAX_LINE_LENGTH])
        )
        self._table = table
        self._balances = balances
        self._balance = balance_of(core)
        self._is_first, self._is_last = is_first, is_last
        self._kinship = kinship or LineKinship()
        self._bound_places: dict[str, tuple[str, str | None]] = {}
        self._words_of_lines: dict[tuple[str, ...], Counter[str]] = {}
        self._declaring: dict[tuple[str, ...], list[tuple[str, str, frozenset[str]]]] = {}
        self._sources: dict[str, str] = {}
        self._bound: dict[tuple[str, ...], list[tuple[str, tuple[str, str | None]]]] = {}
        self._shown: dict[tuple[str, ...], frozenset[tuple[str, int]]] = {}
        self._names_of: dict[str, set[str]] = {}
        for name, header in chain(((definition_name(text), text) for text in core), defined):
            if name is not None:
                self._names_of.setdefault(header.strip(), set()).add(name)
        self._own_names = frozenset(chain.from_iterable(self._names_of.values()))
        self._named = [
            symbol
            for name in sorted(self._own_names)
            for symbol in table.named(name, limit=MAX_SAME_NAME)
        ]
        self._texts = frozenset(text.strip() for text in core)
        self._own_words = frozenset(
            word for text in core for word in IDENTIFIER.findall(text[:MAX_LINE_LENGTH])
        )
        self._constant = (float(begins_new), *map(float, gaps))

    def weighed(self, placement: Placement) -> tuple[float, ...]:
        """The `WEIGHED_FEATURES` of one placement."""
        change = self._change_of(placement)
        is_open_before = not change.has_head and not self._is_first
        is_open_after = not change.has_tail and not self._is_last
        is_open = is_open_before or is_open_after
        num_replaced = self._num_replaced(change)
        num_lost = len(change.lost) - num_replaced
        odd, likeness = self._border_doubts(placement, change, is_open_before, is_open_after)
        dangling, superseded = self._lost_names(placement, change)
        balance = self._balances.of(placement.start, placement.end)
        return (
            placement.weight / 10,
            float(change.is_idle),
            float(is_open_before),
            float(is_open_after),
            math.log1p(num_replaced),
            0.0 if is_open else math.log1p(num_lost),
            math.log1p(len(change.lost)) if is_open else 0.0,
            math.log1p(change.num_kept),
            math.log1p(self._num_moved(placement, change)),
            math.log1p(self._num_stale(placement, change)),
            float(self._num_doubled(placement)),
            float(balance != self._balance),
            float(odd),
            likeness,
            float(is_open_after and self._is_kin_after(placement)),
            float(change.more_blanks),
            float(len(dangling) if is_open else 0),
            float(len(superseded)),
            float(self._num_redeclared(placement, change)),
            float(self._num_reassigned(placement, change)),
            float(is_open_after and self._is_apart_from_kin(placement)),
        )

    def further(self, placement: Placement) -> tuple[float, ...]:
        """The `FURTHER_FEATURES` of one placement."""
        lost_words = self._lost_words(self._change_of(placement))
        return (*lost_words, *self._num_dropped(placement), *self._constant)

    def _change_of(self, placement: Placement) -> Change:
        return change_of(self._index.lines[placement.start : placement.end], placement.lines)

    def _num_dropped(self, placement: Placement) -> tuple[float, float, float]:
        """How many definitions go that the segment does not name; of these, how many are named.

        Last how many values go.
        """
        span = (placement.start, placement.end)
        gone = [
            symbol
            for symbol in self._table.inside(*span, limit=MAX_SEARCHED)
            if not self._mentions(symbol.name)
        ]
        blocks = (symbol.name for symbol in gone if symbol.kind in BLOCKS)
        dropped = list(islice(blocks, MAX_DROPPED))
        values = [symbol.name for symbol in gone if symbol.kind in ("constant", "key")]
        used = [
            name
            for name in map(unqualified, filterfalse(is_title, dropped))
            if name in self._used_elsewhere or self._bindings.is_used(name, span)
        ]
        return float(len(dropped)), float(len(used)), float(min(len(values), MAX_DROPPED))

    def _mentions(self, name: str) -> bool:
        """Whether the segment defines what has this name, or has all words of it."""
        if name in self._own_names:
            return True
        return not is_title(name) and self._own_words.issuperset(IDENTIFIER.findall(name))

    def _lost_words(self, change: Change) -> tuple[float, float]:
        """How much of what lost lines say is gone: as a share, and by weight."""
        if not change.lost:
            return 0.0, 0.0
        lost = self._weights.of_lines(change.lost[:MAX_COMPARED])
        added = self._added_words(change.added[:MAX_COMPARED])
        kept = self._weights.kept_share(lost, added)
        gone = sum(
            self._weights.of(word)
            for word in lost
            if word not in added and word not in self._used_elsewhere
        )
        return 1 - kept, math.log1p(gone)

    def _added_words(self, lines: tuple[str, ...]) -> Counter[str]:
        """The words of lines that mostly are those of another placement too."""
        if lines not in self._words_of_lines:
            self._words_of_lines[lines] = self._weights.of_lines(lines)
        return self._words_of_lines[lines]

    def _num_replaced(self, change: Change) -> int:
        """How many lost lines look like an added one."""
        added = change.added[:MAX_COMPARED]
        return sum(self._kinship.has_alike(text, added) for text in change.lost[:MAX_COMPARED])

    def _outside(self, placement: Placement, size: int) -> list[str]:
        stripped = self._index.stripped
        above = stripped[max(0, placement.start - size) : placement.start]
        return [*above, *stripped[placement.end : placement.end + size]]

    def _num_moved(self, placement: Placement, change: Change) -> int:
        """How many added lines stand beside the placement as well, and nowhere else."""
        if not change.added:
            return 0
        near = set(self._outside(placement, MOVED_LINES))
        return sum(
            self._says_much(text) and len(self._index.places(text)) == 1
            for text in change.added
            if text in near
        )

    def _num_stale(self, placement: Placement, change: Change) -> int:
        """How many added lines have a variant beside the placement, which would stay there."""
        added = list(filter(self._says_much, change.added[:MAX_COMPARED]))
        if not added:
            return 0
        near = [
            text
            for text in self._outside(placement, STALE_LINES)
            if text not in self._texts and self._says_much(text)
        ]
        return sum(self._kinship.has_alike(text, near) for text in added)

    def _says_much(self, text: str) -> bool:
        return self._index.fullness(text) >= 1.0

    def _num_doubled(self, placement: Placement) -> int:
        """How many definitions would stand twice in the block around the placement."""
        doubled = 0
        shown = self._shown_definitions(placement) if self._named else frozenset()
        for symbol in self._named:
            if placement.start <= symbol.header < placement.end:
                continue
            parent = None if symbol.parent is None else self._table.symbols[symbol.parent]
            low, high = (0, len(self._index)) if parent is None else (parent.start, parent.end)
            depth = len(indent_of(self._index.lines[symbol.header]))
            doubled += low < placement.end <= high and (symbol.name, depth) in shown
        return min(doubled, MAX_DOUBLED)

    def _lost_names(
        self, placement: Placement, change: Change
    ) -> tuple[Sequence[str], Sequence[str]]:
        """Names that are left without their binding, and names that other segments bind now."""
        lost = set(self._lost_bindings(placement, change))
        if not lost:
            return (), ()
        lines = set(placement.lines)
        lost.difference_update(*map(bound_names, lines))
        superseded = lost & self._bound_elsewhere
        lost -= superseded
        span = (placement.start, placement.end)
        known = self._used_elsewhere.union(
            word for line in lines for word in IDENTIFIER.findall(line[:MAX_LINE_LENGTH])
        )
        dangling = (
            name
            for name in sorted(lost)
            if (name in known or self._bindings.is_used(name, span))
            and not self._bindings.is_bound(name, span)
        )
        return list(islice(dangling, MAX_NAMES)), list(islice(superseded, MAX_NAMES))

    def _lost_bindings(self, placement: Placement, change: Change) -> Iterator[str]:
        """Names that lost lines at the margin bind, and no line that takes their place."""
        start, end = placement.start + change.num_before, placement.end - change.num_after
        lost = set(change.lost)
        at_margin = [
            line
            for line in self._index.lines[start : min(end, start + MAX_SEARCHED)]
            if not line.startswith((" ", "\t")) and line.strip() in lost
        ]
        if at_margin:
            sources = set(map(self._source_of, change.added[:MAX_COMPARED]))
            for line in at_margin:
                if self._source_of(line) not in sources:
                    yield from bound_names(line)

    def _source_of(self, line: str) -> str:
        """What a line imports from: the first text in quotes, or else its second word."""
        if line not in self._sources:
            quoted = _QUOTED.search(line)
            words = line.split(None, 2)
            match = _PATH.match(words[1]) if quoted is None and words[1:] else quoted
            self._sources[line] = match[0] if match is not None else ""
        return self._sources[line]

    def _num_redeclared(self, placement: Placement, change: Change) -> int:
        """How many names that added lines declare are declared beside the placement too."""
        added = set(change.added)
        redeclared: set[str] = set()
        span = (placement.start, placement.end)
        for text, indent, names in self._declarations(placement.lines[:MAX_SEARCHED]):
            if text in added:
                redeclared.update(
                    name for name in names if self._bindings.is_declared(name, span, indent)
                )
        return min(len(redeclared), MAX_NAMES)

    def _declarations(self, lines: tuple[str, ...]) -> list[tuple[str, str, frozenset[str]]]:
        """Text, indentation and names of the lines that declare any and define nothing."""
        if lines not in self._declaring:
            self._declaring[lines] = [
                (line.strip(), indent_of(line), declared_names(line))
                for line in lines
                if declared_names(line) and definition_name(line) is None
            ]
        return self._declaring[lines]

    def _num_reassigned(self, placement: Placement, change: Change) -> int:
        """How many added lines bind what a line of the same paragraph binds, equally indented."""
        new = set(change.added)
        binding = self._binding(placement.lines[:MAX_SEARCHED])
        added = {bound for text, bound in binding if text in new}
        if not added:
            return 0
        lines = self._index.lines
        above = reversed(lines[max(0, placement.start - STALE_LINES) : placement.start])
        below = lines[placement.end : placement.end + STALE_LINES]
        beside = (line for side in (above, below) for line in takewhile(str.strip, side))
        return min(len(added.intersection(map(self._bound_place, beside))), MAX_NAMES)

    def _binding(self, lines: tuple[str, ...]) -> list[tuple[str, tuple[str, str | None]]]:
        """The lines that bind a name or are a branch, stripped, with what they bind."""
        if lines not in self._bound:
            bound = ((line.strip(), self._bound_place(line)) for line in lines)
            self._bound[lines] = [(text, place) for text, place in bound if place[1] is not None]
        return self._bound[lines]

    def _bound_place(self, line: str) -> tuple[str, str | None]:
        """How far a line is indented, and the name that it binds or what it is the branch for."""
        if line not in self._bound_places:
            branch = _BRANCH.match(line.strip())
            name = bound_name(line) if branch is None else branch["name"]
            self._bound_places[line] = indent_of(line), name
        return self._bound_places[line]

    def _shown_definitions(self, placement: Placement) -> frozenset[tuple[str, int]]:
        """Names that the placed lines define, with their depth."""
        if placement.lines not in self._shown:
            self._shown[placement.lines] = frozenset(
                (name, len(indent_of(text)))
                for text in placement.lines
                for name in self._names_of.get(text.strip(), ())
            )
        return self._shown[placement.lines]

    def _border_doubts(
        self, placement: Placement, change: Change, is_open_before: bool, is_open_after: bool
    ) -> tuple[int, float]:
        """Where lines go at an open border: how many are indented otherwise, and the likeness."""
        if not change.lost:
            return 0, 0.0
        span = range(placement.start, placement.end)
        odd, likeness = 0, 0.0
        for is_open, step in ((is_open_before, 1), (is_open_after, -1)):
            if is_open:
                old = next(self._index.lines[at] for at in span[::step] if self._index.stripped[at])
                new = next(filter(str.strip, placement.lines[::step]))
                odd += indent_of(old) != indent_of(new)
                likeness += self._kinship.likeness(old.strip(), new.strip())
        return odd, likeness

    def _is_kin_after(self, placement: Placement) -> bool:
        """Whether the last line and the one directly below it begin with the same word."""
        below = self._index.stripped[placement.end : placement.end + 1]
        return bool(below) and begin_alike(placement.lines[-1].strip(), below[0])

    def _is_apart_from_kin(self, placement: Placement) -> bool:
        """Whether the last line and the next one with text both import, with a blank between."""
        num_blank = self._index.blank_after(placement.end)
        next_place = placement.end + num_blank
        below = self._index.stripped[next_place : next_place + 1]
        return bool(
            num_blank
            and below
            and is_import_line(placement.lines[-1])
            and "__future__" not in placement.lines[-1]
            and is_import_line(below[0])
        )
