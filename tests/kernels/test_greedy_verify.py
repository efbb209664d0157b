"""Greedy verification: prefixes of ragged drafts, ties, and lists of allowed tokens."""

from __future__ import annotations

from dataclasses import replace

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from kernels.greedy_verify import greedy_verify_reference
from kernels.verification import AllowedTokens

NO_DRAFT = -1


def make_logits(best: list[int], *, vocab_size: int = 9) -> Tensor:
    """Logits [num_rows, vocab_size] whose argmax is `best`, the other entries uneven."""
    logits = torch.arange(vocab_size, dtype=torch.float32).repeat(len(best), 1) / 100
    logits[range(len(best)), best] = 1.0
    return logits


def make_allowed(lists: list[list[int]]) -> AllowedTokens:
    flat = [token for tokens in lists for token in tokens]
    cu_lens = torch.tensor([0, *(len(tokens) for tokens in lists)]).cumsum(0)
    return AllowedTokens(torch.tensor(flat, dtype=torch.int64), cu_lens)


def verify(logits: Tensor, drafts: list[list[int]], allowed: AllowedTokens | None = None):
    """Token ids and accepted counts for one list of draft tokens a request."""
    flat = [token for draft in drafts for token in (*draft, NO_DRAFT)]
    cu_rows = torch.tensor([0, *(len(draft) + 1 for draft in drafts)]).cumsum(0)
    verification = greedy_verify_reference(
        logits, torch.tensor(flat), cu_rows=cu_rows, allowed=allowed
    )
    return verification.token_ids.tolist(), verification.num_accepted.tolist()


def test_a_prior_is_added_to_the_logits_of_allowed_tokens() -> None:
    logits = make_logits([4, 5, 6])
    allowed = replace(make_allowed([[2, 4], [5], []]), log_prior=torch.tensor([1.5, 0.0, 0.0]))
    token_ids, num_accepted = verify(logits, [[4, 5]], allowed)
    assert (token_ids[0], num_accepted) == (2, [0])
    assert verify(logits, [[2, 5]], allowed) == ([2, 5, 6], [2])


def test_a_request_without_drafts_gets_its_next_token() -> None:
    assert verify(make_logits([4]), [[]]) == ([4], [0])


def test_a_draft_that_holds_brings_the_bonus_token() -> None:
    assert verify(make_logits([4, 5, 6]), [[4, 5]]) == ([4, 5, 6], [2])


def test_tokens_behind_a_mismatch_do_not_count() -> None:
    token_ids, num_accepted = verify(make_logits([4, 5, 6, 7]), [[4, 0, 6]])
    assert num_accepted == [1]
    assert token_ids[:2] == [4, 5]


def test_ragged_requests_are_counted_apart() -> None:
    best = [1, 2, 3, 7, 0, 5, 5, 2]
    drafts = [[1, 2], [], [0], [6]]
    token_ids, num_accepted = verify(make_logits(best), drafts)
    assert num_accepted == [2, 0, 1, 0]
    assert token_ids[:7] == best[:7]


def test_ties_go_to_the_lowest_id() -> None:
    logits = torch.zeros(2, 6)
    logits[0, [2, 4]] = 3.0
    assert verify(logits, [[2]]) == ([2, 0], [1])


def test_an_allowed_list_restricts_its_row_and_an_empty_one_does_not() -> None:
    logits = make_logits([4, 4, 4])
    allowed = make_allowed([[0, 2], [], [7]])
    assert verify(logits, [[2, 4]], allowed) == ([2, 4, 7], [2])
    assert torch.equal(logits, make_logits([4, 4, 4])), "the caller's logits were changed"


def test_ties_inside_an_allowed_list_go_to_the_lowest_id_whatever_its_order() -> None:
    assert verify(torch.zeros(1, 6), [[]], make_allowed([[5, 3, 4]])) == ([3], [0])


@st.composite
def verifications(draw: st.DrawFn):
    """Logits with ties, drafts that often hold, and allowed lists of which some are empty."""
    vocab_size = 5
    drafts = draw(
        st.lists(st.lists(st.integers(0, vocab_size - 1), max_size=5), min_size=1, max_size=4)
    )
    num_rows = sum(len(draft) + 1 for draft in drafts)
    row = st.lists(st.integers(0, 2), min_size=vocab_size, max_size=vocab_size)
    logits = draw(st.lists(row, min_size=num_rows, max_size=num_rows))
    some = st.lists(st.integers(0, vocab_size - 1), unique=True, max_size=3)
    allowed = draw(st.none() | st.lists(some, min_size=num_rows, max_size=num_rows))
    return logits, drafts, allowed


@settings(deadline=None)
@given(verifications())
def test_agrees_with_a_loop_over_rows(
    example: tuple[list[list[int]], list[list[int]], list[list[int]] | None],
) -> None:
    logits, drafts, allowed = example
    token_ids, num_accepted = verify(
        torch.tensor(logits, dtype=torch.float32),
        drafts,
        make_allowed(allowed) if allowed else None,
    )
    expected = [
        min(candidates or range(len(row)), key=lambda token, row=row: (-row[token], token))
        for row, candidates in zip(logits, allowed or [[]] * len(logits), strict=True)
    ]
    start = 0
    for draft, accepted in zip(drafts, num_accepted, strict=True):
        own = expected[start : start + len(draft) + 1]
        is_equal = [token == best for token, best in zip([*draft, NO_DRAFT], own, strict=True)]
        assert accepted == is_equal.index(False)
        assert token_ids[start : start + accepted + 1] == own[: accepted + 1]
        start += len(own)
