from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from apply_service.edit.place.merge import MergePlan
from apply_service.edit.place.placement import Placement, splice
from apply_service.edit.place.sent_part import SentPart
from apply_service.edit.regional_update import (
    marker_of,
    regional_merge,
    regional_merges,
    regional_update,
)
from apply_service.edit.regions import Region

MARKER = "# ... existing code ..."


@st.composite
def merges(draw: st.DrawFn) -> tuple[list[str], list[Placement], list[Region]]:
    """An original, placements in it, and regions that cut none of them."""
    original = [f"line {number}" for number in range(draw(st.integers(1, 20)))]
    borders = sorted(draw(st.lists(st.integers(0, len(original)), max_size=8)))
    placements = []
    for number, (start, end) in enumerate(zip(borders[::2], borders[1::2], strict=False)):
        lines = tuple(f"new {number} {row}" for row in range(draw(st.integers(0, 3))))
        placements.append(Placement(layer=number, start=start, end=end, lines=lines))
    cuts = {0, len(original)} | {
        cut
        for cut in draw(st.sets(st.integers(0, len(original)), max_size=4))
        if not any(one.start < cut < one.end or one.start == cut == one.end for one in placements)
    }
    regions = [Region(*pair) for pair in pairwise(sorted(cuts))]
    return original, placements, regions


@given(merges())
def test_regions_together_are_the_whole_merge(
    merge: tuple[list[str], list[Placement], list[Region]],
) -> None:
    original, placements, regions = merge
    texts = [regional_merge(original, placements, region) for region in regions]
    joined = [line for text in texts if text is not None for line in text]
    assert joined == splice(original, placements)
    for one in placements:
        for cut in range(one.start + 1, one.end):
            assert regional_merge(original, placements, Region(0, cut)) is None


def test_markers_stand_for_what_is_left_out() -> None:
    parts = [
        SentPart(start=4, end=5, lines=("e!",)),
        SentPart(start=1, end=2, lines=("b", "B")),
        SentPart(start=5, end=6, lines=("# remove f",)),
        SentPart(start=0, end=1, lines=("outside",)),
    ]
    update = regional_update(parts, Region(1, 7), marker=MARKER)
    assert update.lines == ("b", "B", MARKER, "e!", "# remove f", MARKER)
    assert update.segments == (("b", "B"), ("e!",), ("# remove f",))


def test_the_marker_is_the_updates_own_or_that_of_the_language() -> None:
    assert (
        marker_of(["a", "  -- ... rest of code ..."], ["x"], "python") == "-- ... rest of code ..."
    )
    assert marker_of(["-a", "+b"], ["a"], "python") == "# ... existing code ..."
    assert marker_of(["-a", "+b"], ["a"], "html") == "<!-- ... existing code ... -->"
    assert marker_of(["-a", "+b"], ["a"], None) == "// ... existing code ..."


ORIGINAL = tuple("abcdefgh")
FIRST, SECOND = (*"aBbcdefgh",), (*"abcdefFgh",)
PLAN = MergePlan(
    original_lines=ORIGINAL, merges=(FIRST, SECOND), weights=(-0.1, -2.4), certainty=0.6
)


def test_a_region_with_all_places_has_each_merge() -> None:
    assert regional_merges(PLAN, Region(0, 8)) == {FIRST: 0, SECOND: 1}


def test_a_region_with_one_place_has_the_merges_that_keep_to_it() -> None:
    assert regional_merges(PLAN, Region(0, 3)) == {(*"aBbc",): 0}


def test_a_region_of_what_no_merge_changes_has_one_text() -> None:
    assert regional_merges(PLAN, Region(2, 5)) == {(*"cde",): 0}
