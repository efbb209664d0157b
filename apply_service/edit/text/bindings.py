"""Names that lines bind (definitions, variables, imports), and their uses elsewhere.

By the look of single lines: no grammar, any language. No pattern can match a run of spaces in more
than one way, so that a hostile line takes no longer than another of its length.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate

from apply_service.edit.text.definition_names import (
    MAX_LINE_LENGTH,
    MAX_REMEMBERED,
    definition_name,
)
from apply_service.edit.text.line_index import indent_of
from apply_service.edit.text.words import IDENTIFIER, IDENTIFIER_PATTERN, whole_name

# Lines of a block that are looked at around a binding that is not at the margin.
MAX_BLOCK_LINES = 400
# Names that are looked up in one original; any more count as not used.
MAX_NAMES = 256
_MAX_PLACES = 64
# Occurrences that are looked at one by one.
_MAX_COMPARED = 400

_DECLARATION = re.compile(
    r"\s*(?:export\s+|pub(?:\([\w:]{1,40}\))?\s+|static\s+|declare\s+)*(?:const|let|var|val)\s+"
    rf"(?:mut\s+)?(?P<names>{IDENTIFIER_PATTERN}|"
    r"[\[{][^=]{0,300}[\]}])\s*(?::[^=]{0,200})?="
)
_ASSIGNMENT = re.compile(r"(?P<name>[A-Za-z_]\w*)(?::[^=]{1,200})? = ")
_FROM_IMPORT = re.compile(r"\s*from\s+[\w.]+\s+import\s+\(?(?P<names>[^#]*)")
_SCRIPT_IMPORT = re.compile(
    r"\s*(?:import|export)\s+(?:type\s+)?(?P<names>[^'\"\s][^'\"]*?)\sfrom\s*['\"]"
)
_MODULE_IMPORT = re.compile(
    r"\s*(?:pub\s+)?(?:import|use|using)\s+(?:static\s+)?(?P<names>[^'\"#\s][^'\"#]*)"
)
_COMMENT = re.compile(r"#|//")
_REQUIRE = re.compile(r"\s*(?:const|let|var)\s[^=]{1,200}=\s*require\(")
_PART = re.compile(r"[^,{}\[\]()]+")


def bound_names(line: str) -> frozenset[str]:
    """The names that `line` defines, declares or imports, or assigns at the margin."""
    if not line.strip() or len(line) > MAX_LINE_LENGTH:
        return frozenset()
    declared = declared_names(line)
    if declared:
        return declared
    match = _ASSIGNMENT.match(line)
    return frozenset({match["name"]}) if match is not None else frozenset()


def declared_names(line: str) -> frozenset[str]:
    """Names that `line` declares; a block declares each of them only once.

    Mere assignments do not count.
    """
    return _declared_names(line) if len(line) <= MAX_LINE_LENGTH else frozenset()


@lru_cache(MAX_REMEMBERED)
def _declared_names(line: str) -> frozenset[str]:
    if not line.strip():
        return frozenset()
    imported = _FROM_IMPORT.match(line) or _SCRIPT_IMPORT.match(line)
    if imported is not None:
        return frozenset(_aliases(imported["names"]))
    declaration = _DECLARATION.match(line)
    if declaration is not None:
        return frozenset(_targets(declaration["names"]))
    name = definition_name(line)
    if name is not None:
        return frozenset({name})
    names = _module_names(line)
    return frozenset(_modules(names, takes_last=names.endswith((";", "}"))))


def _module_names(line: str) -> str:
    """Names in an import without quotes, up to its comment; nothing for other lines."""
    match = _MODULE_IMPORT.fullmatch(_COMMENT.split(line, maxsplit=1)[0])
    return match["names"].rstrip() if match is not None else ""


def _aliases(names: str) -> Iterator[str]:
    """The last word of each part: `b` of `a as b`, `c` of `type c`."""
    for part in _PART.findall(names):
        words = IDENTIFIER.findall(part)
        if words:
            yield words[-1]


def _targets(names: str) -> Iterator[str]:
    """Names that a pattern binds: `c` of `b: c`, `d` of `...d`, `e` of `e = 1`."""
    for part in _PART.findall(names):
        words = IDENTIFIER.findall(part.partition("=")[0])
        if words:
            yield words[-1]


def _modules(names: str, *, takes_last: bool) -> Iterator[str]:
    """The module name `d` of Rust's `a::d` and Java's `a.b.d`, and `a` of Python's `a.b`."""
    for part in _PART.findall(names):
        words = IDENTIFIER.findall(part)
        if words and words[-1] != "self":
            yield words[-1] if takes_last or " as " in part else words[0]


