"""Greedy verification: drafts hold while they equal the target's argmax."""

from __future__ import annotations

from torch import Tensor

from kernels.verification import AllowedTokens, Verification, count_accepted


def greedy_verify_reference(
    logits: Tensor,
    draft_token_ids: Tensor,
    *,
    cu_rows: Tensor,
    allowed: AllowedTokens | None = None,
) -> Verification:
    """Verify every request's drafts against the argmax of its rows; ties go to the lowest id.

    logits: [num_rows, vocab_size] float32
    draft_token_ids: [num_rows] int64; the draft that each row is asked about, -1 for none
    cu_rows: [num_requests + 1] int64; request i owns rows cu_rows[i]:cu_rows[i + 1], at least one
    """
    considered = logits if allowed is None else allowed.mask_logits(logits)
    token_ids = considered.argmax(dim=-1)  # [num_rows]
    return Verification(token_ids, count_accepted(token_ids, draft_token_ids, cu_rows))
