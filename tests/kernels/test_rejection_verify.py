"""Sampled verification: filters against a sorting oracle, draws that depend on nothing else."""

from __future__ import annotations

import dataclasses
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.engine.sorted_filter import filter_sorted
from scipy import stats
from torch import Tensor

from kernels.greedy_verify import greedy_verify_reference
from kernels.philox import philox_uniform
from kernels.rejection_verify import SamplingTensors, filter_probs, rejection_verify_reference
from kernels.verification import AllowedTokens, Verification

NO_DRAFT = -1
VOCAB_SIZE = 12
LARGE_VOCAB_SIZE = 49_152


@dataclasses.dataclass(frozen=True)
class Row:
    """One request: its drafts and how it is sampled."""

    drafts: tuple[int, ...] = ()
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0
    position: int = 0


def make_logits(num_rows: int, *, seed: int, vocab_size: int = VOCAB_SIZE) -> Tensor:
    return torch.randn(num_rows, vocab_size, generator=torch.Generator().manual_seed(seed)) * 2


def verify(
    logits: Tensor, requests: list[Row], allowed: AllowedTokens | None = None
) -> Verification:
    drafts = [token for request in requests for token in (*request.drafts, NO_DRAFT)]
    cu_rows = torch.tensor([0, *(len(request.drafts) + 1 for request in requests)]).cumsum(0)
    sampling = SamplingTensors(
        temperature=torch.tensor([request.temperature for request in requests]),
        top_k=torch.tensor([request.top_k for request in requests]),
        top_p=torch.tensor([request.top_p for request in requests]),
        seeds=torch.tensor([request.seed for request in requests]),
        positions=torch.tensor(
            [
                request.position + row
                for request in requests
                for row in range(len(request.drafts) + 1)
            ]
        ),
    )
    return rejection_verify_reference(
        logits, torch.tensor(drafts), cu_rows=cu_rows, sampling=sampling, allowed=allowed
    )


def draw_one(logits: Tensor, request: Row) -> int:
    """The token of a single row [vocab_size]."""
    return int(verify(logits[None], [dataclasses.replace(request, drafts=())]).token_ids[0])


def normalised(probs: Tensor) -> Tensor:
    return probs.double() / probs.double().sum(dim=-1, keepdim=True)


# Logits on a coarse grid make ties; the oracle's float64 must not split what is equal in float32.
coarse_logits = st.lists(
    st.integers(-12, 12).map(lambda step: step / 2), min_size=1, max_size=VOCAB_SIZE
)


@settings(deadline=None)
@given(
    logits=coarse_logits,
    temperature=st.sampled_from([0.25, 0.5, 1.0, 2.0]),
    top_k=st.integers(0, VOCAB_SIZE + 1),
    top_p=st.sampled_from([1e-6, 0.1234, 0.377, 0.6543, 0.8111, 0.9377, 0.999999, 1 - 2**-24, 1.0]),
)
def test_filters_agree_with_sorting(
    logits: list[float], temperature: float, top_k: int, top_p: float
) -> None:
    probs = filter_probs(torch.tensor([logits]), temperature=temperature, top_k=top_k, top_p=top_p)
    expected = filter_sorted(logits, temperature=temperature, top_k=top_k, top_p=top_p)
    torch.testing.assert_close(
        normalised(probs)[0], torch.tensor(expected, dtype=torch.float64), atol=1e-6, rtol=1e-5
    )


def test_tokens_tied_with_the_last_kept_one_are_kept() -> None:
    logits = torch.tensor([[3.0, 1.0, 1.0, 1.0, 0.0]])
    by_count = filter_probs(logits, temperature=1.0, top_k=2, top_p=1.0)
    assert (by_count > 0).tolist() == [[True, True, True, True, False]]
    by_mass = filter_probs(logits, temperature=1.0, top_k=0, top_p=0.75)
    assert (by_mass > 0).tolist() == [[True, True, True, True, False]]


