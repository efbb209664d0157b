"""The map to the vocabulary that all heads of a drafter share: a stored one, or the model's own."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from batching.drafters.checkpoint import Checkpoint
from batching.drafters.target import TargetModel

_WEIGHT = "lm_head.weight"
_ROWS_AT_ONCE = 64


def take_shared_head(
    target: TargetModel, checkpoint: Checkpoint, token_ids: Tensor | None
) -> Callable[[Tensor], Tensor]:
    """Maps rows [n, hidden_size] to the logits [n, num_drafted] of the drafted tokens.

    Its weight is `lm_head.weight`. A checkpoint without it drafts with the model's own head.

    token_ids: [num_drafted] int64, the tokens that are drafted; None for all
    """
    if checkpoint.has(_WEIGHT):
        num_tokens = target.shape.vocab_size if token_ids is None else len(token_ids)
        return target.linear(checkpoint.take(_WEIGHT, num_tokens, target.shape.hidden_size))
    return target.logits if token_ids is None else target.linear(_own_rows(target, token_ids))


@torch.no_grad()
def _own_rows(target: TargetModel, token_ids: Tensor) -> Tensor:
    """The weight [num_drafted, hidden_size] of the model's head, however it is stored."""
    units = torch.eye(target.shape.hidden_size, dtype=target.dtype, device=target.device)
    columns = [target.logits(rows)[:, token_ids] for rows in torch.split(units, _ROWS_AT_ONCE)]
    return torch.cat(columns).T.contiguous().to(target.dtype)
