"""The Triton verifiers against the references: drafts, lists, priors, filters, seeds."""

from __future__ import annotations

import random
from dataclasses import dataclass

import pytest
import torch
import triton
import triton.language as tl
from torch import Tensor

from kernels.gpu.greedy_verify import greedy_verify_triton
from kernels.gpu.rejection_verify import draw_uniform, rejection_verify_triton
from kernels.greedy_verify import greedy_verify_reference
from kernels.philox import philox_uniform
from kernels.rejection_verify import SamplingTensors, rejection_verify_reference
from kernels.verification import AllowedTokens, Verification

LARGE_VOCAB_SIZE = 9001  # three blocks, the last one short


@dataclass(frozen=True)
class VerifyCase:
    """Arguments of a verifier."""

    logits: Tensor
    draft_token_ids: Tensor
    cu_rows: Tensor
    allowed: AllowedTokens | None
    sampling: SamplingTensors


def make_case(
    num_drafts: list[int],
    *,
    vocab_size: int,
    seed: int,
    constraint: str = "none",
    is_coarse: bool = False,
    filters: tuple[tuple[float, int, float], ...] = ((0.8, 0, 1.0),),
) -> VerifyCase:
    """Random logits; about two thirds of the drafts are what the model would write."""
    generator = torch.Generator().manual_seed(seed)
    numbers = random.Random(seed)
    num_rows = sum(num_drafts) + len(num_drafts)
    logits = torch.randn(num_rows, vocab_size, generator=generator) * 3
    if is_coarse:
        logits = logits.round()
    cu_rows = torch.tensor([0, *(count + 1 for count in num_drafts)]).cumsum(0)
    chosen = [numbers.choice(filters) for _ in num_drafts]
    sampling = SamplingTensors(
        temperature=torch.tensor([temperature for temperature, _, _ in chosen]),
        top_k=torch.tensor([top_k for _, top_k, _ in chosen]),
        top_p=torch.tensor([top_p for _, _, top_p in chosen]),
        seeds=torch.tensor([numbers.getrandbits(63) - (1 << 62) for _ in num_drafts]),
        positions=torch.arange(num_rows) + 1000,
    )
    allowed = _make_allowed(num_rows, vocab_size, numbers, constraint)
    no_drafts = torch.full((num_rows,), -1)
    case = VerifyCase(logits, no_drafts, cu_rows, allowed, sampling)
    # Without drafts a verifier stops at each first row, so rows are asked one by one.
    single = VerifyCase(logits, no_drafts, torch.arange(num_rows + 1), allowed, _spread(case))
    drafts = sampled(rejection_verify_reference, single).token_ids.clone()
    if all(temperature == 0 for temperature, _, _ in filters):
        drafts = greedy(greedy_verify_reference, single).token_ids.clone()
    for row in range(num_rows):
        if numbers.random() < 0.1:
            drafts[row] = numbers.randrange(vocab_size)
    drafts[cu_rows[1:] - 1] = -1
    return VerifyCase(logits, drafts, cu_rows, allowed, sampling)


def _make_allowed(
    num_rows: int, vocab_size: int, numbers: random.Random, constraint: str
) -> AllowedTokens | None:
    if constraint == "none":
        return None
    lists = []
    for _ in range(num_rows):
        length = numbers.choice([0, 1, 2, 5, min(300, vocab_size)])
        lists.append(sorted(numbers.sample(range(vocab_size), length)))
    flat = torch.tensor([token for tokens in lists for token in tokens], dtype=torch.int64)
    prior = None
    if constraint == "prior":
        prior = torch.tensor([numbers.uniform(-3, 3) for _ in range(len(flat))])
    cu_lens = torch.tensor([0, *map(len, lists)]).cumsum(0)
    return AllowedTokens(flat, cu_lens, prior)


def _spread(case: VerifyCase) -> SamplingTensors:
    """The requests' sampling parameters, once for each of their rows."""
    counts = case.cu_rows.diff()
    return SamplingTensors(
        temperature=case.sampling.temperature.repeat_interleave(counts),
        top_k=case.sampling.top_k.repeat_interleave(counts),
        top_p=case.sampling.top_p.repeat_interleave(counts),
        seeds=case.sampling.seeds.repeat_interleave(counts),
        positions=case.sampling.positions,
    )


def greedy(verifier, case: VerifyCase) -> Verification:
    return verifier(case.logits, case.draft_token_ids, cu_rows=case.cu_rows, allowed=case.allowed)


def sampled(verifier, case: VerifyCase) -> Verification:
    return verifier(
        case.logits,
        case.draft_token_ids,
        cu_rows=case.cu_rows,
        sampling=case.sampling,
        allowed=case.allowed,
    )


def compare(ours: Verification, expected: Verification, cu_rows: Tensor) -> None:
    """The same counts, and the same tokens up to each first mismatch."""
    assert ours.num_accepted.tolist() == expected.num_accepted.tolist()
    bounds = cu_rows.tolist()
    for request, accepted in enumerate(expected.num_accepted.tolist()):
        rows = slice(bounds[request], min(bounds[request] + accepted + 1, bounds[request + 1]))
        assert ours.token_ids[rows].tolist() == expected.token_ids[rows].tolist()
        assert (ours.token_ids[rows.stop : bounds[request + 1]] == -1).all()