@pytest.mark.parametrize("shape", ["flat", "peaked", "random", "two peaks"])
@pytest.mark.parametrize(("top_k", "top_p"), [(0, 0.9), (50, 1.0), (50, 0.9), (0, 0.999999)])
def test_filters_on_a_large_vocabulary(shape: str, top_k: int, top_p: float) -> None:
    logits = {
        "flat": torch.zeros(LARGE_VOCAB_SIZE),
        "peaked": torch.full((LARGE_VOCAB_SIZE,), -40.0).index_fill(0, torch.tensor([7]), 40.0),
        "random": make_logits(1, seed=0, vocab_size=LARGE_VOCAB_SIZE)[0],
        "two peaks": torch.zeros(LARGE_VOCAB_SIZE).index_fill(0, torch.tensor([3, 9]), 14.0),
    }[shape]
    probs = filter_probs(logits[None], temperature=1.0, top_k=top_k, top_p=top_p)
    expected = torch.tensor(
        filter_sorted(logits.tolist(), temperature=1.0, top_k=top_k, top_p=top_p),
        dtype=torch.float64,
    )
    # Rounding in 49,152 float32 probabilities may move the border of the nucleus by a few tokens.
    is_different = (probs[0] > 0) != (expected > 0)
    assert int(is_different.sum()) <= 4
    assert float(expected[is_different].sum()) <= 1e-6
    torch.testing.assert_close(normalised(probs)[0], expected, atol=1e-6, rtol=1e-4)


def test_an_extremely_small_top_p_keeps_the_most_probable_token_alone() -> None:
    logits = make_logits(20, seed=1)
    probs = filter_probs(logits, temperature=1.0, top_k=0, top_p=1e-6)
    assert torch.equal((probs > 0).sum(dim=-1), torch.ones(20, dtype=torch.int64))
    assert torch.equal(probs.argmax(dim=-1), logits.argmax(dim=-1))


def test_temperature_zero_is_greedy_beside_sampled_requests() -> None:
    logits = make_logits(7, seed=2)
    best = logits.argmax(dim=-1).tolist()
    requests = [
        Row(drafts=(best[0], best[1], (best[2] + 1) % VOCAB_SIZE), temperature=0.0),
        Row(drafts=(best[4],), temperature=0.0, top_k=3, top_p=0.5),
        Row(seed=5),
    ]
    verification = verify(logits, requests)
    drafts = torch.tensor([*requests[0].drafts, -1, best[4], -1, -1])
    greedy = greedy_verify_reference(logits, drafts, cu_rows=torch.tensor([0, 4, 6, 7]))
    assert verification.num_accepted.tolist() == [2, 1, 0]
    assert verification.num_accepted[:2].tolist() == greedy.num_accepted[:2].tolist()
    assert verification.token_ids.tolist()[:6] == [*best[:3], -1, *best[4:6]]


@pytest.mark.parametrize("temperature", [1e-40, 1e-6, 1e-3])
def test_a_tiny_temperature_takes_the_most_probable_token(temperature: float) -> None:
    logits = make_logits(6, seed=3)
    drawn = [draw_one(row, Row(temperature=temperature, seed=9)) for row in logits]
    assert drawn == logits.argmax(dim=-1).tolist()


def test_rows_behind_a_mismatch_are_not_drawn() -> None:
    logits = make_logits(20, seed=4)
    right = [draw_one(row, Row(seed=3, position=10 + i)) for i, row in enumerate(logits)]
    for num_right in range(20):
        drafts = [*right[:num_right], (right[num_right] + 1) % VOCAB_SIZE, *right[num_right + 1 :]]
        verification = verify(logits, [Row(tuple(drafts[:19]), seed=3, position=10)])
        assert verification.num_accepted.tolist() == [num_right]
        expected = right[: num_right + 1] + [-1] * (19 - num_right)
        assert verification.token_ids.tolist() == expected


def test_the_draw_inverts_the_cumulative_distribution() -> None:
    logits = make_logits(1, seed=5)[0]
    expected = filter_sorted(logits.tolist(), temperature=0.8, top_k=7, top_p=0.95)
    for seed in range(200):
        left = philox_uniform(seed, 41)
        token = draw_one(logits, Row(temperature=0.8, top_k=7, top_p=0.95, seed=seed, position=41))
        assert sum(expected[:token]) - 1e-6 <= left <= sum(expected[: token + 1]) + 1e-6
        assert expected[token] > 0


