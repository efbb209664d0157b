"""Random inputs of the verifiers with drafts that often hold, and a comparison of two outcomes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from batching.model.staging import Staging
from kernels.greedy_verify import greedy_verify_reference
from kernels.rejection_verify import SamplingTensors, rejection_verify_reference
from kernels.verification import AllowedTokens, Verification

# Temperature, top-k and top-p, from which each request gets one line.
GREEDY = ((0.0, 0, 1.0),)
FILTERS = (
    (0.0, 0, 1.0),
    (1.0, 0, 1.0),
    (0.7, 3, 1.0),
    (1.3, 0, 0.8),
    (0.9, 8, 0.95),
    (1e-6, 0, 1.0),
    (2.0, 1000, 0.999999),
)


@dataclass(frozen=True)
class VerifyCase:
    """Arguments of a verifier."""

    logits: Tensor
    draft_token_ids: Tensor
    cu_rows: Tensor
    allowed: AllowedTokens | None
    sampling: SamplingTensors

    def to(self, device: torch.device) -> VerifyCase:
        """The same case on another device."""
        return Staging(device).send(self)


def make_verify_case(
    num_drafts: list[int],
    *,
    vocab_size: int,
    seed: int,
    constraint: str = "none",
    is_coarse: bool = False,
    filters: tuple[tuple[float, int, float], ...] = ((0.8, 0, 1.0),),
) -> VerifyCase:
    """Make random logits; about two thirds of the drafts are the model's own tokens."""
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


def greedy(verifier: Callable[..., Verification], case: VerifyCase) -> Verification:
    return verifier(case.logits, case.draft_token_ids, cu_rows=case.cu_rows, allowed=case.allowed)


def sampled(verifier: Callable[..., Verification], case: VerifyCase) -> Verification:
    return verifier(
        case.logits,
        case.draft_token_ids,
        cu_rows=case.cu_rows,
        sampling=case.sampling,
        allowed=case.allowed,
    )


def check_same(ours: Verification, expected: Verification, cu_rows: Tensor) -> None:
    """Check for equal counts, and equal tokens up to each first mismatch."""
    assert ours.num_accepted.tolist() == expected.num_accepted.tolist()
    bounds = cu_rows.tolist()
    for request, accepted in enumerate(expected.num_accepted.tolist()):
        rows = slice(bounds[request], min(bounds[request] + accepted + 1, bounds[request + 1]))
        assert ours.token_ids[rows].tolist() == expected.token_ids[rows].tolist()
        assert (ours.token_ids[rows.stop : bounds[request + 1]] == -1).all()
