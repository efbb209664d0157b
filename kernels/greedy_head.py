"""Greedy verification from hidden rows: the last matrix product and its argmax as one operation."""

from __future__ import annotations

from torch import Tensor

from kernels.greedy_verify import greedy_verify_reference
from kernels.verification import Verification


def greedy_head_reference(
    hidden: Tensor,
    weight: Tensor,
    draft_token_ids: Tensor,
    *,
    cu_rows: Tensor,
    writes_logits: bool = True,
) -> Verification:
    """Verify drafts against the argmax of `hidden @ weight.T`, rounded to its dtype first.

    Verification is that of `greedy_verify_reference` without lists of allowed tokens.

    hidden: [num_rows, hidden_size]; weight: [vocab_size, hidden_size], both of one floating type
    draft_token_ids, cu_rows: as for `greedy_verify_reference`
    writes_logits: how it is computed, which is nothing to the result
    """
    del writes_logits
    logits = (hidden @ weight.T).float()
    return greedy_verify_reference(logits, draft_token_ids, cu_rows=cu_rows)
