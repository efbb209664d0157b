"""Small merge rules over a tiny alphabet, with repeated lines on purpose."""

from __future__ import annotations

from hypothesis import strategies as st

from lookup.merge_rules import GrammarPlacement, GrammarSegment, MergeRules

NEWLINE = 0
END = (NEWLINE, 9)
WEIGHTS = st.integers(-3, 3).map(float)


def line_aligned() -> st.SearchStrategy[tuple[int, ...]]:
    """A line as the embedded profile has it: newline first."""
    return st.sampled_from([(0,), (0, 1), (0, 2), (0, 1, 1), (0, 1, 2)])


def any_line() -> st.SearchStrategy[tuple[int, ...]]:
    """A line with no border that could be told from its tokens."""
    return st.lists(st.integers(0, 1), min_size=1, max_size=3).map(tuple)


@st.composite
def small_rules(draw: st.DrawFn, *, max_segments: int = 3) -> MergeRules:
    """Rules with a few hundred paths at most; maybe with none."""
    line = draw(st.sampled_from([line_aligned(), any_line()]))
    original = draw(st.lists(line, max_size=6))
    spans = st.tuples(st.integers(0, len(original)), st.integers(0, len(original))).map(
        lambda span: (min(span), max(span))
    )

    def placement(lines: list[tuple[int, ...]]) -> st.SearchStrategy[GrammarPlacement]:
        flags = st.none() | st.lists(
            st.booleans(), min_size=len(lines), max_size=len(lines)
        ).filter(lambda flags: sum(flags) <= 2)
        return st.builds(
            lambda span, weight, optional, omission_weight: GrammarPlacement(
                start=span[0],
                end=span[1],
                lines=lines,
                weight=weight,
                optional=optional,
                omission_weight=omission_weight,
            ),
            spans,
            WEIGHTS,
            flags,
            WEIGHTS,
        )

    segments = []
    for _ in range(draw(st.integers(0, max_segments))):
        lines = st.lists(line, max_size=3).flatmap(placement)
        segments.append(GrammarSegment(draw(st.lists(lines, min_size=1, max_size=3))))
    return MergeRules(
        original=original,
        segments=segments,
        removed=draw(st.lists(spans, max_size=2)),
        end_token_ids=draw(st.sampled_from([END, (9,), (), (1,)])),
        is_ordered=draw(st.booleans()),
    )
