"""The findings of a merge plan, each with a hint that a model can act on."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest

from rapidfuzz.distance import Indel
from rapidfuzz.process import extractOne

from apply_service.edit.finding import Finding
from apply_service.edit.place.opinion.placement import Placement
from apply_service.edit.read.segment import Segment, Snippet
from apply_service.edit.syntax.symbol import Symbol
from apply_service.edit.text.line_index import LineIndex
from apply_service.edit.text.similarity import MAX_COMPARED_CHARS
from apply_service.edit.text.words import IDENTIFIER

MAX_LISTED = 8
MAX_SHOWN_CHARS = 80
# Lines of the original that are compared to find the nearest one.
MAX_NEAREST = 4000
# Those with the most words in common are compared letter by letter, which takes long.
MAX_SPELLED = 64
MIN_CLOSENESS = 0.5
_MARKER = "a line `// ... existing code ...` (in the comment syntax of the file)"


def ambiguous_place(segment: Segment, places: Sequence[int], index: LineIndex) -> Finding:
    """Several places fit a segment about as well; `places` are lines from 0."""
    numbers = [str(place + 1) for place in places[:MAX_LISTED]]
    listed = numbers[0] if len(numbers) == 1 else ", ".join(numbers[:-1]) + " or " + numbers[-1]
    above = [
        f"`{index.stripped[place - 1][:MAX_SHOWN_CHARS]}`"
        for place in places[:3]
        if place > 0 and index.stripped[place - 1]
    ]
    hint = f"add the unchanged line before its place (line {listed} of the original)"
    if above:
        hint += f": {' or '.join(above)}"
    return Finding(
        code="ambiguous_place",
        severity="warning",
        message=f"line {_number(segment)} of the update (`{_shown(segment)}`) may belong at line"
        f" {listed} of the original",
        hint=hint,
        line=places[0] + 1,
    )


def border_unclear(segment: Segment) -> Finding:
    """An update without markers lacks a part of the lines it shows: forgotten or removed?"""
    sides = ("first", segment.has_gap_before), ("last", segment.has_gap_after)
    named = " and ".join(name for name, is_missing in sides if is_missing)
    what = (
        "a part of a definition; the other lines of the definition may stay or go"
        if segment.is_rest_unclear
        else f"nearly the whole file; the {named} lines that it leaves out may stay or go"
    )
    return Finding(
        code="border_unclear",
        severity="warning",
        message=f"the update has no marker and shows {what}",
        hint=f"send all lines, or add {_MARKER} where lines stay, or `// remove NAME` where a"
        " definition goes",
        line=_number(segment) if segment.has_gap_before else segment.lines[-1].number,
    )


def few_left_out(segment: Segment, num_lines: int, *, is_end: bool) -> Finding:
    """An update leaves out a few lines at a border of the file, and no marker stands there."""
    lines = "line" if num_lines == 1 else f"{num_lines} lines"
    return Finding(
        code="border_unclear",
        severity="warning",
        message=f"the update leaves out the {'last' if is_end else 'first'} {lines} of the"
        f" original and has no marker at its {'end' if is_end else 'beginning'}; the"
        f" {'line' if num_lines == 1 else 'lines'} may stay or go",
        hint=f"to keep the rest, add {_MARKER} {'at the end' if is_end else 'at the beginning'};"
        " to remove it, name it in `// remove NAME`",
        line=segment.lines[-1].number if is_end else _number(segment),
    )


def place_guessed(segment: Segment, placement: Placement, index: LineIndex) -> Finding:
    """No line of the segment stands in the original."""
    before = index.stripped[placement.start - 1] if placement.start > 0 else ""
    return Finding(
        code="place_guessed",
        severity="warning",
        message=f"the original does not say where line {_number(segment)} of the update"
        f" (`{_shown(segment)}`) belongs; it was put at line {placement.start + 1}",
        hint="add the unchanged line before or after it"
        + (f" (it now follows `{before[:MAX_SHOWN_CHARS]}`)" if before else ""),
        line=placement.start + 1,
    )


def anchor_not_found(segment: Segment, index: LineIndex, symbols: Sequence[Symbol]) -> Finding:
    """The lines that a segment wants to replace do not stand in the original."""
    wanted = [text.strip() for text in segment.old or segment.texts if text.strip()]
    missing = next((text for text in wanted if not index.places(text)), wanted[0])
    hint = "copy the old lines exactly from the original"
    nearest = _nearest(missing, index)
    if nearest is not None:
        text = index.stripped[nearest][:MAX_SHOWN_CHARS]
        hint += f"; the nearest line is line {nearest + 1}: `{text}`"
    names = list(dict.fromkeys(symbol.name for symbol in symbols))[:MAX_LISTED]
    if names:
        hint += f"; the original defines {', '.join(names)}"
    return Finding(
        code="anchor_not_found",
        severity="error",
        message=f"line {_number(segment)} of the update replaces `{missing[:MAX_SHOWN_CHARS]}` and"
        " the lines around it, but the original does not have them",
        hint=hint,
        line=None if nearest is None else nearest + 1,
    )


def no_common_order(snippet: Snippet) -> Finding:
    """Each segment has a place, but not all together."""
    first = snippet.segments[0]
    return Finding(
        code="contradicting_segments",
        severity="error",
        message=f"the {len(snippet.segments)} parts of the update, from line {_number(first)} on,"
        " exclude each other: they claim the same lines of the original or contradict its order",
        hint="send one part for each place, in the order of the file, and each definition once",
    )


def too_many_segments(num_segments: int, limit: int) -> Finding:
    """More parts than a merge by rules is planned for."""
    return Finding(
        code="too_many_segments",
        severity="error",
        message=f"the update has {num_segments} parts between markers; the limit is {limit}",
        hint="send the whole file, or split the update into several requests",
    )


def too_much_to_compare(limit: int) -> Finding:
    """The places of the update were not all looked at."""
    return Finding(
        code="too_much_to_compare",
        severity="error",
        message="the search for the places of the update takes more comparisons than an edit may"
        f" make; the limit is {limit}",
        hint="send the whole file, several smaller updates, or a unified diff or SEARCH/REPLACE"
        " blocks with lines that the original has once",
    )


def _number(segment: Segment) -> int:
    return segment.lines[0].number if segment.lines else 1


def _shown(segment: Segment) -> str:
    texts = [text.strip() for text in segment.texts if text.strip()]
    return texts[0][:MAX_SHOWN_CHARS] if texts else ""


def _nearest(text: str, index: LineIndex) -> int | None:
    wanted = text[:MAX_COMPARED_CHARS]
    words = set(IDENTIFIER.findall(wanted))
    candidates = [line[:MAX_COMPARED_CHARS] for line in index.stripped[:MAX_NEAREST]]
    kin = nlargest(
        MAX_SPELLED, candidates, key=lambda line: len(words.intersection(IDENTIFIER.findall(line)))
    )
    closest = extractOne(
        wanted, kin, scorer=Indel.normalized_similarity, score_cutoff=MIN_CLOSENESS
    )
    return candidates.index(closest[0]) if closest else None
