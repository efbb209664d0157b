"""The Triton verifiers against the references: drafts, lists, priors, filters, seeds."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl
from verify_case import FILTERS, GREEDY, check_same, greedy, make_verify_case, sampled

from kernels.gpu.greedy_verify import greedy_verify_triton
from kernels.gpu.rejection_verify import draw_uniform, rejection_verify_triton
from kernels.greedy_verify import greedy_verify_reference
from kernels.philox import philox_uniform
from kernels.rejection_verify import rejection_verify_reference
from kernels.verification import AllowedTokens

LARGE_VOCAB_SIZE = 9001  # three blocks, the last one short


@pytest.mark.parametrize("constraint", ["none", "lists", "prior"])
@pytest.mark.parametrize("is_coarse", [False, True])
@pytest.mark.parametrize("num_drafts", [[0], [1, 0, 3], [70], [5, 5, 5, 0]])
def test_greedy_agrees_with_the_reference(
    num_drafts: list[int], is_coarse: bool, constraint: str
) -> None:
    case = make_verify_case(
        num_drafts,
        vocab_size=19 if is_coarse else 53,
        seed=len(num_drafts),
        constraint=constraint,
        is_coarse=is_coarse,
        filters=GREEDY,
    )
    check_same(
        greedy(greedy_verify_triton, case), greedy(greedy_verify_reference, case), case.cu_rows
    )


@pytest.mark.parametrize("constraint", ["none", "prior"])
def test_greedy_over_several_blocks_of_the_vocabulary(constraint: str) -> None:
    case = make_verify_case(
        [4, 0, 9],
        vocab_size=LARGE_VOCAB_SIZE,
        seed=1,
        constraint=constraint,
        is_coarse=True,
        filters=GREEDY,
    )
    check_same(
        greedy(greedy_verify_triton, case), greedy(greedy_verify_reference, case), case.cu_rows
    )


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


@pytest.mark.parametrize("constraint", ["none", "lists", "prior"])
@pytest.mark.parametrize("seed", range(3))
def test_sampling_draws_what_the_reference_draws(seed: int, constraint: str) -> None:
    case = make_verify_case(
        [0, 6, 2, 1, 0, 0], vocab_size=31, seed=seed, constraint=constraint, filters=FILTERS
    )
    check_same(
        sampled(rejection_verify_triton, case),
        sampled(rejection_verify_reference, case),
        case.cu_rows,
    )


@pytest.mark.parametrize("is_coarse", [False, True])
def test_sampling_over_several_blocks_of_the_vocabulary(is_coarse: bool) -> None:
    case = make_verify_case(
        [2, 0], vocab_size=LARGE_VOCAB_SIZE, seed=4, is_coarse=is_coarse, filters=((1.5, 0, 0.9),)
    )
    check_same(
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
