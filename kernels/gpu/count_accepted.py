"""Counts each request's drafts that hold, without a round trip to the host."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_ROWS_AT_ONCE = 64


def count_accepted_triton(token_ids: Tensor, draft_token_ids: Tensor, cu_rows: Tensor) -> Tensor:
    """Do as `count_accepted` on the device.

    `token_ids` [num_rows] behind a request's first mismatch become -1.
    """
    num_requests = cu_rows.shape[0] - 1
    num_accepted = torch.empty(num_requests, dtype=torch.int64, device=token_ids.device)
    _count_accepted[(num_requests,)](
        token_ids, draft_token_ids, cu_rows, num_accepted, BLOCK=_ROWS_AT_ONCE, num_warps=2
    )
    return num_accepted


@triton.jit
def _count_accepted(
    token_ids_ptr, draft_token_ids_ptr, cu_rows_ptr, num_accepted_ptr, BLOCK: tl.constexpr
):
    request = tl.program_id(0)
    start = tl.load(cu_rows_ptr + request)
    stop = tl.load(cu_rows_ptr + request + 1)
    first_mismatch = stop
    for block_start in range(start, stop, BLOCK):
        rows = block_start + tl.arange(0, BLOCK)
        is_row = rows < stop
        token_ids = tl.load(token_ids_ptr + rows, mask=is_row, other=0)
        drafts = tl.load(draft_token_ids_ptr + rows, mask=is_row, other=0)
        is_mismatch = is_row & ((token_ids != drafts) | (drafts < 0))
        first_mismatch = tl.minimum(first_mismatch, tl.min(tl.where(is_mismatch, rows, stop)))
        is_behind = is_row & (rows > first_mismatch)
        tl.store(token_ids_ptr + rows, tl.full([BLOCK], -1, tl.int64), mask=is_behind)
    tl.store(num_accepted_ptr + request, first_mismatch - start)
