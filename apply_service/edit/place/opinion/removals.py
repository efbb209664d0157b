"""Finds the lines that removal directives take away: definitions, or lines for a name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from apply_service.edit.finding import Finding
from apply_service.edit.place.opinion.placement import RemovedSpan
from apply_service.edit.read.instruction_comments import MAX_COMMENT_LENGTH, is_comment
from apply_service.edit.read.markers import comment_bodies
from apply_service.edit.read.segment import Removal, Segment
from apply_service.edit.syntax.definitions import SymbolTable
from apply_service.edit.text.brackets import BLOCK_OPENERS, CLOSERS_OR_END
from apply_service.edit.text.line_index import LineIndex

MAX_LISTED = 8
_REQUEST = re.compile(
    r"\W*(?:please )?(?:remov|delet)(?:e|ed|ing)\b|.* (?:removed|deleted)\W*$", re.IGNORECASE
)


def removed_spans(
    removals: Sequence[Removal],
    index: LineIndex,
    table: SymbolTable,
    *,
    placed: Mapping[int, tuple[int, int]],
) -> tuple[list[RemovedSpan], list[Finding]]:
    """The lines that go, in order, and a finding for each directive that fits none or several.

    `placed` says for each segment which lines give way to it: those around a directive decide
    between things of one name.
    """
    spans: list[RemovedSpan] = []
    findings: dict[int, Finding] = {}
    for removal in removals:
        low = placed.get(removal.before_segment - 1, (0, 0))[1]
        high = placed.get(removal.before_segment, (len(index),))[0]
        found = _spans(removal.name, index, table)
        inside = [span for span in found if low <= span[0] and span[1] <= high]
        found = inside or found
        if len(found) != 1:
            problem = _ambiguous(removal, found) if found else _missing(removal, table)
            findings.setdefault(removal.number, problem)
        spans += [RemovedSpan(start, end, removal.name) for start, end in found[:1]]
    return _with_blank_lines(spans, index), list(findings.values())


def unheard_removals(segments: Iterable[Segment], index: LineIndex) -> Iterator[Finding]:
    """A finding for each new comment, alone between blank lines, that may ask for a removal.

    It was taken for a comment of the file, as it names no definition of the original.
    """
    for segment in segments:
        texts = ["", *(text.strip() for text in segment.texts), ""]
        for line, (above, text, below) in zip(segment.lines, _in_threes(texts), strict=True):
            if above or below or not _asks_for_removal(text) or index.places(text):
                continue
            yield Finding(
                code="ambiguous_removal",
                severity="warning",
                message=f"line {line.number} of the update (`{text[:80]}`) may ask for a removal;"
                " it was kept as a comment of the file",
                hint="to remove a definition, write `// remove NAME`, or send the lines before and"
                " after it with nothing between",
                line=line.number,
            )


def _in_threes(texts: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    return zip(texts, texts[1:], texts[2:], strict=False)


def _asks_for_removal(text: str) -> bool:
    if len(text) > MAX_COMMENT_LENGTH or not is_comment(text):
        return False
    return any(_REQUEST.match(" ".join(body.split())) for body, _ in comment_bodies(text))


def _spans(name: str, index: LineIndex, table: SymbolTable) -> list[tuple[int, int]]:
    *_, last = [part for part in re.split(r"[.:#]+", name) if part] or [name]
    symbols = table.called(name) or table.called(last)
    spans = [(symbol.start, symbol.end) for symbol in symbols]
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


def _with_blank_lines(spans: Sequence[RemovedSpan], index: LineIndex) -> list[RemovedSpan]:
    """The spans in order, with the blank lines that go too: all between neighbours."""
    widened: list[RemovedSpan] = []
    for group in _neighbours(sorted(spans, key=lambda span: (span.start, span.end)), index):
        start, end = _widened(group[0].start, max(span.end for span in group), index)
        borders = [start, *(max(start, span.start) for span in group[1:]), end]
        widened += [
            RemovedSpan(left, right, span.name)
            for span, (left, right) in zip(group, pairwise(borders), strict=True)
        ]
    return widened


def _neighbours(spans: Sequence[RemovedSpan], index: LineIndex) -> list[list[RemovedSpan]]:
    """Spans in groups with nothing but blank lines between them."""
    groups: list[list[RemovedSpan]] = []
    end = 0
    for span in spans:
        if groups and not index.num_filled(end, span.start):
            groups[-1].append(span)
        else:
            groups.append([span])
        end = max(end, span.end)
    return groups


def _widened(start: int, end: int, index: LineIndex) -> tuple[int, int]:
    """Of the blank lines before and after, as many go as leave the larger of both counts.

    None stay where a block begins or ends, or the file does.
    """
    before, after = index.blank_before(start), index.blank_after(end)
    is_last = end + after == len(index) or index.stripped[end + after].startswith(CLOSERS_OR_END)
    is_first = start == before or index.stripped[start - before - 1].endswith(BLOCK_OPENERS)
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
        message=f"line {removal.number} of the update removes `{removal.name}`, but the original"
        f" defines no `{removal.name}`",
        hint=f"name a definition of the original (it has: {listed}), or send the lines before and"
        " after the removed ones with nothing between",
        line=removal.number,
    )


def _ambiguous(removal: Removal, spans: Sequence[tuple[int, int]]) -> Finding:
    places = ", ".join(str(start + 1) for start, _ in spans[:MAX_LISTED])
    return Finding(
        code="ambiguous_removal",
        severity="warning",
        message=f"line {removal.number} of the update removes `{removal.name}`, but the original"
        f" defines it on lines {places}",
        hint="put the class before the name (`Class.name`), or send the lines before and after the"
        " definition that goes",
        line=removal.number,
    )
