"""What a drafter may use of the model that it drafts for: its numbers, its head, its draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from batching.drafters.drafter import DraftAsk
from batching.model.loading import ModelShape, PagedKV, compute_logits
from kernels.linear import OneDnnLinear
from kernels.op_set import Ops
from kernels.rejection_verify import SamplingTensors


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetModel:
    """The model that is drafted for, and the memory of its cache.

    dtype: of hidden rows, keys and values
    paged_kv: the model's own cache; a drafter may write behind the known tokens of a request
    """

    model: nn.Module
    shape: ModelShape
    ops: Ops
    dtype: torch.dtype
    device: torch.device
    num_blocks: int
    block_size: int
    paged_kv: PagedKV

    def embed(self, token_ids: Tensor) -> Tensor:
        """Embeddings [..., hidden_size] of token ids [...]."""
        decoder = cast(Any, self.model).model
        return cast(Callable[[Tensor], Tensor], decoder.embed_tokens)(token_ids)

    def logits(self, rows: Tensor) -> Tensor:
        """Logits [n, vocab_size] float32 of hidden rows [n, hidden_size], by the model's head."""
        return compute_logits(self.model, rows)

    def linear(self, weight: Tensor, bias: Tensor | None = None) -> Callable[[Tensor], Tensor]:
        """A linear map as fast as the model's own. weight: [num_out, num_in]; bias: [num_out]"""
        num_out, num_in = weight.shape
        layer = nn.Linear(num_in, num_out, bias=bias is not None, device="meta")
        layer.weight = nn.Parameter(weight, requires_grad=False)
        if bias is not None:
            layer.bias = nn.Parameter(bias, requires_grad=False)
        if self.device.type == "cpu" and self.dtype in (torch.float32, torch.bfloat16):
            return OneDnnLinear.packed(layer)
        return layer

    def make_kv(self, *, num_layers: int, num_kv_heads: int, head_dim: int) -> PagedKV:
        """Further layers of keys and values under the block ids of the model's own."""
        shape = (num_layers, self.num_blocks, self.block_size, num_kv_heads, head_dim)
        keys, values = (torch.zeros(shape, dtype=self.dtype, device=self.device) for _ in range(2))
        return PagedKV(keys=keys, values=values)

    def draw(self, logits: Tensor, asks: Sequence[DraftAsk], *, depth: int) -> Tensor:
        """The token [n] int64 that each row leads to, as the model itself would draw it.

        A sampled token is drawn with the same uniform number as the model's will be, by the inverse
        of the distribution function: so the two are equal as often as they can be.

        logits: [n, vocab_size] float32, one row for each of `asks`; or those of fewer tokens, in
            the order of their ids
        depth: the drafted tokens that stand before these rows
        """
        if all(ask.sampling.temperature == 0 for ask in asks):
            return logits.argmax(dim=-1)
        sampling = SamplingTensors(
            temperature=torch.tensor([ask.sampling.temperature for ask in asks]),
            top_k=torch.tensor([ask.sampling.top_k for ask in asks]),
            top_p=torch.tensor([ask.sampling.top_p for ask in asks]),
            seeds=torch.tensor([ask.sampling.seed for ask in asks]),
            positions=torch.tensor([ask.output_position + depth for ask in asks]),
        )
        verification = self.ops.rejection_verify(
            logits,
            torch.full((len(asks),), -1, device=logits.device),
            cu_rows=torch.arange(len(asks) + 1, device=logits.device),
            sampling=sampling.to(logits.device),
            allowed=None,
        )
        return verification.token_ids
