"""The placements of one lazy segment side by side, as numbers that trees can decide by.

`placement_features` says what speaks for a placement by itself. Here each is also compared with the
heaviest one of its layer: how much more of the original it takes, and what its change looks like
at its ends. Where it stands in the file is not told: of two places that are alike in everything
neither may be preferred.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import sub

from apply_service.edit.place.opinion.placement import Placement
from apply_service.edit.place.opinion.placement_change import change_of
from apply_service.edit.place.opinion.placement_features import FEATURES
from apply_service.edit.text.brackets import BLOCK_OPENERS, CLOSING_BRACKETS
from apply_service.edit.text.line_index import indent_of

_REASONS = ("explicit", "context", "symbol", "similar", "order", "border")
_COMMENTS = ("#", "//", "/*", "*/", "* ")

# What the change of a placement looks like. Kinds are those of `_kind_of`; "first" and "last" are
# the ends of the lines that really change, and indents are differences in characters.
SHAPE_FEATURES = (
    "num_equal_before",
    "num_equal_after",
    "num_new",
    "num_lost",
    "num_added",
    "kind_above",
    "kind_below",
    "kind_first_old",
    "kind_last_old",
    "kind_first_new",
    "kind_last_new",
    "indent_to_below",
    "indent_of_first",
    "indent_of_last",
    "indent_of_old_to_below",
    "has_tail",
    "num_old_characters",
    "num_new_characters",
    "reason",
)
_OWN_FEATURES = (*FEATURES, *SHAPE_FEATURES)
# The columns of `layer_features`.
LAYER_FEATURES = (
    *_OWN_FEATURES,
    *(f"{name}_more" for name in _OWN_FEATURES),
    "weight_more",
    "num_placements",
    "num_taken_more",
    "num_written_more",
    "num_taken",
    "num_written",
)


def layer_features(
    placements: Sequence[Placement], lines: Sequence[str]
) -> list[tuple[float, ...]]:
    """`LAYER_FEATURES` of each placement of a segment.

    `lines` are those of the original. Every placement must have its `features`.
    """
    best = heaviest(placements)
    own = [(*one.features, *_shape_of(one, lines)) for one in placements]
    sizes = [(one.end - one.start, len(one.lines)) for one in placements]
    return [
        (
            *row,
            *map(sub, row, own[best]),
            one.weight - placements[best].weight,
            len(placements),
            *map(sub, size, sizes[best]),
            *size,
        )
        for one, row, size in zip(placements, own, sizes, strict=True)
    ]


def heaviest(placements: Sequence[Placement]) -> int:
    """Which of the placements has the largest weight; of equal ones the first."""
    return max(range(len(placements)), key=lambda at: placements[at].weight)


def _shape_of(placement: Placement, lines: Sequence[str]) -> tuple[float, ...]:
    """`SHAPE_FEATURES` of one placement."""
    start, end, new = placement.start, placement.end, placement.lines
    change = change_of(lines[start:end], new)
    old_middle = lines[start + change.num_before : end - change.num_after]
    new_middle = new[change.num_before : len(new) - change.num_after]
    first_new, last_new = _first_filled(new), _first_filled(new[::-1])
    first_old = _first_filled(lines[start:end])
    last_old = _first_filled(lines[start:end][::-1])
    below = _first_filled(lines[at] for at in range(end, len(lines)))
    return (
        change.num_before,
        change.num_after,
        len(new_middle),
        len(change.lost),
        len(change.added),
        _kind_of(lines[start - 1 : start]),
        _kind_of(lines[end : end + 1]),
        _kind_of(old_middle[:1]),
        _kind_of(old_middle[-1:]),
        _kind_of(new_middle[:1]),
        _kind_of(new_middle[-1:]),
        _indent(last_new) - _indent(below),
        _indent(first_new) - _indent(first_old) if first_old else 0,
        _indent(last_new) - _indent(last_old) if last_old else 0,
        _indent(old_middle[-1]) - _indent(below) if old_middle else 0,
        change.has_tail,
        sum(map(len, map(str.strip, old_middle))),
        sum(map(len, map(str.strip, new_middle))),
        _REASONS.index(placement.reason),
    )


def _first_filled(lines: Iterable[str]) -> str:
    return next(filter(str.strip, lines), "")


def _indent(line: str) -> int:
    return len(indent_of(line))


def _kind_of(lines: Sequence[str]) -> int:
    """What the only line of `lines` is by its look; -1 without one."""
    if not lines:
        return -1
    text = lines[0].strip()
    if not text:
        return 0
    if text.startswith(CLOSING_BRACKETS) or text == "end":
        return 1
    if text.endswith(BLOCK_OPENERS):
        return 2
    if text.startswith(_COMMENTS):
        return 3
    return 4 if text.startswith("@") else 5
