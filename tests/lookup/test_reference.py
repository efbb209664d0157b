"""References: every anchor follows what it says it follows, and none that counts is missed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from oracles.edits.substrings import end_positions, longest_repeated_suffix, longest_suffix_in

from lookup.reference import (
    MAX_MATCH,
    SEPARATOR,
    WINDOW_AHEAD,
    WINDOW_WRITTEN,
    OutputReference,
    Reference,
    SegmentedReference,
)

TOKENS = st.lists(st.integers(0, 2), max_size=40)


@given(text=TOKENS, pieces=st.lists(TOKENS, min_size=1, max_size=4), place=st.integers(0, 40))
def test_anchors_are_the_longest_match_and_all_near_ones(
    text: list[int], pieces: list[list[int]], place: int
) -> None:
    reference = Reference("original", text, trust=0.0)
    reference.place = min(place, len(text))
    output: list[int] = []
    for piece in pieces:
        output += piece
        anchors = {a.position: a.match_length for a in reference.anchors(output)}
        for position, match in anchors.items():
            assert match == min(longest_common_tail(text[:position], output), MAX_MATCH)
        longest = longest_suffix_in(text, output)
        suffix = output[len(output) - longest :]
        assert set(anchors) >= set(end_positions(text, suffix) if longest else ())
        assert set(anchors) >= set(end_positions(text, output[-1:]) if output else ())


def longest_common_tail(left: list[int], right: list[int]) -> int:
    length = 0
    while length < min(len(left), len(right)) and left[-1 - length] == right[-1 - length]:
        length += 1
    return length


def test_a_long_silence_is_caught_up_from_the_last_tokens() -> None:
    text = list(range(300))
    reference = Reference("original", text, trust=0.0)
    reference.anchors([7])
    [anchor] = reference.anchors([7, *range(1000, 1200), *range(100, 140)])
    assert (anchor.position, anchor.match_length) == (140, MAX_MATCH)


def test_far_places_are_left_out_when_there_are_too_many() -> None:
    text = [1, 2] * 2000
    reference = Reference("original", text, trust=0.0)
    anchors = reference.anchors([1, 2])
    assert anchors
    assert all(anchor.position <= WINDOW_AHEAD for anchor in anchors)


def test_segments_never_match_across_their_border() -> None:
    snippet = SegmentedReference("snippet", [[1, 2], [3, 4, 5]], trust=1.0)
    assert snippet.token_ids == [1, 2, SEPARATOR, 3, 4, 5, SEPARATOR]
    assert [snippet.segment_at(position) for position in range(7)] == [0, 0, 0, 1, 1, 1, 1]
    [anchor] = snippet.anchors([1, 2, 3])
    assert (anchor.position, anchor.match_length) == (4, 1)


@given(pieces=st.lists(TOKENS, min_size=1, max_size=4), min_match=st.integers(1, 6))
def test_the_output_repeats_itself_from_its_longest_repetition(
    pieces: list[list[int]], min_match: int
) -> None:
    reference = OutputReference("output", trust=0.0, min_match=min_match)
    output = reference.token_ids
    for piece in pieces:
        output += piece
        anchors = reference.anchors(output)
        length = longest_repeated_suffix(output)
        if length < min_match:
            assert anchors == []
        else:
            [anchor] = anchors
            match = min(length, MAX_MATCH)
            assert anchor.match_length == match
            assert anchor.position == end_positions(output[:-1], output[len(output) - match :])[-1]


def test_a_repetition_out_of_sight_is_copied_from_the_first_time() -> None:
    reference = OutputReference("output", trust=0.0, min_match=3)
    filler = list(range(100, 100 + WINDOW_WRITTEN))
    reference.token_ids += [1, 2, 3, 4, 9, 1, 2, 3, 5, *filler, 1, 2, 3]
    [anchor] = reference.anchors(reference.token_ids)
    assert (anchor.position, anchor.match_length) == (3, 3)


@given(text=st.lists(st.integers(0, 2), min_size=1, max_size=20), count=st.integers(0, 70))
def test_what_repeats_itself_goes_on_as_it_began(text: list[int], count: int) -> None:
    reference = OutputReference("output", trust=0.0, min_match=1)
    reference.token_ids += text
    for start in range(len(text)):
        written = list(text)
        for token in reference.repeated(start, count):
            assert token == written[start + len(written) - len(text)]
            written.append(token)
        assert len(written) == len(text) + count
    assert reference.repeated(len(text), count) == []
