"""Drafts pass by their criterion and no other; everything else is drawn exactly."""

from __future__ import annotations

import math
import random

import pytest
import torch

from kernels.lossy_verify import TOLERANCE, TOP_N, Acceptance, LossyRows, lossy_verify
from kernels.rejection_verify import SamplingTensors, filter_probs, rejection_verify_reference

VOCAB_SIZE = 12
NUM_ROWS = 6
KINDS = (Acceptance.TYPICAL, Acceptance.ADAPTIVE, Acceptance.TOP_N)


def make_sampling(temperatures: list[float], *, seed: int) -> SamplingTensors:
    count = len(temperatures)
    return SamplingTensors(
        temperature=torch.tensor(temperatures),
        top_k=torch.full((count,), 8),
        top_p=torch.full((count,), 0.95),
        seeds=torch.arange(count) + seed,
        positions=torch.arange(NUM_ROWS).repeat(count),
    )


def make_rows(
    acceptances: list[Acceptance], temperatures: list[float], *, seed: int
) -> tuple[LossyRows, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    count = len(acceptances)
    logits = torch.randn(count * NUM_ROWS, VOCAB_SIZE, generator=generator) * 2
    drafts = torch.randint(VOCAB_SIZE, (count * NUM_ROWS,), generator=generator)
    drafts[NUM_ROWS - 1 :: NUM_ROWS] = -1
    cu_rows = torch.arange(count + 1) * NUM_ROWS
    sampling = make_sampling(temperatures, seed=seed)
    drawn = rejection_verify_reference(
        logits,
        torch.full_like(drafts, -1),
        cu_rows=torch.arange(len(drafts) + 1),
        sampling=sampling.by_row(cu_rows),
    ).token_ids
    return LossyRows(logits, drafts, cu_rows, sampling, acceptances), drawn


def expected_to_pass(rows: LossyRows, at: int, acceptance: Acceptance, temperature: float) -> bool:
    """What the papers' formulas say of one row, except where chance decides."""
    logits, draft = rows.logits[at], int(rows.draft_token_ids[at])
    if acceptance is Acceptance.TOP_N:
        return draft in sorted(range(VOCAB_SIZE), key=lambda one: -float(logits[one]))[:TOP_N]
    weights = filter_probs(logits[None], temperature=temperature, top_k=8, top_p=0.95)[0].tolist()
    probs = [weight / sum(weights) for weight in weights]
    entropy = -sum(prob * math.log(prob) for prob in probs if prob)
    return probs[draft] > min(0.09, 0.3 * math.exp(-entropy))


@pytest.mark.parametrize("acceptance", [Acceptance.TYPICAL, Acceptance.TOP_N])
def test_a_draft_passes_if_its_criterion_says_so(acceptance: Acceptance) -> None:
    num_passed = 0
    for seed in range(300):
        rows, drawn = make_rows([acceptance], [0.8], seed=seed)
        verification = lossy_verify(rows, drawn=drawn)
        accepted = int(verification.num_accepted[0])
        for at in range(min(accepted + 1, NUM_ROWS - 1)):
            is_right = int(drawn[at]) == int(rows.draft_token_ids[at])
            passes = is_right or expected_to_pass(rows, at, acceptance, 0.8)
            assert passes == (at < accepted)
            num_passed += passes and not is_right
        stop = accepted + 1
        assert (
            verification.token_ids[:accepted].tolist() == rows.draft_token_ids[:accepted].tolist()
        )
        assert int(verification.token_ids[stop - 1]) == int(drawn[stop - 1])
    assert num_passed > 50


def test_the_more_uncertain_the_model_the_oftener_a_wrong_draft_passes() -> None:
    passed, expected, count = 0, 0.0, 0
    for seed in range(3000):
        rows, drawn = make_rows([Acceptance.ADAPTIVE], [0.8], seed=seed)
        probs = filter_probs(rows.logits[:1], temperature=0.8, top_k=8, top_p=0.95)[0]
        probs /= probs.sum()
        draft = int(rows.draft_token_ids[0])
        if float(probs[draft]) == 0.0 or draft == int(drawn[0]):
            continue
        count += 1
        expected += TOLERANCE * (1.0 - float(probs.max()))
        passed += int(lossy_verify(rows, drawn=drawn).num_accepted[0]) > 0
    assert abs(passed - expected) < 4 * math.sqrt(expected)
    assert count > 500


@pytest.mark.parametrize("acceptance", [Acceptance.TYPICAL, Acceptance.ADAPTIVE])
def test_where_the_model_takes_the_likeliest_nothing_else_passes(acceptance: Acceptance) -> None:
    for seed in range(100):
        rows, drawn = make_rows([acceptance], [0.0], seed=seed)
        verification = lossy_verify(rows, drawn=drawn)
        exact = rejection_verify_reference(
            rows.logits, rows.draft_token_ids, cu_rows=rows.cu_rows, sampling=rows.sampling
        )
        assert verification.num_accepted.tolist() == exact.num_accepted.tolist()


def test_exact_requests_beside_others_are_verified_exactly() -> None:
    generator = random.Random(0)
    for seed in range(100):
        acceptances = [generator.choice([Acceptance.EXACT, *KINDS]) for _ in range(4)]
        rows, drawn = make_rows(acceptances, [0.7, 0.0, 1.0, 0.7], seed=seed)
        verification = lossy_verify(rows, drawn=drawn)
        exact = rejection_verify_reference(
            rows.logits, rows.draft_token_ids, cu_rows=rows.cu_rows, sampling=rows.sampling
        )
        for index, acceptance in enumerate(acceptances):
            count = int(exact.num_accepted[index])
            if acceptance is Acceptance.EXACT:
                assert int(verification.num_accepted[index]) == count
            assert int(verification.num_accepted[index]) >= count
