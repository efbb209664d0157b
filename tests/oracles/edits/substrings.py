"""Brute-force answers about substrings, to hold the suffix automaton to."""

from __future__ import annotations

from collections.abc import Sequence


def end_positions(text: Sequence[int], pattern: Sequence[int]) -> list[int]:
    """Every index just behind an occurrence of `pattern`, ascending; all of 1..n if it is empty."""
    size = len(pattern)
    return [
        end
        for end in range(max(1, size), len(text) + 1)
        if list(text[end - size : end]) == list(pattern)
    ]


def longest_suffix_in(text: Sequence[int], stream: Sequence[int]) -> int:
    """Length of the longest suffix of `stream` that occurs in `text`."""
    for length in range(min(len(text), len(stream)), 0, -1):
        if end_positions(text, stream[len(stream) - length :]):
            return length
    return 0


def longest_repeated_suffix(text: Sequence[int]) -> int:
    """Length of the longest suffix of `text` that also ends before the end of `text`."""
    for length in range(len(text) - 1, 0, -1):
        if len(end_positions(text, text[len(text) - length :])) > 1:
            return length
    return 0


def num_distinct_substrings(text: Sequence[int]) -> int:
    """Number of distinct substrings, the empty one left out."""
    return len({tuple(text[i:j]) for i in range(len(text)) for j in range(i + 1, len(text) + 1)})
