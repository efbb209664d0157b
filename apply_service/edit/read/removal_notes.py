"""Notes that agents leave in place of a removed definition: "// handleDelete removed".

Such a sentence may be an ordinary comment as well. It is a note only if each of its names is a
definition of the original that stands between the lines shown above and below the note, and that
the update does not define itself.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Container, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

from apply_service.edit.read.instruction_comments import is_comment
from apply_service.edit.read.marker_phrases import NOUN
from apply_service.edit.read.markers import comment_bodies
from apply_service.edit.read.original_index import OriginalIndex, is_telling
from apply_service.edit.syntax.definitions import SymbolTable, find_definitions
from apply_service.edit.syntax.symbol import Symbol
from apply_service.edit.syntax.syntax import parse, parse_fragment
from apply_service.edit.text.line_index import LineIndex
from apply_service.edit.text.words import IDENTIFIER_PATTERN

MAX_NOTE_LENGTH = 200
MAX_NOTES = 64
MAX_NAMES = 20
# Definitions of one name that are looked at, and lines of a run that tell where it stands.
MAX_SAME_NAME = 64
MAX_LANDMARKS = 32

_QUALIFIED = rf"[`'\"]?[.#@&]?{IDENTIFIER_PATTERN}(?:(?:\.|::?|#|->?)[\w$]+)*[!?]?[`'\"]?"
_SEPARATOR = r"(?:\s*,\s*(?:and\s+)?|\s+and\s+|\s*[&/+]\s*)"
_NAMES = rf"{_QUALIFIED}(?:{_SEPARATOR}{_QUALIFIED}){{0,{MAX_NAMES - 1}}}"
_THING = rf"(?:{NOUN}|endpoints?|(?:sub)?commands?|callbacks?|wrappers?|overloads?|utilit(?:y|ies))"
_KIND = (
    r"(?:(?:the|this|these|both|all|old|unused|entire|whole|async|static)\s+){0,4}"
    rf"(?:{_THING}:?\s+)?"
)
_REASON = (
    r"(?:\s*(?:[-–—,:;(]+\s*)?(?:as\s+|because\s+|since\s+)?"
    r"(?:it(?:'s|\s+is|\s+was)\s+|they\s+(?:are|were)\s+)?"
    r"(?:no\s+longer\s+(?:needed|used)|unused|not\s+used(?:\s+anymore)?|unneeded|dead\s+code|"
    r"obsolete)\)?)?[.!]?"
)
# What is no name but a title: of a test, of a section of a text, the route of a handler.
_TITLE = r"(?:'[^']{1,80}'|\"[^\"]{1,80}\"|`[^`]{1,80}`)"
_ROUTE = r"(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS)\s+/[^\s'\",;]{0,80}"


def _note(names: str) -> re.Pattern[str]:
    """A sentence that asks for the removal of `names`, or reports it."""
    return re.compile(
        r"(?:note\s*:\s*)?(?:(?:remov(?:ed?|es|ing)|delet(?:ed?|es|ing)|drop(?:s|ped|ping)?)"
        rf"(?:\s*[:–—-]\s*|\s+){_KIND}(?P<asked>{names})(?:\s+{_THING})?"
        rf"|{_KIND}(?P<told>{names})(?:\s+{_THING})?(?:\s*[:=–—-]+\s*|\s+)"
        r"(?:(?:is|are|was|were|got|has\s+been|have\s+been)\s+)?(?:now\s+)?"
        r"\(?(?:removed|deleted|dropped|gone)\)?(?:\s+(?:here|entirely|completely|too|from\s+here))?)"
        rf"{_REASON}",
        re.IGNORECASE,
    )


_NOTE = _note(_NAMES)
_TITLE_NOTE = _note(rf"{_TITLE}|{_ROUTE}")
_GONE = re.compile(r"remov|delet|drop|gone", re.IGNORECASE)
_RULES = " -=*~…"
_OUTER_DOTS = re.compile(r"^\.{3,}|\.{3,}$")
_PARAMETERS = re.compile(r"(?<=\w)\([^()]*\)")
_BRACKETS = ("()", "[]", "<>")


def note_names(line: str) -> tuple[str, ...]:
    """Names that a comment line calls removed; none for any other line."""
    stripped = line.strip()
    if len(stripped) > MAX_NOTE_LENGTH or not _GONE.search(stripped) or not is_comment(stripped):
        return ()
    for body, is_spaced in comment_bodies(stripped):
        if not is_spaced:
            continue
        text = _unframed(body)
        match = _TITLE_NOTE.fullmatch(text)
        if match is not None:
            return (_title(match["asked"] or match["told"]),)
        match = _NOTE.fullmatch(text)
        if match is not None:
            names = re.split(_SEPARATOR, match["asked"] or match["told"])
            return tuple(dict.fromkeys(map(_bare, names)))
    return ()


class RemovalNotes:
    """Tells notes from comments, for one original in `language` (a canonical name)."""

    def __init__(self, original: OriginalIndex, *, language: str | None) -> None:
        self._original = original
        self._language = language

    def among(self, texts: Sequence[str], cuts: Sequence[bool]) -> dict[int, tuple[str, ...]]:
        """The names in each note of an update, by the note's place.

        `cuts` says which lines are markers.
        """
        found = (
            (place, names)
            for place, text in enumerate(texts)
            if not cuts[place] and (names := note_names(text)) and not self._original.has(text)
        )
        candidates = dict(islice(found, MAX_NOTES))
        if not candidates:
            return {}
        is_cut = [cut or place in candidates for place, cut in enumerate(cuts)]
        shown = _Shown(self._original, texts, is_cut, language=self._language)
        notes = {
            place: names
            for place, names in candidates.items()
            if all(self._is_gone(name, place, shown) for name in names)
        }
        comments = candidates.keys() - notes.keys()
        return {
            place: names for place, names in notes.items() if shown.is_apart(place, notes, comments)
        }

    @cached_property
    def _table(self) -> SymbolTable:
        lines = self._original.lines
        tree = parse(lines, self._language)
        symbols = find_definitions(lines) if tree is None else tree.symbols
        return SymbolTable(symbols, LineIndex(lines))

    def _is_gone(self, name: str, place: int, shown: _Shown) -> bool:
        return any(
            shown.has_around(symbol, place) and not shown.defines(symbol, self._table.owner(symbol))
            for symbol in self._table.called(name)[:MAX_SAME_NAME]
        )


class _Landmark(NamedTuple):
    """A line of the update with only one place in the original."""

    row: int
    run: int
    place: int


class _Shown:
    """The lines of the original that an update shows, in runs between cuts."""

    def __init__(
        self,
        original: OriginalIndex,
        texts: Sequence[str],
        is_cut: Sequence[bool],
        *,
        language: str | None,
    ) -> None:
        self._original = original
        self._texts = texts
        self._is_cut = is_cut
        self._language = language

    def has_around(self, symbol: Symbol, row: int) -> bool:
        """True if most lines next to line `row`, above and below, are on that side of `symbol`."""
        border = bisect_left(self._landmarks, (row,))
        above = _nearest_run(self._landmarks[max(0, border - MAX_LANDMARKS) : border][::-1])
        below = _nearest_run(self._landmarks[border : border + MAX_LANDMARKS])
        is_below = not above or _lead(above, symbol) > 0
        return is_below and (not below or _lead(below, symbol) < 0)

    def defines(self, symbol: Symbol, owner: str | None) -> bool:
        """True if the update has a definition for `symbol`, or shows its header."""
        owners = self._owners.get(symbol.name)
        if owners is not None:
            return None in owners or owner in owners
        header = self._original.stripped[symbol.header]
        return self._original.counts[header] == 1 and header in self._stripped

    def is_apart(self, row: int, notes: Container[int], comments: Container[int]) -> bool:
        """True if neither a comment goes on in this note nor new code follows it directly.

        Further notes may stand beside it; `comments` only look like notes.
        """
        above, below = row - 1, row + 1
        while above in notes:
            above -= 1
        while below in notes:
            below += 1
        if above in comments or below in comments:
            return False
        is_continued = self._is_new(above) and is_comment(self._texts[above])
        return not is_continued and not self._is_new(below)

    def _is_new(self, row: int) -> bool:
        """True if there is such a line, and the original lacks its text."""
        if not 0 <= row < len(self._texts) or self._is_cut[row]:
            return False
        return bool(self._texts[row].strip()) and not self._original.has(self._texts[row])

    @cached_property
    def _stripped(self) -> frozenset[str]:
        return frozenset(text.strip() for text in self._texts)

    @cached_property
    def _landmarks(self) -> list[_Landmark]:
        landmarks: list[_Landmark] = []
        run = 0
        for row, text in enumerate(self._texts):
            run += self._is_cut[row]
            places = self._original.places.get(text.strip(), ())
            if len(places) == 1 and not self._is_cut[row] and is_telling(text):
                landmarks.append(_Landmark(row, run, places[0]))
        return landmarks

    @cached_property
    def _owners(self) -> dict[str, set[str | None]]:
        """The owners of each name that the update defines, as far as the update shows them."""
        owners: dict[str, set[str | None]] = {}
        for lines in self._runs():
            symbols = parse_fragment(lines, self._language) or find_definitions(lines)
            for symbol in symbols:
                if symbol.kind != "import":
                    owners.setdefault(symbol.name, set()).add(_owner(symbols, symbol))
        return owners

    def _runs(self) -> Iterator[list[str]]:
        run: list[str] = []
        for text, is_cut in zip([*self._texts, ""], [*self._is_cut, True], strict=True):
            if not is_cut:
                run.append(text)
            elif run:
                yield run
                run = []


def _unframed(body: str) -> str:
    """The text of a comment without rules, dots and brackets around it, and without parameters."""
    text = _without_rules(_PARAMETERS.sub("", " ".join(body.split())))
    if text[:1] + text[-1:] in _BRACKETS:
        text = _without_rules(text[1:-1])
    return text


def _without_rules(text: str) -> str:
    return _OUTER_DOTS.sub("", text.strip(_RULES)).strip(_RULES)


def _title(shown: str) -> str:
    """A title without its quotes; for a route its method and path, as symbols have them."""
    title = shown[1:-1] if shown[0] in "'\"`" else shown
    method, _, path = title.partition(" ")
    is_route = re.fullmatch(_ROUTE, title, re.IGNORECASE) is not None
    return f"{method.lower()} {path.strip()}" if is_route else title


def _bare(name: str) -> str:
    return name.strip("`'\"").replace("->", ".")


def _owner(symbols: Sequence[Symbol], symbol: Symbol) -> str | None:
    return None if symbol.parent is None else symbols[symbol.parent].name


def _lead(places: Sequence[int], symbol: Symbol) -> int:
    """Number of the places before the definition minus the number after it."""
    num_before = sum(place < symbol.start for place in places)
    return num_before - sum(place >= symbol.end for place in places)


def _nearest_run(landmarks: Sequence[_Landmark]) -> list[int]:
    """Places of the landmarks in the same run as the first one."""
    return [mark.place for mark in landmarks if mark.run == landmarks[0].run]
