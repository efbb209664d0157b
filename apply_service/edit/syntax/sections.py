"""Sections that only their headings mark: Markdown chapters, TOML tables."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from apply_service.edit.syntax.symbol import Symbol


def nest_headings(headings: Sequence[Symbol], lines: Sequence[str]) -> list[Symbol]:
    """Markdown headings as sections: each goes on to the next one of its level or above.

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
    """The level of a heading by its signs (`##`), or by what underlines it."""
    text = lines[heading.start].lstrip(" >\t")
    if text.startswith("#"):
        return len(text) - len(text.lstrip("#"))
    return 1 if lines[heading.end - 1].lstrip(" >\t").startswith("=") else 2


def hand_over_comments(symbols: Sequence[Symbol], lines: Sequence[str]) -> list[Symbol]:
    """TOML tables: comment lines that touch the next header belong to the next table."""
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