@settings(deadline=None)
@given(
    seed=st.integers(-(2**63), 2**63 - 1),
    position=st.integers(0, 1 << 20),
    neighbours=st.lists(st.integers(0, 3), max_size=4),
    is_last=st.booleans(),
)
def test_a_draw_depends_on_logits_seed_and_position_only(
    seed: int, position: int, neighbours: list[int], is_last: bool
) -> None:
    logits = make_logits(12, seed=6)
    alone = [
        draw_one(row, Row(seed=seed, position=position + offset))
        for offset, row in enumerate(logits)
    ]
    own = Row(tuple(alone[:11]), seed=seed, position=position)
    others = [Row((0,) * num_drafts, temperature=0.7, seed=1) for num_drafts in neighbours]
    padding = make_logits(sum(neighbours) + len(neighbours), seed=7)
    requests = [*others, own] if is_last else [own, *others]
    packed = torch.cat([padding, logits] if is_last else [logits, padding])
    verification = verify(packed, requests)
    assert verification.num_accepted.tolist()[-1 if is_last else 0] == 11
    start = len(padding) if is_last else 0
    assert verification.token_ids.tolist()[start : start + 12] == alone


def test_every_row_of_a_long_draft_has_its_own_position() -> None:
    logits = torch.zeros(30, VOCAB_SIZE)
    expected = [int(philox_uniform(8, 100 + i) * VOCAB_SIZE) for i in range(30)]
    verification = verify(logits, [Row(tuple(expected[:29]), seed=8, position=100)])
    assert verification.token_ids.tolist() == expected


def test_allowed_tokens_are_all_that_is_drawn() -> None:
    logits = make_logits(400, seed=8)
    lists = [[], [3], [2, 7], [0, 5, 11]] * 100
    cu_lens = torch.tensor([0, *map(len, lists)]).cumsum(0)
    allowed = AllowedTokens(torch.tensor([t for tokens in lists for t in tokens]), cu_lens)
    requests = [Row(seed=seed, top_p=0.9) for seed in range(400)]
    drawn = verify(logits, requests, allowed).token_ids.tolist()
    for tokens, token, row, request in zip(lists, drawn, logits, requests, strict=True):
        assert not tokens or token in tokens
        if not tokens:
            assert token == draw_one(row, request)
    assert {token for token, tokens in zip(drawn, lists, strict=True) if len(tokens) == 3} == {
        0,
        5,
        11,
    }


def test_drafts_are_verified_among_the_allowed_tokens() -> None:
    logits = torch.zeros(3, VOCAB_SIZE)
    allowed = AllowedTokens(torch.tensor([4, 4]), torch.tensor([0, 1, 2, 2]))
    assert verify(logits, [Row((4, 5))], allowed).num_accepted.tolist() == [1]
    assert verify(logits, [Row((4, 4))], allowed).num_accepted.tolist() == [2]


@pytest.mark.parametrize("draft", [0, 5, NO_DRAFT])
def test_a_draft_does_not_change_what_is_drawn(draft: int) -> None:
    """Chi-square over 4,000 seeds: accepted and recovered tokens together follow the target."""
    logits = make_logits(1, seed=9)[0]
    expected = filter_sorted(logits.tolist(), temperature=1.3, top_k=8)
    rows = logits.repeat(2 if draft >= 0 else 1, 1)
    drafts = (draft,) if draft >= 0 else ()
    counts = [0] * VOCAB_SIZE
    for seed in range(4000):
        request = Row(drafts, temperature=1.3, top_k=8, seed=seed, position=2)
        counts[int(verify(rows, [request]).token_ids[0])] += 1
    kept = [token for token in range(VOCAB_SIZE) if expected[token] > 0]
    assert sum(counts[token] for token in kept) == 4000
    assert (
        stats.chisquare(
            [counts[token] for token in kept], [expected[token] * 4000 for token in kept]
        ).pvalue
        > 1e-4
    )


def test_the_last_token_can_be_drawn_but_nothing_behind_it() -> None:
    generator = random.Random(0)
    logits = torch.full((1, LARGE_VOCAB_SIZE), -30.0)
    logits[0, -1] = 5.0
    for _ in range(20):
        assert draw_one(logits[0], Row(seed=generator.getrandbits(62))) == LARGE_VOCAB_SIZE - 1
