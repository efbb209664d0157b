"""Attention and cross entropy for training on a CPU, where torch's own take half of a step.

Both keep what their backward pass needs and do it in matrix products of the number format they
are given, which a CPU with bf16 instructions computes several times as fast as torch's fused
attention. `ATTENTION_NAME` is the name under which transformers finds the attention; masks, caches
and packed examples go to torch's own.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

ATTENTION_NAME = "blocked_causal"
_QUERIES_PER_BLOCK = 256
_ROWS_PER_BLOCK = 32


class _CausalAttention(torch.autograd.Function):
    """Softmax attention of a sequence to itself, queries block by block.

    A block's keys end where it ends, so that less than two thirds of the square is computed.
    """

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
        """`query` [num_heads, length, head_dim], `key` and `value` [num_kv_heads, …]; as query."""
        num_kv_heads, length, head_dim = key.shape
        grouped = query.view(num_kv_heads, -1, length, head_dim)
        out = torch.empty_like(query)
        grouped_out = out.view_as(grouped)
        kept = []
        for start in range(0, length, _QUERIES_PER_BLOCK):
            end = min(start + _QUERIES_PER_BLOCK, length)
            rows = _rows(grouped, start, end) * scale
            scores = torch.bmm(rows, key[:, :end].transpose(1, 2))
            is_later = torch.ones(end - start, end - start, dtype=torch.bool).triu_(1)
            square = scores.view(num_kv_heads, -1, end - start, end)[..., start:]
            square.masked_fill_(is_later, -math.inf)
            shares = torch.softmax(scores, -1)
            kept.append(shares)
            found = torch.bmm(shares, value[:, :end])
            grouped_out[:, :, start:end] = found.view(num_kv_heads, -1, end - start, head_dim)
        ctx.save_for_backward(query, key, value, out, *kept)
        ctx.scale = scale
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """The gradients of `forward`'s inputs, from that of its output."""
        query, key, value, out, *kept = ctx.saved_tensors
        num_kv_heads, length, head_dim = key.shape
        shape = (num_kv_heads, -1, length, head_dim)
        of_out = gradients[0].contiguous()
        # What a row's shares take from each other: softmax' backward, summed over the keys.
        shared = (of_out.float() * out.float()).sum(-1, keepdim=True).to(query.dtype)
        of_query = torch.empty_like(query)
        of_key = torch.zeros(key.shape, dtype=torch.float32)
        of_value = torch.zeros(key.shape, dtype=torch.float32)
        for start, shares in zip(range(0, length, _QUERIES_PER_BLOCK), kept, strict=True):
            end = min(start + _QUERIES_PER_BLOCK, length)
            rows = _rows(of_out.view(shape), start, end)
            of_value[:, :end] += torch.bmm(shares.transpose(1, 2), rows)
            of_scores = torch.bmm(rows, value[:, :end].transpose(1, 2))
            of_scores.sub_(_rows(shared.view(*shape[:-1], 1), start, end)).mul_(shares)
            found = torch.bmm(of_scores, key[:, :end]).mul_(ctx.scale)
            of_query.view(shape)[:, :, start:end] = found.view(
                num_kv_heads, -1, end - start, head_dim
            )
            asked = _rows(query.view(shape), start, end)
            of_key[:, :end] += torch.bmm(of_scores.transpose(1, 2), asked).mul_(ctx.scale)
        return of_query, of_key.to(key.dtype), of_value.to(value.dtype), None


def _rows(grouped: Tensor, start: int, end: int) -> Tensor:
    """Positions of all heads of a group as rows  # [num_kv_heads, group * (end - start), …]"""
    return grouped[:, :, start:end].reshape(grouped.shape[0], -1, grouped.shape[-1])


def _attention_forward(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """As `AttentionInterface` wants it: `query` [1, num_heads, length, head_dim] and so on."""
    is_plain = attention_mask is None and query.shape[0] == 1 and query.shape[2] == key.shape[2]
    if not is_plain or not torch.is_grad_enabled() or query.device.type != "cpu":
        own: tuple[Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **options
        )
        return own
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    found: Tensor = _CausalAttention.apply(  # type: ignore[no-untyped-call]
        query[0].contiguous(), key[0].contiguous(), value[0].contiguous(), scale
    )
    return found.transpose(0, 1).unsqueeze(0), None


AttentionInterface.register(ATTENTION_NAME, _attention_forward)
AttentionMaskInterface.register(ATTENTION_NAME, sdpa_mask)


class _SummedCrossEntropy(torch.autograd.Function):
    """The gradient is made along with the loss, a few rows at a time, while they are in cache."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, truth: Tensor) -> Tensor:
        """`logits` [num_rows, vocab_size], `truth` [num_rows]; the sum  # [] float32"""
        of_logits = torch.empty_like(logits)
        total = torch.zeros((), dtype=torch.float32)
        for start in range(0, len(truth), _ROWS_PER_BLOCK):
            wanted = truth[start : start + _ROWS_PER_BLOCK].unsqueeze(1)
            rows = logits[start : start + _ROWS_PER_BLOCK].float()
            rows = rows - rows.amax(1, keepdim=True)
            own = rows.gather(1, wanted)
            rows.exp_()
            sums = rows.sum(1, keepdim=True)
            total += (sums.log() - own).sum()
            rows.div_(sums).scatter_add_(1, wanted, torch.full_like(own, -1.0))
            of_logits[start : start + _ROWS_PER_BLOCK] = rows
        ctx.save_for_backward(of_logits)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        """The gradient of the logits."""
        (of_logits,) = ctx.saved_tensors
        return of_logits * gradients[0].to(of_logits.dtype), None


def summed_cross_entropy(logits: Tensor, truth: Tensor) -> Tensor:
    """Sum of the rows' cross entropies; on other devices torch's own  # [] float32

    `logits` [num_rows, vocab_size] of any float format, `truth` [num_rows] token ids.
    """
    if logits.device.type != "cpu":
        return torch.nn.functional.cross_entropy(logits.float(), truth, reduction="sum")
    found: Tensor = _SummedCrossEntropy.apply(logits, truth)  # type: ignore[no-untyped-call]
    return found
