"""The result of a verification, and the ragged lists that it takes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of one verification step.

    token_ids: [num_rows] int64; the target's own token at each row. Rows behind a request's first
        mismatch may hold -1: their context was wrong, nobody may use them.
    num_accepted: [num_requests] int64; draft tokens that hold, counted from the first row. The
        token after them, token_ids[cu_rows[i] + num_accepted[i]], is new: recovered or bonus.
        There is none if every row of the request had a draft and all of them hold.
    """

    token_ids: Tensor
    num_accepted: Tensor


@dataclass(frozen=True, slots=True)
class AllowedTokens:
    """A ragged list (CSR) of the token ids that each row may take; an empty list allows all.

    token_ids: [num_allowed] int64
    cu_lens: [num_rows + 1] int64
    log_prior: [num_allowed] float32, added to the logits of these tokens; None adds nothing
    """

    token_ids: Tensor
    cu_lens: Tensor
    log_prior: Tensor | None = None

    def mask_logits(self, logits: Tensor) -> Tensor:
        """A copy of `logits` [num_rows, vocab_size] with the prior, -inf where not allowed."""
        masked = logits.clone()
        bounds = self.cu_lens.tolist()
        for row in range(logits.shape[0]):
            allowed = self.token_ids[bounds[row] : bounds[row + 1]]
            if allowed.numel():
                masked[row] = float("-inf")
                masked[row, allowed] = logits[row, allowed]
                if self.log_prior is not None:
                    masked[row, allowed] += self.log_prior[bounds[row] : bounds[row + 1]]
        return masked


def count_accepted(token_ids: Tensor, draft_token_ids: Tensor, cu_rows: Tensor) -> Tensor:
    """Length of each request's prefix of drafts equal to the target's tokens: [num_requests] int64.

    A row without a draft (-1), such as the last one of most requests, ends the prefix.
    """
    is_wrong = (token_ids != draft_token_ids) | (draft_token_ids < 0)
    num_wrong = torch.nn.functional.pad(is_wrong.cumsum(0), (1, 0))
    rows = torch.arange(token_ids.shape[0], device=token_ids.device)
    owners = torch.searchsorted(cu_rows, rows, right=True) - 1
    is_held = num_wrong[1:] == num_wrong[cu_rows[owners]]
    num_held = torch.nn.functional.pad(is_held.cumsum(0), (1, 0))
    return num_held[cu_rows[1:]] - num_held[cu_rows[:-1]]
