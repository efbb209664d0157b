"""The rivals do what their description says, checked against a scan of the whole context."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from oracles.edits.substrings import end_positions, longest_repeated_suffix

from benchmarks.drafters.baseline_drafters import AutomatonDrafter, NgramDrafter

TOKENS = st.lists(st.integers(0, 2), max_size=20)
PIECES = st.lists(TOKENS, max_size=4)


def scan_ngram(context: Sequence[int], *, min_n: int, max_n: int, k: int) -> list[int]:
    for n in range(max_n, min_n - 1, -1):
        ends = end_positions(context, context[len(context) - n :]) if n < len(context) else []
        if len(ends) > 1:
            return list(context[ends[0] : ends[0] + k])
    return []


@given(prompt=TOKENS, pieces=PIECES, min_n=st.integers(1, 2), more=st.integers(0, 3))
def test_ngram_copies_from_the_earliest_place(
    prompt: list[int], pieces: list[list[int]], min_n: int, more: int
) -> None:
    drafter = NgramDrafter(prompt, min_n=min_n, max_n=min_n + more)
    drafter.build()
    context = list(prompt)
    for piece in pieces:
        drafter.commit(piece)
        context += piece
        expected = scan_ngram(context, min_n=min_n, max_n=min_n + more, k=5)
        assert list(drafter.propose(5).token_ids) == expected


@given(prompt=TOKENS, pieces=PIECES)
def test_the_automaton_copies_after_the_longest_repeated_suffix(
    prompt: list[int], pieces: list[list[int]]
) -> None:
    drafter = AutomatonDrafter(prompt)
    drafter.build()
    context = list(prompt)
    for piece in pieces:
        drafter.commit(piece)
        context += piece
        length = longest_repeated_suffix(context)
        draft = drafter.propose(5)
        assert draft.match_length == length
        if length:
            end = end_positions(context, context[len(context) - length :])[0]
            assert list(draft.token_ids) == context[end : end + 5]
        else:
            assert len(draft) == 0
