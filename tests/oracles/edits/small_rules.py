"""Small merge rules over a tiny alphabet, with repeated lines on purpose.

Strategies of the same shape are made once: hypothesis checks each that it has not seen before.
"""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from lookup.merge_rules import GrammarPlacement, GrammarSegment, MergeRules

Line = tuple[int, ...]

NEWLINE = 0
END = (NEWLINE, 9)
WEIGHTS = st.integers(-3, 3).map(float)
# A line as the embedded profile has it: newline first.
LINE_ALIGNED = st.sampled_from([(0,), (0, 1), (0, 2), (0, 1, 1), (0, 1, 2)])
# A line with no border that could be told from its tokens.
ANY_LINE = st.lists(st.integers(0, 1), min_size=1, max_size=3).map(tuple)
LINE_KINDS = st.sampled_from([LINE_ALIGNED, ANY_LINE])
ENDS = st.sampled_from([END, (9,), (), (1,)])


@cache
def text_of(line: st.SearchStrategy[Line]) -> st.SearchStrategy[list[Line]]:
    """An original."""
    return st.lists(line, max_size=6)


@cache
def spans_in(num_lines: int) -> st.SearchStrategy[tuple[int, int]]:
    """A span of an original, maybe an empty one."""
    border = st.integers(0, num_lines)
    return st.tuples(border, border).map(lambda span: (min(span), max(span)))


@cache
def removed_in(num_lines: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Removed spans of an original."""
    return st.lists(spans_in(num_lines), max_size=2)


@cache
def flags_for(num_lines: int) -> st.SearchStrategy[list[bool] | None]:
    """The lines that are optional: two at most."""
    flags = st.lists(st.booleans(), min_size=num_lines, max_size=num_lines)
    return st.none() | flags.filter(lambda flags: sum(flags) <= 2)


@cache
def placement_of(lines: tuple[Line, ...], num_lines: int) -> st.SearchStrategy[GrammarPlacement]:
    """A placement of new lines in an original of `num_lines`."""
    return st.builds(
        lambda span, weight, optional, omission_weight: GrammarPlacement(
            start=span[0],
            end=span[1],
            lines=lines,
            weight=weight,
            optional=optional,
            omission_weight=omission_weight,
        ),
        spans_in(num_lines),
        WEIGHTS,
        flags_for(len(lines)),
        WEIGHTS,
    )


@cache
def placements_in(
    line: st.SearchStrategy[Line], num_lines: int
) -> st.SearchStrategy[list[GrammarPlacement]]:
    """The placements of a segment in an original of `num_lines`."""
    lines = st.lists(line, max_size=3).map(tuple)
    placement = lines.flatmap(lambda lines: placement_of(lines, num_lines))
    return st.lists(placement, min_size=1, max_size=3)


@cache
def num_segments(max_segments: int) -> st.SearchStrategy[int]:
    """A number of segments."""
    return st.integers(0, max_segments)


@st.composite
def small_rules(draw: st.DrawFn, *, max_segments: int = 3) -> MergeRules:
    """Rules with a few hundred paths at most; maybe with none."""
    line = draw(LINE_KINDS)
    original = draw(text_of(line))
    placements = placements_in(line, len(original))
    return MergeRules(
        original=original,
        segments=[
            GrammarSegment(draw(placements)) for _ in range(draw(num_segments(max_segments)))
        ],
        removed=draw(removed_in(len(original))),
        end_token_ids=draw(ENDS),
        is_ordered=draw(st.booleans()),
    )