GREEDY = ((0.0, 0, 1.0),)


@pytest.mark.parametrize("constraint", ["none", "lists", "prior"])
@pytest.mark.parametrize("is_coarse", [False, True])
@pytest.mark.parametrize("num_drafts", [[0], [1, 0, 3], [70], [5, 5, 5, 0]])
def test_greedy_agrees_with_the_reference(
    num_drafts: list[int], is_coarse: bool, constraint: str
) -> None:
    case = make_case(
        num_drafts,
        vocab_size=19 if is_coarse else 53,
        seed=len(num_drafts),
        constraint=constraint,
        is_coarse=is_coarse,
        filters=GREEDY,
    )
    compare(greedy(greedy_verify_triton, case), greedy(greedy_verify_reference, case), case.cu_rows)


@pytest.mark.parametrize("constraint", ["none", "prior"])
def test_greedy_over_several_blocks_of_the_vocabulary(constraint: str) -> None:
    case = make_case(
        [4, 0, 9],
        vocab_size=LARGE_VOCAB_SIZE,
        seed=1,
        constraint=constraint,
        is_coarse=True,
        filters=GREEDY,
    )
    compare(greedy(greedy_verify_triton, case), greedy(greedy_verify_reference, case), case.cu_rows)


def test_equal_logits_in_different_blocks_go_to_the_lowest_id() -> None:
    logits = torch.zeros(2, LARGE_VOCAB_SIZE)
    logits[0, [5000, 8999]] = 1.0
    drafts, cu_rows = torch.tensor([5000, -1]), torch.tensor([0, 2])
    verification = greedy_verify_triton(logits, drafts, cu_rows=cu_rows)
    assert verification.token_ids.tolist() == [5000, 0]
    assert verification.num_accepted.tolist() == [1]


def test_half_precision_logits_and_a_request_whose_drafts_all_hold() -> None:
    logits = torch.eye(3, 20, dtype=torch.float16)
    drafts, cu_rows = torch.tensor([0, 1, 2]), torch.tensor([0, 3])
    verification = greedy_verify_triton(logits, drafts, cu_rows=cu_rows)
    assert verification.num_accepted.tolist() == [3]


def test_an_impossible_list_still_gives_one_of_its_tokens() -> None:
    logits = torch.zeros(1, 20)
    logits[0, [7, 9]] = float("-inf")
    allowed = AllowedTokens(torch.tensor([7, 9]), torch.tensor([0, 2]))
    verification = greedy_verify_triton(
        logits, torch.tensor([-1]), cu_rows=torch.tensor([0, 1]), allowed=allowed
    )
    assert verification.token_ids.tolist() == [7]


FILTERS = (
    (0.0, 0, 1.0),
    (1.0, 0, 1.0),
    (0.7, 3, 1.0),
    (1.3, 0, 0.8),
    (0.9, 8, 0.95),
    (1e-6, 0, 1.0),
    (2.0, 1000, 0.999999),
)


@pytest.mark.parametrize("constraint", ["none", "lists", "prior"])
@pytest.mark.parametrize("seed", range(3))
def test_sampling_draws_what_the_reference_draws(seed: int, constraint: str) -> None:
    case = make_case(
        [0, 6, 2, 1, 0, 0], vocab_size=31, seed=seed, constraint=constraint, filters=FILTERS
    )
    compare(
        sampled(rejection_verify_triton, case),
        sampled(rejection_verify_reference, case),
        case.cu_rows,
    )


@pytest.mark.parametrize("is_coarse", [False, True])
def test_sampling_over_several_blocks_of_the_vocabulary(is_coarse: bool) -> None:
    case = make_case(
        [2, 0], vocab_size=LARGE_VOCAB_SIZE, seed=4, is_coarse=is_coarse, filters=((1.5, 0, 0.9),)
    )
    compare(
        sampled(rejection_verify_triton, case),
        sampled(rejection_verify_reference, case),
        case.cu_rows,
    )


@triton.jit
def _draw_uniforms(seeds_ptr, positions_ptr, uniforms_ptr):
    row = tl.program_id(0)
    uniform = draw_uniform(tl.load(seeds_ptr + row), tl.load(positions_ptr + row))
    tl.store(uniforms_ptr + row, uniform)


def test_the_random_numbers_are_those_of_the_reference() -> None:
    pairs = [(0, 0), (-1, 5), (2**62, 2**40), (-(2**63), 1), (2**63 - 1, 2**63 - 1), (7, 123)]
    uniforms = torch.empty(len(pairs), dtype=torch.float64)
    _draw_uniforms[(len(pairs),)](
        torch.tensor([seed for seed, _ in pairs]),
        torch.tensor([position for _, position in pairs]),
        uniforms,
    )
    assert uniforms.tolist() == [philox_uniform(seed, position) for seed, position in pairs]
