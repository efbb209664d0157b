"""A definition in a source file: its name and its lines.

Some languages need more than their grammar says: accessors of Python, sections that only their
headings mark (Markdown chapters, TOML tables).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

_DECORATOR = re.compile(r"\s*@\s*(?P<called>[\w.]+)")


# A large file has a hundred thousand: a struct is made ten times as fast as a frozen dataclass.
class Symbol(msgspec.Struct, frozen=True, gc=False):
    """A named definition on lines `[start, end)`, counted from 0.

    `start` takes in decorators, attributes and the comment that is attached to the definition;
    `header` is the line with the name. `kind` is one of "function", "class", "section", "key",
    "rule", "constant", "import" or "other": what may replace what. `parent` is the index of the
    symbol around it in the same list, None at the top level. `is_complete` is false for a
    definition in a snippet whose body is cut by a marker or by the end of the snippet.
    """

    name: str
    kind: str
    start: int
    header: int
    end: int
    parent: int | None = None
    is_complete: bool = True


def refined(symbols: Sequence[Symbol], lines: Sequence[str], language: str) -> Sequence[Symbol]:
    """The symbols of a whole file, corrected where a grammar alone misleads."""
    if language == "python":
        return _with_accessors_apart(symbols, lines)
    if language == "markdown":
        return _with_headings_nested(symbols, lines)
    return _with_comments_handed_over(symbols, lines) if language == "toml" else symbols


def _with_accessors_apart(symbols: Sequence[Symbol], lines: Sequence[str]) -> list[Symbol]:
    """Name Python's setters by their decorator ("size.setter"); overload stubs are "other".

    So one accessor never replaces another, nor a stub the function that it describes.
    """
    return [
        _told_apart(symbol, lines)
        if symbol.kind == "function" and symbol.start < symbol.header
        else symbol
        for symbol in symbols
    ]


def _told_apart(symbol: Symbol, lines: Sequence[str]) -> Symbol:
    for line in lines[symbol.start : symbol.header]:
        match = _DECORATOR.match(line)
        if match is None:
            continue
        owner, _, called = match["called"].rpartition(".")
        if owner == symbol.name and called in ("setter", "getter", "deleter"):
            return replace(symbol, name=f"{symbol.name}.{called}")
        if called == "overload":
            return replace(symbol, kind="other")
    return symbol


def _with_headings_nested(headings: Sequence[Symbol], lines: Sequence[str]) -> list[Symbol]:
    """Turn Markdown headings into sections that reach to the next heading of their level or above.

    A section ends with its blank lines, because the next heading follows them.
    """
    levels = [_level(heading, lines) for heading in headings]
    parents: list[int | None] = []
    ends = [len(lines)] * len(headings)
    around: list[int] = []
    for place, level in enumerate(levels):
        while around and levels[around[-1]] >= level:
            ends[around.pop()] = headings[place].start
        parents.append(around[-1] if around else None)
        around.append(place)
    return [
        replace(heading, end=end, parent=parent)
        for heading, end, parent in zip(headings, ends, parents, strict=True)
    ]


def _level(heading: Symbol, lines: Sequence[str]) -> int:
    """The level of a heading, from its signs (`##`) or from its underline."""
    text = lines[heading.start].lstrip(" >\t")
    if text.startswith("#"):
        return len(text) - len(text.lstrip("#"))
    return 1 if lines[heading.end - 1].lstrip(" >\t").startswith("=") else 2


def _with_comments_handed_over(symbols: Sequence[Symbol], lines: Sequence[str]) -> list[Symbol]:
    """Give comment lines that touch the next header of a TOML file to the next table."""
    adjusted = list(symbols)
    previous: int | None = None
    for place, symbol in enumerate(symbols):
        if symbol.kind != "section":
            continue
        if previous is not None:
            start = symbol.start
            while start > 0 and lines[start - 1].lstrip().startswith("#"):
                start -= 1
            end = min(adjusted[previous].end, start)
            while end - 1 > adjusted[previous].header and not lines[end - 1].strip():
                end -= 1
            adjusted[previous] = replace(adjusted[previous], end=end)
            adjusted[place] = replace(symbol, start=start)
        previous = place
    return adjusted
