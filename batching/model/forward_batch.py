"""A step plan as tensors: the rows of all requests packed into one sequence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate, chain

import torch
from torch import Tensor

from batching.step_plan import StepPlan
from kernels.rejection_verify import SamplingTensors
from kernels.verification import AllowedTokens

_NO_DRAFT = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardBatch:
    """Inputs of one forward pass, besides weights and cache.

    input_ids, position_ids, slot_mapping: [num_tokens] int64
    block_tables: [num_requests, max_blocks] int32, padded with 0
    cu_query_lens: [num_requests + 1] int32; context_lens: [num_requests] int32
    logits_rows: [num_rows] int64; rows of the pass whose logits are needed
    draft_token_ids: [num_rows] int64; the draft each of them is asked about, -1 for none
    cu_rows: [num_verified + 1] int64; bounds of the verified requests' rows
    allowed: what each row may take, None if no request of the step has a constraint
    sampling: one entry a verified request; None when all of them are greedy
    """

    input_ids: Tensor
    position_ids: Tensor
    slot_mapping: Tensor
    block_tables: Tensor
    cu_query_lens: Tensor
    context_lens: Tensor
    logits_rows: Tensor
    draft_token_ids: Tensor
    cu_rows: Tensor
    allowed: AllowedTokens | None
    sampling: SamplingTensors | None

    @classmethod
    def from_plan(cls, plan: StepPlan, *, block_size: int, device: torch.device) -> ForwardBatch:
        """Pack a plan of at least one request."""
        input_ids: list[int] = []
        positions: list[int] = []
        slots: list[int] = []
        query_bounds, row_bounds = [0], [0]
        logits_rows: list[int] = []
        draft_token_ids: list[int] = []
        for scheduled in plan.scheduled:
            input_ids += scheduled.token_ids
            input_ids += scheduled.draft_token_ids
            stop = scheduled.start + scheduled.num_rows
            positions += range(scheduled.start, stop)
            blocks = scheduled.block_ids
            slots += [
                blocks[position // block_size] * block_size + position % block_size
                for position in range(scheduled.start, stop)
            ]
            query_bounds.append(len(input_ids))
            if scheduled.has_logits:
                first_index = query_bounds[-2] - scheduled.start
                logits_rows += [first_index + row.position for row in scheduled.logits_rows]
                draft_token_ids += [
                    _NO_DRAFT if row.known_token_id is None else row.known_token_id
                    for row in scheduled.logits_rows
                ]
                row_bounds.append(len(logits_rows))

        def as_int64(values: list[int]) -> Tensor:
            return torch.tensor(values, dtype=torch.int64, device=device)

        return cls(
            input_ids=as_int64(input_ids),
            position_ids=as_int64(positions),
            slot_mapping=as_int64(slots),
            block_tables=_pack_block_tables(plan, device),
            cu_query_lens=as_int64(query_bounds).int(),
            context_lens=as_int64([s.start + s.num_rows for s in plan.scheduled]).int(),
            logits_rows=as_int64(logits_rows),
            draft_token_ids=as_int64(draft_token_ids),
            cu_rows=as_int64(row_bounds),
            allowed=_pack_allowed(plan, device),
            sampling=_pack_sampling(plan, device),
        )

    def with_verification_on(self, device: torch.device) -> ForwardBatch:
        """The same batch with what verification reads on `device`; the rest stays where it is."""
        return replace(
            self,
            draft_token_ids=self.draft_token_ids.to(device),
            cu_rows=self.cu_rows.to(device),
            allowed=None if self.allowed is None else self.allowed.to(device),
            sampling=None if self.sampling is None else self.sampling.to(device),
        )


def _pack_block_tables(plan: StepPlan, device: torch.device) -> Tensor:
    max_blocks = max(len(scheduled.block_ids) for scheduled in plan.scheduled)
    tables = [
        [*scheduled.block_ids, *[0] * (max_blocks - len(scheduled.block_ids))]
        for scheduled in plan.scheduled
    ]
    return torch.tensor(tables, dtype=torch.int32, device=device)


def _pack_allowed(plan: StepPlan, device: torch.device) -> AllowedTokens | None:
    if all(scheduled.constrained_rows is None for scheduled in plan.scheduled):
        return None
    rows = [
        row for scheduled in plan.scheduled if scheduled.has_logits for row in scheduled.logits_rows
    ]
    allowed = [row.allowed_token_ids for row in rows]
    prior = None
    if any(row.log_prior for row in rows):
        filled = (row.log_prior or (0.0,) * len(row.allowed_token_ids) for row in rows)
        prior = torch.tensor([*chain.from_iterable(filled)], dtype=torch.float32, device=device)
    return AllowedTokens(
        token_ids=torch.tensor([*chain.from_iterable(allowed)], dtype=torch.int64, device=device),
        cu_lens=torch.tensor([*accumulate(map(len, allowed), initial=0)], device=device),
        log_prior=prior,
    )


def _pack_sampling(plan: StepPlan, device: torch.device) -> SamplingTensors | None:
    verified = [scheduled for scheduled in plan.scheduled if scheduled.has_logits]
    if all(scheduled.sampling.temperature == 0 for scheduled in verified):
        return None
    params = [scheduled.sampling for scheduled in verified]

    def as_float32(values: list[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float32, device=device)

    return SamplingTensors(
        temperature=as_float32([p.temperature for p in params]),
        top_k=torch.tensor([p.top_k for p in params], device=device),
        top_p=as_float32([p.top_p for p in params]),
        seeds=torch.tensor([_wrap_seed(p.seed) for p in params], device=device),
        positions=torch.tensor(
            [s.output_position_of(row) for s in verified for row in s.logits_rows], device=device
        ),
    )


def _wrap_seed(seed: int) -> int:
    """The signed 64-bit number that equals `seed` modulo 2**64."""
    return (seed + (1 << 63)) % (1 << 64) - (1 << 63)