def is_import_line(line: str) -> bool:
    """True if `line` imports something as a whole."""
    return len(line) <= MAX_LINE_LENGTH and _is_import(line)


@lru_cache(MAX_REMEMBERED)
def _is_import(line: str) -> bool:
    return bool(
        _FROM_IMPORT.match(line)
        or _SCRIPT_IMPORT.match(line)
        or _REQUIRE.match(line)
        or _module_names(line)
    )


class Bindings:
    """Finds on demand where the names of one original are bound and used."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._text: str | None = None
        self._starts: list[int] = []
        self._places: dict[str, tuple[int, ...]] = {}

    def _block_around(self, place: int, depth: int) -> tuple[int, int]:
        """Lines `[start, end)` around `place` that are blank or indented by at least `depth`."""
        if depth == 0:
            return 0, len(self._lines)
        start = end = place
        while start > 0 and place - start < MAX_BLOCK_LINES and self._is_inside(start - 1, depth):
            start -= 1
        last = len(self._lines)
        while end < last and end - place < MAX_BLOCK_LINES and self._is_inside(end, depth):
            end += 1
        return start, end

    def _is_inside(self, place: int, depth: int) -> bool:
        line = self._lines[place]
        return not line.strip() or len(indent_of(line)) >= depth

    def is_used(self, name: str, span: tuple[int, int]) -> bool:
        """True if `name` stands anywhere outside the span."""
        return any(True for _ in self._outside(name, span))

    def is_bound(self, name: str, span: tuple[int, int]) -> bool:
        """True if an unindented line outside the span binds `name`."""
        lines = (self._lines[place] for place in self._outside(name, span))
        return any(not line.startswith((" ", "\t")) and name in bound_names(line) for line in lines)

    def is_declared(self, name: str, span: tuple[int, int], indent: str) -> bool:
        """True if a line in the block around the span declares `name`.

        The declaring line is indented by `indent`.
        """
        declaring = [
            place
            for place in self._outside(name, span)
            if indent_of(self._lines[place]) == indent
            and name in declared_names(self._lines[place])
        ]
        if not declaring:
            return False
        start, end = self._block_around(span[1], len(indent))
        return any(start <= place < end for place in declaring)

    def _outside(self, name: str, span: tuple[int, int]) -> Iterator[int]:
        return (place for place in self._places_of(name) if not span[0] <= place < span[1])

    def _places_of(self, name: str) -> tuple[int, ...]:
        """The first lines on which the whole word stands."""
        known = self._places.get(name)
        if known is not None:
            return known
        if len(self._places) >= MAX_NAMES:
            return ()
        if self._text is None:
            self._text = "\n".join(self._lines)
            self._starts = list(accumulate((len(line) + 1 for line in self._lines), initial=0))
        places: dict[int, None] = {}
        for at in _whole_words(self._text, name):
            places[bisect_right(self._starts, at) - 1] = None
            if len(places) == _MAX_PLACES:
                break
        self._places[name] = tuple(places)
        return self._places[name]


def _whole_words(text: str, name: str) -> Iterator[int]:
    """Places of the whole word; a pattern pays only for names that occur often."""
    if text.count(name) > _MAX_COMPARED:
        yield from (match.start() for match in whole_name(name).finditer(text))
        return
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if not (_goes_on(text[at - 1 : at]) or _goes_on(text[end : end + 1])):
            yield at
        at = text.find(name, at + 1)


def _goes_on(character: str) -> bool:
    """True if this character continues a word; there may be no character."""
    return character.isalnum() or character in ("_", "$")
