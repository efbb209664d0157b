"""Drafts with a language model whose keys and values stand in pages, like the target's."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from batching.drafters.drafter import DraftAsk
from batching.drafters.growth import Growth
from batching.drafters.own_layers import RowRun, drafted_runs, pack_runs
from batching.drafters.target import TargetModel
from batching.model.loading import ModelShape, PagedKV, compute_logits, run_decoder
from kernels.attention_work import AttentionHeads
from lookup.proposer import Draft


class ModelChain:
    """A model that drafts one token after another, for all requests at once."""

    def __init__(
        self, model: nn.Module, paged_kv: PagedKV, *, target: TargetModel, shape: ModelShape
    ) -> None:
        """shape: of `model`; paged_kv: its keys and values, under the target's block ids"""
        self._model = model
        self._paged_kv = paged_kv
        self._target = target
        self._heads = AttentionHeads(
            num_groups=shape.num_heads // shape.num_kv_heads,
            num_kv_heads=shape.num_kv_heads,
            head_dim=shape.head_dim,
        )

    def compute(self, runs: Sequence[RowRun]) -> Tensor:
        """Hidden rows [num_rows, hidden_size]; writes their keys and values."""
        batch = pack_runs(runs, self._target, self._heads)
        return run_decoder(self._model, batch, paged_kv=self._paged_kv, ops=self._target.ops)

    def draft(self, asks: Sequence[DraftAsk], *, reference: str) -> list[Draft]:
        """Drafts behind texts of which keys and values are there, but for the last token.

        Writes keys and values from the last token of each text on.
        """
        growth = Growth(self._target, asks, reference=reference)
        tokens = torch.tensor([ask.token_ids[-1] for ask in growth.live_asks])
        while growth.live:
            runs = drafted_runs(growth.live_asks, tokens, shift=growth.depth - 1)
            tokens = growth.grow(compute_logits(self._model, self.compute(runs)))
        return growth.drafts()
