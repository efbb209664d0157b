"""Verification that lets drafts pass which the model would not have drawn: faster, another text.

The draws themselves stay exact, so a text differs from the model's own only in drafts that were let
pass. Three criteria, each for one request:

- typical: p(draft) > min(eps, delta * exp(-H(p))) (Cai et al., Medusa, arXiv 2401.10774, section
  3.3.1, with its defaults 0.09 and 0.3);
- adaptive: with probability `TOLERANCE` * (1 - max p), the more uncertain the model the oftener
  (Sun et al., EARS, arXiv 2512.13194, for drafts that are proposed with certainty);
- top-n: the draft is among the `TOP_N` likeliest tokens.

p is the filtered distribution. At temperature 0 the first two let nothing pass, as max p is 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import torch
from torch import Tensor

from kernels.philox import philox_uniform
from kernels.rejection_verify import SamplingTensors, filter_probs
from kernels.verification import Verification

TYPICAL_EPSILON = 0.09
TYPICAL_DELTA = 0.3
TOLERANCE = 0.3
TOP_N = 3
# The draws that let drafts pass must not be those that tokens are drawn with.
_OTHER_SEED = 0x5DEECE66D


class Acceptance(StrEnum):
    """Which drafts pass besides those that are right."""

    EXACT = "exact"
    TYPICAL = "typical"
    ADAPTIVE = "adaptive"
    TOP_N = "top-n"


@dataclass(frozen=True, slots=True)
class LossyRows:
    """The rows of some requests, as in `greedy_verify_reference`, and how each is verified.

    acceptances: one a request
    """

    logits: Tensor
    draft_token_ids: Tensor
    cu_rows: Tensor
    sampling: SamplingTensors
    acceptances: Sequence[Acceptance]


def lossy_verify(rows: LossyRows, *, drawn: Tensor) -> Verification:
    """Verify every request's drafts by its criterion.

    drawn: [num_rows] int64; the token that an exact verification draws at each row, whatever stands
        before it
    """
    token_ids = drawn.clone()
    bounds = rows.cu_rows.tolist()
    num_accepted = []
    for index, acceptance in enumerate(rows.acceptances):
        own = slice(bounds[index], bounds[index + 1])
        passes = rows.draft_token_ids[own] == drawn[own]
        if acceptance is not Acceptance.EXACT:
            passes |= _passes(rows, index, own, acceptance)
        passes &= rows.draft_token_ids[own] >= 0
        count = int(passes.long().cumprod(0).sum())
        token_ids[own][:count] = rows.draft_token_ids[own][:count]
        num_accepted.append(count)
    return Verification(token_ids, torch.tensor(num_accepted, device=drawn.device))


def _passes(rows: LossyRows, index: int, own: slice, acceptance: Acceptance) -> Tensor:
    """[num_own_rows] bool: the drafts that a criterion lets pass."""
    logits = rows.logits[own]
    drafts = rows.draft_token_ids[own].clamp(min=0)[:, None]
    if acceptance is Acceptance.TOP_N:
        count = min(TOP_N, logits.shape[1])
        return (logits.topk(count, dim=-1).indices == drafts).any(dim=-1)
    sampling = rows.sampling
    if float(sampling.temperature[index]) == 0.0:
        return torch.zeros(len(logits), dtype=torch.bool, device=logits.device)
    probs = filter_probs(
        logits,
        temperature=float(sampling.temperature[index]),
        top_k=int(sampling.top_k[index]),
        top_p=float(sampling.top_p[index]),
    )
    probs = probs / probs.sum(dim=-1, keepdim=True)
    of_draft = probs.gather(1, drafts).squeeze(1)
    if acceptance is Acceptance.TYPICAL:
        entropy = torch.special.entr(probs).sum(dim=-1)
        return of_draft > (TYPICAL_DELTA * torch.exp(-entropy)).clamp(max=TYPICAL_EPSILON)
    seed = int(sampling.seeds[index]) ^ _OTHER_SEED
    uniforms = torch.tensor(
        [philox_uniform(seed, position) for position in sampling.positions[own].tolist()],
        device=logits.device,
    )
    # A draft that the filters forbid never passes.
    return (uniforms < TOLERANCE * (1.0 - probs.amax(dim=-1))) & (of_draft > 0.0)
