"""Why an update has no merge, each reason with a hint that a model can act on."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nlargest

from rapidfuzz.distance import Indel
from rapidfuzz.process import extractOne

from apply_service.edit.finding import Finding
from apply_service.edit.read.segment import Removal, Segment, Snippet
from apply_service.edit.syntax.definitions import find_definitions
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


def anchor_not_found(segment: Segment, original_lines: Sequence[str]) -> Finding:
    """The lines that a segment wants to replace do not stand in the original."""
    index = LineIndex(original_lines)
    wanted = [text.strip() for text in segment.old or segment.texts if text.strip()]
    missing = next((text for text in wanted if not index.places(text)), wanted[0])
    hint = "copy the old lines exactly from the original"
    nearest = _nearest(missing, index)
    if nearest is not None:
        text = index.stripped[nearest][:MAX_SHOWN_CHARS]
        hint += f"; the nearest line is line {nearest + 1}: `{text}`"
    names = _names_in(original_lines)
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


def removal_not_found(removal: Removal, known: Sequence[str]) -> Finding:
    """The original, which defines the `known` names, does not define what the update removes."""
    listed = ", ".join(list(dict.fromkeys(known))[:MAX_LISTED]) or "none"
    return Finding(
        code="removal_not_found",
        severity="error",
        message=f"line {removal.number} of the update removes `{removal.name}`, but the original"
        f" defines no `{removal.name}`",
        hint=f"name a definition of the original (it has: {listed}), or send the lines before and"
        " after the removed ones with nothing between",
        line=removal.number,
    )


def no_place(number: int) -> Finding:
    """No part of the original is like line `number` of the update and what follows."""
    return Finding(
        code="anchor_not_found",
        severity="error",
        message=f"no place was found for line {number} of the update and the lines that follow",
        hint="send unchanged lines of the original before and after each change",
    )


def _names_in(original_lines: Sequence[str]) -> list[str]:
    """The first names that the original defines."""
    names = dict.fromkeys(symbol.name for symbol in find_definitions(original_lines))
    return list(names)[:MAX_LISTED]


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
