"""Sampled verification: each row draws its own token, drafts hold while they equal the draws.

A draft proposes one token with certainty. Drawing from the target and keeping the draft when the
draw equals it accepts with the target's probability of that token, and on a mismatch the draw is
distributed as the target without it: exact rejection sampling (Leviathan et al., ICML 2023, with a
one-hot draft distribution). The draw of a row depends on its logits, seed and position only.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from kernels.philox import philox_uniform
from kernels.verification import AllowedTokens, Verification

_ROWS_AT_ONCE = 8
_MIN_TEMPERATURE = 1e-30  # the argmax for any logits, yet logits / temperature stay finite


@dataclass(frozen=True, slots=True)
class SamplingTensors:
    """Sampling parameters, one entry a request; positions, one a row.

    temperature: [num_requests] float32; 0 takes the argmax
    top_k: [num_requests] int64; 0 keeps every token
    top_p: [num_requests] float32 in (0, 1]; 1 keeps every token
    seeds: [num_requests] int64
    positions: [num_rows] int64; output position of the token that the row leads to
    """

    temperature: Tensor
    top_k: Tensor
    top_p: Tensor
    seeds: Tensor
    positions: Tensor

    def by_row(self, cu_rows: Tensor) -> SamplingTensors:
        """The same with each row as a request of its own. cu_rows: [num_requests + 1] int64"""
        counts = cu_rows.diff()
        return SamplingTensors(
            self.temperature.repeat_interleave(counts),
            self.top_k.repeat_interleave(counts),
            self.top_p.repeat_interleave(counts),
            self.seeds.repeat_interleave(counts),
            self.positions,
        )

    def to(self, device: torch.device) -> SamplingTensors:
        """The same on another device."""
        moved = (getattr(self, field.name).to(device) for field in fields(self))
        return SamplingTensors(*moved)


def rejection_verify_reference(
    logits: Tensor,
    draft_token_ids: Tensor,
    *,
    cu_rows: Tensor,
    sampling: SamplingTensors,
    allowed: AllowedTokens | None = None,
) -> Verification:
    """Verify every request's drafts against draws from its filtered distribution.

    Shapes as in `greedy_verify_reference`. Rows behind a mismatch are not drawn: they hold -1.
    """
    considered = logits if allowed is None else allowed.mask_logits(logits)
    token_ids = torch.full_like(draft_token_ids, -1)
    bounds = cu_rows.tolist()
    num_accepted = []
    for request_index in range(len(bounds) - 1):
        start, stop = bounds[request_index], bounds[request_index + 1]
        drawn = _draw_until_mismatch(
            considered[start:stop],
            draft_token_ids[start:stop].tolist(),
            sampling.positions[start:stop].tolist(),
            sampling=sampling,
            request_index=request_index,
        )
        token_ids[start : start + len(drawn)] = torch.tensor(drawn, device=token_ids.device)
        is_all_kept = len(drawn) == stop - start and drawn[-1] == int(draft_token_ids[stop - 1])
        num_accepted.append(len(drawn) - (0 if is_all_kept else 1))
    return Verification(token_ids, torch.tensor(num_accepted, device=token_ids.device))


def filter_probs(logits: Tensor, *, temperature: float, top_k: int, top_p: float) -> Tensor:
    """Unnormalised target probabilities [num_rows, vocab_size] float32, zero where filtered out.

    softmax(logits / temperature), cut to the `top_k` largest, then to the smallest set of largest
    ones that holds `top_p` of what is left. Tokens tied with the last one kept are kept too.
    """
    probs = (logits.float() / max(temperature, _MIN_TEMPERATURE)).softmax(dim=-1)
    if 0 < top_k < probs.shape[-1]:
        smallest_kept = probs.topk(top_k, dim=-1).values[:, -1:]
        probs = torch.where(probs >= smallest_kept, probs, 0.0)
    if top_p < 1.0:
        mass = top_p * probs.sum(dim=-1, dtype=torch.float64)
        probs = torch.where(probs >= _nucleus_threshold(probs, mass)[:, None], probs, 0.0)
    return probs


def _nucleus_threshold(probs: Tensor, mass: Tensor) -> Tensor:
    """The largest value in each row such that entries at least as large sum up to `mass`.

    Entries below half of (total - mass) / vocab_size are left out before the others are sorted:
    together they hold less than may be cut off. In a peaked row that leaves few of them.
    probs: [num_rows, vocab_size] float32; mass: [num_rows] float64, below each row's total
    """
    total = probs.sum(dim=-1, dtype=torch.float64)
    negligible = ((total - mass) / (2 * probs.shape[-1])).float()
    thresholds = []
    for row, row_mass, row_negligible in zip(probs, mass, negligible, strict=True):
        candidates = row[row >= row_negligible].sort(descending=True).values
        is_short = candidates.cumsum(dim=0, dtype=torch.float64) < row_mass
        thresholds.append(candidates[is_short.sum()])
    return torch.stack(thresholds)


def _draw_until_mismatch(
    logits: Tensor,
    drafts: list[int],
    positions: list[int],
    *,
    sampling: SamplingTensors,
    request_index: int,
) -> list[int]:
    """Draw the target's tokens of one request's rows, up to the first that is not the draft."""
    temperature = float(sampling.temperature[request_index])
    top_k = int(sampling.top_k[request_index])
    top_p = float(sampling.top_p[request_index])
    seed = int(sampling.seeds[request_index])
    drawn: list[int] = []
    for start in range(0, len(drafts), _ROWS_AT_ONCE):
        rows = logits[start : start + _ROWS_AT_ONCE]
        if temperature == 0:
            tokens = rows.argmax(dim=-1).tolist()
        else:
            probs = filter_probs(rows, temperature=temperature, top_k=top_k, top_p=top_p)
            row_positions = positions[start : start + _ROWS_AT_ONCE]
            uniforms = [philox_uniform(seed, position) for position in row_positions]
            tokens = _invert_cdf(probs, uniforms)
        for offset, token in enumerate(tokens):
            drawn.append(token)
            if token != drafts[start + offset]:
                return drawn
    return drawn


def _invert_cdf(probs: Tensor, uniforms: list[float]) -> list[int]:
    """The first token of each row whose cumulative share exceeds the row's uniform draw."""
    cumulative = probs.cumsum(dim=-1, dtype=torch.float64)  # [num_rows, vocab_size]
    total = cumulative[:, -1:]
    targets = torch.tensor(uniforms, dtype=torch.float64, device=probs.device)[:, None] * total
    # A draw just below 1 may round up to the total, behind which there is no token.
    targets = torch.minimum(targets, torch.nextafter(total, torch.zeros_like(total)))
    tokens = torch.searchsorted(cumulative, targets, right=True)
    return [int(token) for token in tokens.squeeze(1)]
