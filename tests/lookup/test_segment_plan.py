"""Where segments are expected: context before and behind, order, and segments without a place."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lookup.segment_plan import SegmentPlan, Switch
from lookup.suffix_automaton import SuffixAutomaton

ORIGINAL = list(range(100, 200))


def plan_of(original: list[int], *segments: list[int]) -> tuple[Switch, ...]:
    return SegmentPlan(SuffixAutomaton(original), segments).switches


def places(switches: tuple[Switch, ...]) -> list[tuple[int, int, int, int]]:
    return [(s.segment, s.enter, s.offset, s.exit) for s in switches]


def test_context_on_both_sides_places_an_insertion_and_a_deletion() -> None:
    inserted = [*range(120, 125), 1, 2, 3, *range(125, 130)]
    deleted = [*range(150, 155), *range(170, 175)]
    assert places(plan_of(ORIGINAL, inserted, deleted)) == [(0, 25, 5, 30), (1, 55, 5, 75)]


def test_without_context_behind_the_original_goes_on_where_it_was_left() -> None:
    assert places(plan_of(ORIGINAL, [*range(120, 125), 1, 2, 3])) == [(0, 25, 5, 25)]


def test_without_context_before_the_segment_goes_in_front_of_its_tail() -> None:
    assert places(plan_of(ORIGINAL, [1, 2, 3, *range(130, 140)])) == [(0, 30, 0, 40)]


def test_order_decides_between_equal_contexts() -> None:
    block = list(range(1, 9))
    original = [*block, 50, 51, 52, *block, 60, 61, 62, *block, 70, 71, 72]
    first = [50, 51, 52, *block[:3], 90]
    second = [*block, 91, 70, 71, 72]
    switches = plan_of(original, first, second)
    assert [s.enter for s in switches] == [14, len(original) - 3]


def test_a_segment_of_new_tokens_has_no_place() -> None:
    plan = SegmentPlan(SuffixAutomaton(ORIGINAL), [[1, 2, 3, 4], [*range(150, 160), 9]])
    assert [s.segment for s in plan.switches] == [1]
    assert plan.exit_of(0, 20) == 20


def test_a_dropped_segment_is_no_longer_expected() -> None:
    segments = [[*range(120, 125), 1], [*range(150, 155), 2]]
    plan = SegmentPlan(SuffixAutomaton(ORIGINAL), segments)
    first = plan.next_switch(0)
    assert first is not None
    assert first.segment == 0
    plan.drop(0)
    second = plan.next_switch(0)
    assert second is not None
    assert second.segment == 1
    assert plan.next_switch(56) is None
    assert plan.next_switch(0, first_segment=2) is None


def test_an_unplanned_entry_leaves_at_the_nearest_tail_behind_it() -> None:
    original = [*range(10, 20), 7, 8, 9, *range(20, 30), 7, 8, 9]
    plan = SegmentPlan(SuffixAutomaton(original), [[1, 2, 3, 7, 8, 9]])
    plan.drop(0)
    assert plan.exit_of(0, 5) == 13
    assert plan.exit_of(0, 14) == 26


TOKENS = st.lists(st.integers(0, 3), max_size=40)


@given(original=TOKENS, segments=st.lists(TOKENS, max_size=4))
def test_planned_switches_are_copies_in_the_order_of_the_file(
    original: list[int], segments: list[list[int]]
) -> None:
    switches = plan_of(original, *segments)
    for switch in switches:
        segment = segments[switch.segment]
        head = segment[: switch.offset]
        assert original[switch.enter - len(head) : switch.enter] == head
        assert 0 <= switch.enter <= switch.exit <= len(original)
    for before, after in pairwise(switches):
        assert before.segment < after.segment
        assert before.exit <= after.enter
