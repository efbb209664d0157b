"""Hidden rows and a head with clear winners, and drafts that mostly hold."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class HeadCase:
    """Arguments of a greedy head."""

    hidden: Tensor
    weight: Tensor
    draft_token_ids: Tensor
    cu_rows: Tensor

    def to(self, device: torch.device) -> HeadCase:
        """The same case on another device."""
        return HeadCase(
            self.hidden.to(device),
            self.weight.to(device),
            self.draft_token_ids.to(device),
            self.cu_rows.to(device),
        )


def make_head_case(
    num_drafts: list[int], *, vocab_size: int, hidden_size: int, dtype: torch.dtype
) -> HeadCase:
    """Make a case of small whole numbers, with many ties and sums exact in any order.

    Memory behind each row of hidden numbers and of weights is NaN.
    """
    generator = torch.Generator().manual_seed(vocab_size + hidden_size)

    def make(num_rows: int) -> Tensor:
        padded = torch.full((num_rows, hidden_size + 3), float("nan"), dtype=dtype)
        numbers = torch.randint(-2, 3, (num_rows, hidden_size), generator=generator)
        padded[:, :hidden_size] = numbers.to(dtype)
        return padded[:, :hidden_size]

    hidden, weight = make(sum(num_drafts) + len(num_drafts)), make(vocab_size)
    drafts = (hidden.float() @ weight.float().T).argmax(dim=-1)
    drafts[::7] = (drafts[::7] + 1) % vocab_size
    cu_rows = torch.tensor([0, *(count + 1 for count in num_drafts)]).cumsum(0)
    drafts[cu_rows[1:] - 1] = -1
    return HeadCase(hidden, weight, drafts, cu_rows)
