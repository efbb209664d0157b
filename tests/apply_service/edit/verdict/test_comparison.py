"""What the checks share, against plain definitions over whole texts."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from apply_service.edit.read.segment import Segment, SegmentLine, Snippet
from apply_service.edit.text.blank_lines import gaps_of, squeeze
from apply_service.edit.verdict.comparison import Comparison

LINES = st.lists(st.sampled_from(["a", "  b", "c", "", "}"]), max_size=14)


def snippet_of(*segments: Segment) -> Snippet:
    return Snippet(format="lazy", segments=segments)


def segment_of(*texts: str, old: tuple[str, ...] | None = None, gaps: bool = True) -> Segment:
    lines = tuple(SegmentLine(text, number) for number, text in enumerate(texts, start=1))
    return Segment(lines=lines, old=old, has_gap_before=gaps, has_gap_after=gaps)


@given(LINES)
def test_gaps_are_the_runs_of_blank_lines_between_filled_ones(lines: list[str]) -> None:
    texts = [squeeze(line) for line in lines]
    filled = [place for place, text in enumerate(texts) if text]
    borders = [-1, *filled, len(texts)]
    expected = [
        ("" if left < 0 else texts[left], [*texts, ""][right], right - left - 1, right + 1)
        for left, right in pairwise(borders)
    ]
    assert [tuple(gap) for gap in gaps_of(texts)] == (expected if filled else [])
    assert [tuple(gap) for gap in gaps_of(texts, around={"a"})] == [
        gap for gap in (expected if filled else []) if "a" in gap[:2]
    ]


@given(LINES, LINES)
def test_every_new_gap_is_a_changed_one(original: list[str], result: list[str]) -> None:
    comparison = Comparison(original, snippet_of(), result)
    known = {gap[:3] for gap in gaps_of(comparison.original_texts)}
    everywhere = list(gaps_of(comparison.result_texts))
    changed = comparison.changed_gaps
    assert [gap for gap in everywhere if gap[:3] not in known and gap not in changed] == []
    assert set(changed) <= set(everywhere)
    table = comparison.original_gaps
    for gap in changed:
        whole = {
            other.num_blank for other in gaps_of(comparison.original_texts) if other[:2] == gap[:2]
        }
        assert set(table.between(gap.left, gap.right)) == whole


@given(LINES, LINES)
def test_lost_places_are_gone(original: list[str], result: list[str]) -> None:
    comparison = Comparison(original, snippet_of(), result)
    lost = [place for hunk in comparison.hunks for place in comparison.lost_places(hunk)]
    missing = {squeeze(original[place]) for place in lost}
    assert missing == set(comparison.original_counts - comparison.result_counts) - {""}


def test_segments_without_a_gap_between_adjoin() -> None:
    snippet = snippet_of(
        Segment(lines=(SegmentLine("a", 1),), has_gap_before=False, has_gap_after=False),
        Segment(lines=(SegmentLine("b", 2),), has_gap_before=False, has_gap_after=True),
        Segment(lines=(SegmentLine("c", 4),), has_gap_before=True, has_gap_after=False),
    )
    assert Comparison([], snippet, []).sent_pairs == {("", "a"), ("a", "b"), ("c", "")}


def test_pairs_with_and_without_optional_lines() -> None:
    lines = (SegmentLine("a", 1), SegmentLine("# note", 2, is_optional=True), SegmentLine("b", 3))
    comparison = Comparison([], snippet_of(Segment(lines=lines)), [])
    assert comparison.sent_pairs == {("a", "# note"), ("# note", "b"), ("a", "b")}


def test_a_line_that_is_part_marker_cuts_a_segment() -> None:
    lines = (
        SegmentLine("a", 1),
        SegmentLine("f(x, /* ... */)", 2, has_inline_marker=True),
        SegmentLine("b", 3),
    )
    comparison = Comparison([], snippet_of(Segment(lines=lines)), [])
    assert [line.text for line in comparison.sent] == ["a", "b"]
    assert comparison.sent_pairs == set()


def test_old_lines_that_are_not_kept_are_removed() -> None:
    comparison = Comparison(
        ["a", "b", "b"], snippet_of(segment_of("a", "c", old=("a", "b", "b"))), ["a", "c"]
    )
    assert comparison.removed_counts == {"b": 2}


def test_names_of_removal_directives_are_whole_words() -> None:
    comparison = Comparison(["x"], snippet_of(), [])
    comparison.removed_names = {"total", "btn-primary"}
    assert comparison.has_removed_name("def total():")
    assert comparison.has_removed_name(".btn-primary {")
    assert comparison.has_removed_name("x = total-1")
    assert not comparison.has_removed_name("subtotal = 1")
