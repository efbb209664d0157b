"""What removal directives take away: a definition, or a line that stands for a name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from apply_service.edit.definitions import SymbolTable
from apply_service.edit.finding import Finding
from apply_service.edit.line_index import OPENERS, LineIndex
from apply_service.edit.placement import RemovedSpan
from apply_service.edit.segment import Removal

MAX_LISTED = 8
_CLOSERS = ("}", ")", "]", "end")


def removed_span(
    removal: Removal,
    index: LineIndex,
    table: SymbolTable,
    *,
    within: tuple[int, int] | None = None,
) -> tuple[RemovedSpan | None, Finding | None]:
    """The lines that go, and a finding if the name fits none or several things.

    `within` are the lines between the segments around the directive; they decide between things
    of one name.
    """
    spans = _spans(removal.name, index, table)
    if within is not None and len(spans) > 1:
        inside = [span for span in spans if within[0] <= span[0] and span[1] <= within[1]]
        spans = inside or spans
    if not spans:
        return None, _missing(removal, table)
    span = _with_blank_lines(spans[0], index)
    finding = _ambiguous(removal, spans) if len(spans) > 1 else None
    return RemovedSpan(span[0], span[1], removal.name), finding


def _spans(name: str, index: LineIndex, table: SymbolTable) -> list[tuple[int, int]]:
    parts = [part for part in re.split(r"[.:#]+", name) if part]
    last = parts[-1] if parts else name
    symbols = [symbol for symbol in table.named(last) if symbol.kind != "import"]
    owned = [symbol for symbol in symbols if len(parts) > 1 and table.owner(symbol) == parts[-2]]
    named = [symbol for symbol in table.named(name) if symbol.kind != "import"]
    spans = [(symbol.start, symbol.end) for symbol in named or owned or symbols]
    outer = [
        span
        for span in dict.fromkeys(spans)
        if not any(other != span and other[0] <= span[0] and span[1] <= other[1] for other in spans)
    ]
    return outer or _lines_of(last, index)


def _lines_of(name: str, index: LineIndex) -> list[tuple[int, int]]:
    """Single lines that set, list or import the name."""
    word = re.escape(name)
    sets = re.compile(
        rf"(?:export\s+|const\s+|let\s+|var\s+|static\s+|public\s+|private\s+|local\s+)*"
        rf"[\"'$@.-]*{word}[\"']?\s*(?::|=(?!=)|=>|,|$)|(?:import|from|use|#include|require|using)\b"
        rf".*\b{word}\b|-\s+{word}\b|\[{word}\]"
    )
    return [(place, place + 1) for place, text in enumerate(index.stripped) if sets.match(text)]


def _with_blank_lines(span: tuple[int, int], index: LineIndex) -> tuple[int, int]:
    """Of the blank lines before and after, as many go as leave the larger of both counts.

    None stay where a block begins or ends, or the file does.
    """
    start, end = span
    before, after = index.blank_before(start), index.blank_after(end)
    is_last = end + after == len(index) or index.stripped[end + after].startswith(_CLOSERS)
    is_first = start == before or index.stripped[start - before - 1].endswith(OPENERS)
    if is_last:
        return start - before, end
    if is_first:
        return start, end + after
    return start, end + min(before, after)


def _missing(removal: Removal, table: SymbolTable) -> Finding:
    names = list(dict.fromkeys(symbol.name for symbol in table.symbols))[:MAX_LISTED]
    listed = ", ".join(names) or "none"
    return Finding(
        code="removal_not_found",
        severity="error",
        message=f"line {removal.number} of the update removes `{removal.name}`, which nothing"
        " in the original is called",
        hint=f"name a definition of the original (it has: {listed}), or show the lines around it"
        " without it",
        line=removal.number,
    )


def _ambiguous(removal: Removal, spans: Sequence[tuple[int, int]]) -> Finding:
    places = ", ".join(str(start + 1) for start, _ in spans[:MAX_LISTED])
    return Finding(
        code="ambiguous_removal",
        severity="warning",
        message=f"line {removal.number} of the update removes `{removal.name}`, which stands on"
        f" lines {places} of the original",
        hint="write the name with its class in front (`Class.name`), or show the lines around the"
        " one that goes",
        line=removal.number,
    )
