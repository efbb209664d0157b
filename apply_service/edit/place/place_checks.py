"""Checks that the result is a merge of the update, with each segment in its place."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from apply_service.edit.finding import Finding
from apply_service.edit.place.comparison import Comparison, first_filled, shown
from apply_service.edit.place.placement import MergePath, Placement
from apply_service.edit.place.splice import splice
from apply_service.edit.syntax.syntax import parse

if TYPE_CHECKING:
    from apply_service.edit.place.merge import MergePlan

# Weights are logarithms of odds. Another place leaves a doubt unless it fits this much worse.
PLACE_MARGIN = 1.5
# Other borders around the same place leave a doubt only if they fit this much better.
BORDER_MARGIN = 0.5
# They may even fit a little worse if they keep so many more lines of the original.
MANY_LINES = 3
KEEPING_MARGIN = -0.5
# What other numbers of blank lines beside the same lines must be better.
BLANK_MARGIN = 0.5
# A place that fits so much better than those that take less is clear: what goes is meant to go.
CLEAR_MARGIN = 1.7
MAX_LISTED = 8
# Characters of other merges that are parsed for one result, to see whether they are sound.
MAX_PARSED_IN_DOUBT = 300_000
# Findings of a plan about its own best merge; the result may be another one.
_PLACE_CODES = frozenset({"ambiguous_place", "place_guessed"})


def check_place(
    comparison: Comparison,
    plan: MergePlan,
    path: MergePath,
    *,
    confirmed: Mapping[int, Collection[Placement]],
) -> Iterator[Finding]:
    """Doubts about a result that is the valid merge `path`.

    A segment is not in doubt if its place was chosen among the `confirmed` and all its rivals are
    among these.
    """
    yield from _other_findings(plan)
    if plan.is_unique and path == plan.best:
        return
    field = _RivalField(comparison, plan, path)
    for number, placement in enumerate(path.placements):
        rivals = field.rivals(number)
        if rivals and not _is_settled(placement, rivals, confirmed.get(placement.segment, ())):
            yield _ambiguous_place(comparison, placement, rivals)


def unclear_placements(comparison: Comparison, plan: MergePlan, path: MergePath) -> list[Placement]:
    """Placements whose segment fits nearly as well where it takes fewer filled lines."""
    if plan.is_unique and path == plan.best:
        return []
    field = _RivalField(comparison, plan, path)
    return [
        placement
        for number, placement in enumerate(path.placements)
        if any(
            other.weight > placement.weight - CLEAR_MARGIN
            for other in field.others(number)
            if _num_taken(comparison, other) < _num_taken(comparison, placement)
        )
    ]


def _num_taken(comparison: Comparison, placement: Placement) -> int:
    filled = comparison.num_filled_before
    return filled[placement.end] - filled[placement.start]


def _is_settled(
    placement: Placement, rivals: Sequence[Placement], chosen_from: Collection[Placement]
) -> bool:
    """Whether `placement` was chosen with all `rivals` in sight.

    A rival was in sight as well if one that begins with the same lines in the same place was, as
    long as `placement` is not its like in this.
    """
    entries = {(one.start, one.lines) for one in chosen_from}
    entries.discard((placement.start, placement.lines))
    return placement in chosen_from and all(
        rival in chosen_from or (rival.start, rival.lines) in entries for rival in rivals
    )


class _RivalField:
    """The other placements of the segments of one result."""

    def __init__(self, comparison: Comparison, plan: MergePlan, path: MergePath) -> None:
        self._comparison = comparison
        self._plan = plan
        self._path = path
        self._num_characters = sum(map(len, comparison.result)) + 1
        self._budget = MAX_PARSED_IN_DOUBT

    def others(self, number: int) -> Iterator[Placement]:
        """All placements of the segment of placement `number`, given the other segments."""
        placements = self._path.placements
        low = placements[number - 1].end if number else 0
        is_last = number + 1 == len(placements)
        high = len(self._comparison.original) if is_last else placements[number + 1].start
        for other in self._plan.candidates[placements[number].segment]:
            if low <= other.start and other.end <= high and other != placements[number]:
                yield other

    def rivals(self, number: int) -> list[Placement]:
        """Placements that fit about as well as placement `number` and keep the syntax.

        Where the placement changes nothing, another one that changes nothing is no rival, nor is
        one that writes all of it a second time.
        """
        placement = self._path.placements[number]
        is_idle = self._is_idle(placement)
        found = [
            other
            for other in self.others(number)
            if _is_rival(self._comparison, other, placement)
            and not (is_idle and (self._is_idle(other) or self._only_adds(other)))
        ]
        return [other for other in found if not self._breaks_syntax(number, other)]

    def _is_idle(self, placement: Placement) -> bool:
        old = self._comparison.original[placement.start : placement.end]
        return list(old) == list(placement.lines)

    def _only_adds(self, placement: Placement) -> bool:
        filled = self._comparison.num_filled_before
        return filled[placement.start] == filled[placement.end]

    def _breaks_syntax(self, number: int, other: Placement) -> bool:
        """Whether the result is free of syntax errors and would not be with `other`."""
        tree, result_tree = self._comparison.tree, self._comparison.result_tree
        if tree is None or result_tree is None or tree.error_lines or result_tree.error_lines:
            return False
        if self._num_characters > self._budget:
            return False
        self._budget -= self._num_characters
        placements = list(self._path.placements)
        placements[number] = other
        merged = splice(
            self._comparison.original, replace(self._path, placements=tuple(placements))
        )
        other_tree = parse(merged, tree.language)
        return other_tree is not None and bool(other_tree.error_lines)


def _other_findings(plan: MergePlan) -> Iterator[Finding]:
    return (finding for finding in plan.findings if finding.code not in _PLACE_CODES)


def _is_rival(comparison: Comparison, other: Placement, placement: Placement) -> bool:
    """Whether `other` fits about as well, or with other borders of the same place clearly better.

    A placement that differs only in blank lines has other borders of the same place.
    """
    filled = comparison.num_filled_before
    other_span = filled[other.start], filled[other.end]
    span = filled[placement.start], filled[placement.end]
    is_same = other_span == span and _has_same_text(other, placement)
    is_apart = other.end <= placement.start or placement.end <= other.start
    if is_apart and not is_same:
        return other.weight > placement.weight - PLACE_MARGIN
    num_kept = (span[1] - span[0]) - (other_span[1] - other_span[0])
    margin = KEEPING_MARGIN if num_kept >= MANY_LINES else BORDER_MARGIN
    return other.weight > placement.weight + (BLANK_MARGIN if is_same else margin)


def _has_same_text(other: Placement, placement: Placement) -> bool:
    return list(filter(str.strip, other.lines)) == list(filter(str.strip, placement.lines))


def _ambiguous_place(
    comparison: Comparison, placement: Placement, rivals: Sequence[Placement]
) -> Finding:
    """The doubt about one segment, with the lines of the original where it fits as well."""
    lines = comparison.snippet.segments[placement.segment].lines
    first = next((line for line in lines if line.text.strip()), None)
    what = f"line {first.number} of the update ({shown(first.text)})" if first else "a removal"
    own = _span_name(placement)
    spans = [span for span in dict.fromkeys(map(_span_name, rivals)) if span != own][:MAX_LISTED]
    others = f"it fits {' or '.join(spans)}" if spans else "another form of it fits there"
    return Finding(
        code="ambiguous_place",
        severity="warning",
        message=f"{what} stands {own} of the original; {others} as well",
        hint=f"add an unchanged line before and after it; {_neighbours(comparison, placement)}",
        line=placement.start + 1,
    )


def _span_name(placement: Placement) -> str:
    if placement.start == placement.end:
        return f"before line {placement.start + 1}"
    if placement.end == placement.start + 1:
        return f"in place of line {placement.end}"
    return f"in place of lines {placement.start + 1} to {placement.end}"


def _neighbours(comparison: Comparison, placement: Placement) -> str:
    """The lines of the original around a placement, as a hint quotes them."""
    texts = comparison.original_texts
    above = (texts[place] for place in range(placement.start - 1, -1, -1))
    below = (texts[place] for place in range(placement.end, len(texts)))
    before, after = first_filled(above), first_filled(below)
    quoted = [
        f"{shown(text)} now stands {side} it"
        for text, side in ((before, "before"), (after, "after"))
        if text
    ]
    return ", ".join(quoted) or "it has none around it now"


def check_membership(
    comparison: Comparison, plan: MergePlan, best_lines: Sequence[str] | None
) -> Iterator[Finding]:
    """Findings for a result that is not a valid merge; `best_lines` is the best merge."""
    yield from _other_findings(plan)
    if best_lines is None:
        return
    place = _num_equal(comparison.result, best_lines)
    is_end = place == len(comparison.result)
    what = "ends" if is_end else f"goes on with {shown(comparison.result[place])}"
    yield Finding(
        code="not_a_merge",
        severity="warning",
        message="the result is not a valid merge of the update; it equals the likeliest merge for"
        f" {place} lines, then it {what}",
        hint="compare the result with the update from that line on",
        line=None if is_end else place + 1,
    )


def _num_equal(left: Sequence[str], right: Sequence[str]) -> int:
    """How many lines two texts have in common at the start."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((place for place, pair in pairs if pair[0] != pair[1]), min(len(left), len(right)))
