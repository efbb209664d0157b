"""The automaton against brute force, and its work on texts that are hard for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracles.edits.substrings import (
    end_positions,
    longest_repeated_suffix,
    longest_suffix_in,
    num_distinct_substrings,
)
from oracles.engine.line_counter import count_lines

from lookup.suffix_automaton import ROOT, SuffixAutomaton

SMALL = st.lists(st.integers(0, 2), max_size=24)


def walk(automaton: SuffixAutomaton, pattern: list[int]) -> int | None:
    state: int | None = ROOT
    for token in pattern:
        assert state is not None
        state = automaton.step(state, token)
        if state is None:
            return None
    return state


@given(text=SMALL, pattern=st.lists(st.integers(0, 2), max_size=6))
def test_a_pattern_is_found_exactly_where_it_occurs(text: list[int], pattern: list[int]) -> None:
    automaton = SuffixAutomaton(text)
    state = walk(automaton, pattern)
    expected = end_positions(text, pattern)
    if state is None:
        assert expected == []
    else:
        assert automaton.end_positions(state) == expected
        assert automaton.num_ends(state) == len(expected)
        if pattern:
            assert automaton.first_end(state) == expected[0]


@given(text=SMALL, stream=SMALL, cut=st.integers(0, 24))
def test_advance_tracks_the_longest_suffix(text: list[int], stream: list[int], cut: int) -> None:
    automaton = SuffixAutomaton(text)
    state, length = automaton.advance(ROOT, 0, stream[:cut])
    state, length = automaton.advance(state, length, stream[cut:])
    assert length == longest_suffix_in(text, stream)
    if length:
        suffix = stream[len(stream) - length :]
        assert automaton.end_positions(state) == end_positions(text, suffix)


@given(text=SMALL, stream=SMALL)
def test_parents_are_the_shorter_suffixes_with_more_ends(
    text: list[int], stream: list[int]
) -> None:
    automaton = SuffixAutomaton(text)
    state, length = automaton.advance(ROOT, 0, stream)
    while length:
        parent, shorter = automaton.parent(state)
        ends = end_positions(text, stream[len(stream) - length :])
        for between in range(length, shorter, -1):
            assert end_positions(text, stream[len(stream) - between :]) == ends
        if shorter:
            assert len(end_positions(text, stream[len(stream) - shorter :])) > len(ends)
        state, length = parent, shorter
    assert automaton.parent(ROOT) == (ROOT, 0)


@given(pieces=st.lists(st.lists(st.integers(0, 1), max_size=6), max_size=6))
def test_growing_in_pieces_equals_building_at_once(pieces: list[list[int]]) -> None:
    grown, text = SuffixAutomaton(), []
    for piece in pieces:
        grown.extend(piece)
        text += piece
        assert len(grown) == len(text)
        at_once = SuffixAutomaton(text)
        assert grown.num_states == at_once.num_states
        for end in range(len(text)):
            state = walk(grown, text[max(0, end - 3) : end])
            assert state is not None
            assert grown.end_positions(state) == end_positions(text, text[max(0, end - 3) : end])


@given(text=SMALL.filter(bool))
def test_the_repeated_suffix_ended_earlier(text: list[int]) -> None:
    automaton = SuffixAutomaton(text)
    state, length = automaton.repeated_suffix()
    assert length == longest_repeated_suffix(text)
    if length:
        suffix = text[len(text) - length :]
        assert automaton.first_end(state) == end_positions(text, suffix)[0]


@given(text=SMALL)
def test_states_hold_every_substring_once(text: list[int]) -> None:
    automaton = SuffixAutomaton(text)
    sizes = [automaton.parent(state) for state in range(automaton.num_states)]
    seen = {ROOT: 0}
    frontier = [(ROOT, 0)]
    while frontier:
        state, length = frontier.pop()
        for token in range(3):
            target = automaton.step(state, token)
            if target is not None and length + 1 > seen.get(target, -1):
                seen[target] = length + 1
                frontier.append((target, length + 1))
    total = sum(length - sizes[state][1] for state, length in seen.items())
    assert total == num_distinct_substrings(text)


@pytest.mark.parametrize("unit", [[5], [5, 6], [5, 5, 6]], ids=["equal", "period-2", "period-3"])
def test_repetitive_text_costs_linear_work(unit: list[int]) -> None:
    def work(size: int) -> int:
        text = (unit * size)[:size]

        def build_and_match() -> None:
            automaton = SuffixAutomaton(text)
            automaton.advance(ROOT, 0, [*text, 7, *text])
            automaton.end_positions(ROOT)

        return count_lines(build_and_match)

    assert work(20_000) <= 2.1 * work(10_000)


def test_a_hundred_thousand_equal_tokens_keep_every_end() -> None:
    automaton = SuffixAutomaton([5] * 100_000)
    state, length = automaton.advance(ROOT, 0, [5] * 60_000)
    assert length == 60_000
    assert automaton.num_ends(state) == 40_001
    assert automaton.num_states == 100_001
