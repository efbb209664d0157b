"""Layers of which each rank holds a part, and whose results all ranks have alike."""

from __future__ import annotations

from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from batching.model.parallel.rank_group import RankGroup


class RowParallelLinear(nn.Module):
    """A linear layer whose inputs are split: the products of all ranks are summed."""

    def __init__(self, linear: nn.Linear, group: RankGroup) -> None:
        """linear: with the weight [out_features, own inputs], and the whole bias"""
        super().__init__()
        self.bias = linear.bias
        linear.register_parameter("bias", None)
        self.linear = linear
        self._group = group

    def forward(self, rows: Tensor) -> Tensor:
        """rows: [..., own inputs]. Returns [..., out_features]."""
        total = self._group.sum(self.linear(rows))
        return total if self.bias is None else total + self.bias


class VocabParallelEmbedding(nn.Module):
    """Embeddings of which each rank has those of some tokens."""

    def __init__(self, weight: nn.Parameter, group: RankGroup, *, start: int) -> None:
        """weight: [own tokens, hidden_size], from the token `start` on"""
        super().__init__()
        self.weight = weight
        self._group = group
        self._start = start

    def forward(self, token_ids: Tensor) -> Tensor:
        """token_ids: [...] int64. Returns [..., hidden_size]."""
        own = token_ids - self._start
        is_other = (own < 0) | (own >= len(self.weight))
        found = functional.embedding(own.clamp(0, len(self.weight) - 1), self.weight)
        return self._group.sum(found.masked_fill(is_other[..., None], 0.0))


class VocabParallelHead(nn.Module):
    """A head of which each rank has the logits of some tokens."""

    def __init__(self, linear: nn.Linear, group: RankGroup, *, start: int, vocab_size: int) -> None:
        """linear: with the weight [own tokens, hidden_size], from the token `start` on"""
        super().__init__()
        self.linear = linear
        self._group = group
        self._start = start
        self._vocab_size = vocab_size

    def forward(self, rows: Tensor) -> Tensor:
        """Logits [num_rows, vocab_size] on the lead; on other ranks they are of no use."""
        own = self.linear(rows)
        # Ranks have the same number of tokens, or one less.
        most = -(-self._vocab_size // self._group.size)
        parts = self._group.gather(functional.pad(own, (0, most - own.shape[1])))
        if not self._group.is_lead:
            return cast(Tensor, own)
        bounds = [self._vocab_size * rank // len(parts) for rank in range(len(parts) + 1)]
        lengths = [stop - start for start, stop in pairwise(bounds)]
        return torch.cat(
            [part[:, :length] for part, length in zip(parts, lengths, strict=True)], dim=1
        )

    def best(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The largest logit of each row [num_rows] float64 and its token [num_rows] int64.

        Of equal ones the lowest id. Two numbers a row go to the lead, and only its result counts.
        """
        own = self.linear(rows).float()
        at = own.argmax(dim=-1)
        largest = own.gather(1, at[:, None]).squeeze(1)
        parts = self._group.gather(torch.stack([largest.double(), (at + self._start).double()]))
        logits, token_ids = parts.unbind(dim=1)  # [num_ranks, num_rows]
        first = logits.argmax(dim=0)[None]  # ranks have ascending ids
        return logits.gather(0, first)[0], token_ids.gather(0, first)[0].long()
