"""Makes the parts of a reading: what each segment and removal may take the place of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from apply_service.edit.place.candidates.candidate import Candidate
from apply_service.edit.place.candidates.candidate_source import candidates_of
from apply_service.edit.place.candidates.original_facts import OriginalFacts, balance
from apply_service.edit.place.candidates.part import Part, PartKind
from apply_service.edit.place.candidates.row_matcher import RowMatcher
from apply_service.edit.place.candidates.rows import Row, rows_of
from apply_service.edit.read.segment import Segment, SegmentLine, Snippet
from apply_service.edit.syntax.definitions import find_definitions
from apply_service.edit.syntax.new_definitions import NewDefinitions
from apply_service.edit.syntax.syntax import parse_fragment
from apply_service.edit.text.definition_names import definition_name

# Besides each span as it is, so many candidates of a segment are looked at closely.
MAX_VARIANTS = 40
# The candidates of all segments together; each may have some.
MAX_CANDIDATES, MIN_CANDIDATES = 6_000, 12
# A guess of how likely a candidate is, before any feature is known.
REMOVED_COST, BALANCE_COST, SHIFT_COST, KEPT_COST, RESTORED_COST = 0.16, 0.2, 0.4, 0.3, 0.05
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\s*(?=[(<:={])")


def parts_of(original: OriginalFacts, snippet: Snippet) -> list[Part]:
    """The segments and removals of an update in its order."""
    parts: list[Part] = []
    indent_before: int | None = None
    last = len(snippet.segments)
    rows_by_segment = [rows_of(segment, snippet.format) for segment in snippet.segments]
    sent = [row.text for rows in rows_by_segment for row in rows if row.is_written]
    for number in range(last + 1):
        for removal in snippet.removals:
            if removal.before_segment == number:
                spans = list(_named_spans(original, removal.name))
                parts.append(
                    _part_without_rows(original, "removal", spans, sent_line=removal.number)
                )
        if number == last:
            break
        segment = snippet.segments[number]
        rows = rows_by_segment[number]
        if rows:
            parts.append(
                _segment_part(
                    original, segment, rows, indent_before, number=number, last=last, sent=sent
                )
            )
        if segment.outer_indent is not None:
            ends = sorted({*original.block_ends, len(original)})
            spans = [Candidate(start=place, end=place) for place in ends]
            parts.append(_part_without_rows(original, "block_end", spans))
        indent_before = segment.next_indent
    return parts


def _segment_part(
    original: OriginalFacts,
    segment: Segment,
    rows: Sequence[Row],
    indent_before: int | None,
    *,
    number: int,
    last: int,
    sent: Sequence[str],
) -> Part:
    matcher = RowMatcher(original, rows)
    found = candidates_of(
        original,
        rows,
        opens_file=number == 0 and not segment.has_gap_before,
        closes_file=number == last - 1 and not segment.has_gap_after,
        matcher=matcher,
    )
    return Part(
        kind="segment",
        original=original,
        rows=tuple(rows),
        matcher=matcher,
        candidates=_most_likely(
            original, rows, matcher, found, max(MAX_CANDIDATES // last, MIN_CANDIDATES)
        ),
        names=_names_of(original, rows),
        new_rows=_new_rows(original, rows, sent),
        has_gap_before=segment.has_gap_before,
        has_gap_after=segment.has_gap_after,
        indent_before=indent_before,
        indent_after=segment.next_indent,
        num_blank_behind=len(list(takewhile(_is_blank, reversed(segment.lines)))),
        number=number,
    )


def _is_blank(line: SegmentLine) -> bool:
    return not line.text.strip()


def _part_without_rows(
    original: OriginalFacts,
    kind: PartKind,
    candidates: Sequence[Candidate],
    *,
    sent_line: int = 0,
) -> Part:
    return Part(
        kind=kind,
        original=original,
        rows=(),
        matcher=RowMatcher(original, ()),
        candidates=candidates,
        sent_line=sent_line,
    )


def _most_likely(
    original: OriginalFacts,
    rows: Sequence[Row],
    matcher: RowMatcher,
    found: list[Candidate],
    limit: int,
) -> list[Candidate]:
    """Each span as it is or without last ends of blocks, and the likeliest others by a guess.

    Of more than `limit` those that are likeliest by that guess.
    """
    weights = [0.0]
    for weight in matcher.line_weights.tolist():
        weights.append(weights[-1] + weight)
    depths = original.depths
    opened = sum(balance(row.stripped) for row in rows if row.is_written)

    def guess(one: Candidate) -> float:
        evidence = matcher.evidence_of(one.pairs)
        lost = weights[one.end] - weights[one.start] - evidence
        left = opened - (depths[one.end] - depths[one.start])
        num_restored = sum(run.row in one.dropped for run in one.kept)
        kept = 0.0
        for run in one.kept:
            kept += weights[run.end] - weights[run.start]
            left += depths[run.end] - depths[run.start]
        return (
            evidence
            - REMOVED_COST * max(lost - kept, 0.0)
            - BALANCE_COST * abs(left)
            - SHIFT_COST * bool(one.shift or one.row_shifts)
            - KEPT_COST * (len(one.kept) - num_restored)
            - RESTORED_COST * len(one.dropped)
        )

    optional = {number for number, row in enumerate(rows) if row.is_optional}
    plain = [
        one
        for one in found
        if not (one.kept or one.shift or one.row_shifts) and optional.isdisjoint(one.dropped)
    ]
    plain_ids = {id(one) for one in plain}
    others = sorted((one for one in found if id(one) not in plain_ids), key=guess)
    chosen = [*plain, *others[-MAX_VARIANTS:]]
    if len(chosen) > limit:
        chosen = sorted(chosen, key=guess)[-limit:]
    chosen_ids = {id(one) for one in chosen}
    return [one for one in found if id(one) in chosen_ids]


def _new_rows(original: OriginalFacts, rows: Sequence[Row], sent: Sequence[str]) -> frozenset[int]:
    """The rows of definitions that the file does not have, even under another name."""
    if not any(definition_name(row.text) for row in rows):
        return frozenset()
    texts = [row.text for row in rows]
    symbols = parse_fragment(texts, original.language) or tuple(find_definitions(texts))
    table, index = original.definition_table
    return frozenset(NewDefinitions(table, index, sent=sent).rows(symbols, texts))


def _names_of(original: OriginalFacts, rows: Sequence[Row]) -> frozenset[str]:
    """Names that the rows define, or that they begin with on their least depth."""
    names = {name for row in rows if (name := definition_name(row.text))}
    least = min(row.indent for row in rows)
    for row in rows:
        if row.indent == least:
            names |= {name for name in _CALLED.findall(row.text)[:2] if name in original.names}
    return frozenset(names)


def _named_spans(original: OriginalFacts, name: str) -> Iterator[Candidate]:
    """Definitions of a name; `Class.name` is else looked for in the class, if there is one."""
    owner, _, own = name.rpartition(".")
    whole = [one for one in original.definitions if one.name == name]
    known = whole or [one for one in original.definitions if one.name == own]
    owners = [one for one in original.definitions if owner and one.name == owner]
    inside = [
        one
        for one in known
        if any(other.start <= one.start and one.end <= other.end for other in owners)
    ]
    for one in inside or known:
        yield Candidate(start=one.start, end=one.end)
