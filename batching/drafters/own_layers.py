"""Decoder layers of a drafter, with keys and values of their own under the model's block ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from batching.drafters.checkpoint import Checkpoint
from batching.drafters.drafter import DraftAsk, ObservedRequest
from batching.drafters.target import TargetModel
from batching.errors import ModelLoadError
from batching.model.forward_batch import ForwardBatch
from batching.model.loading import PagedKV, attend_paged
from batching.request import SamplingParams
from batching.step_plan import ScheduledRequest, StepPlan
from kernels.attention_work import AttentionHeads

_PLAIN_SAMPLING = SamplingParams(max_tokens=1)


@dataclass(frozen=True, slots=True)
class RowRun:
    """Consecutive rows of one request: tokens from a position on, and the blocks of its text."""

    token_ids: Sequence[int]
    start: int
    block_ids: Sequence[int]


def runs_behind(requests: Sequence[ObservedRequest]) -> list[RowRun]:
    """The rows of a step, each with the token behind it."""
    return [RowRun(one.next_token_ids, one.start, one.block_ids) for one in requests]


def drafted_runs(asks: Sequence[DraftAsk], token_ids: Tensor, *, shift: int) -> list[RowRun]:
    """One row for each request. shift: its position, counted from the first token to draft."""
    return [
        RowRun((token_id,), len(ask.token_ids) + shift, ask.block_ids)
        for ask, token_id in zip(asks, token_ids.tolist(), strict=True)
    ]


def pack_runs(runs: Sequence[RowRun], target: TargetModel, heads: AttentionHeads) -> ForwardBatch:
    """The rows as the input of a forward pass on the model's device."""
    plan = StepPlan(
        tuple(
            ScheduledRequest(
                request_id="",
                token_ids=tuple(run.token_ids),
                start=run.start,
                block_ids=run.block_ids,
                draft=None,
                has_logits=False,
                output_position=0,
                sampling=_PLAIN_SAMPLING,
            )
            for run in runs
        )
    )
    batch = ForwardBatch.from_plan(plan, block_size=target.block_size)
    if target.device.type == "cpu":
        return batch
    return batch.with_work(heads).to(target.device)


class LlamaLayer:
    """One decoder layer of the Llama family, whose attention may have a wider input.

    Names of weights are transformers' own. `input_size` is that of the attention's input, which the
    caller has normed as its kind of drafter wants it.
    """

    def __init__(
        self,
        target: TargetModel,
        checkpoint: Checkpoint,
        prefix: str,
        *,
        config: LlamaConfig,
        input_size: int,
        kv: PagedKV,
        index: int = 0,
    ) -> None:
        """Raises ModelLoadError if a weight is missing or does not fit."""
        size, inner = config.hidden_size, config.intermediate_size
        self._head_dim = config.head_dim
        num_query, num_kv = (
            count * config.head_dim
            for count in (config.num_attention_heads, config.num_key_value_heads)
        )
        self._target, self._kv, self._index = target, kv, index
        self._eps = config.rms_norm_eps

        def linear(name: str, num_out: int, num_in: int) -> Any:
            weight = checkpoint.take(f"{prefix}{name}.weight", num_out, num_in)
            has_bias = checkpoint.has(f"{prefix}{name}.bias")
            bias = checkpoint.take(f"{prefix}{name}.bias", num_out) if has_bias else None
            return target.linear(weight, bias)

        self._query = linear("self_attn.q_proj", num_query, input_size)
        self._key = linear("self_attn.k_proj", num_kv, input_size)
        self._value = linear("self_attn.v_proj", num_kv, input_size)
        self._output = linear("self_attn.o_proj", size, num_query)
        self._gate = linear("mlp.gate_proj", inner, size)
        self._up = linear("mlp.up_proj", inner, size)
        self._down = linear("mlp.down_proj", size, inner)
        self._norm = checkpoint.take(f"{prefix}post_attention_layernorm.weight", size)
        self._rotary = LlamaRotaryEmbedding(config).to(target.device)

    def forward(self, rows: Tensor, residual: Tensor, batch: ForwardBatch) -> Tensor:
        """The layer's output [n, size]. rows: [n, input_size]; residual: [n, size]"""
        cos, sin = self._rotary(rows, batch.position_ids[None])
        query, key, value = (
            project(rows).view(len(rows), -1, self._head_dim)
            for project in (self._query, self._key, self._value)
        )
        query, key = apply_rotary_pos_emb(
            query[None].transpose(1, 2), key[None].transpose(1, 2), cos, sin
        )
        attended = attend_paged(
            query[0].transpose(0, 1),
            key[0].transpose(0, 1),
            value,
            layer_index=self._index,
            scale=self._head_dim**-0.5,
            batch=batch,
            paged_kv=self._kv,
            ops=self._target.ops,
        )
        hidden = residual + self._output(attended.reshape(len(rows), -1))
        normed = rms_norm(hidden, self._norm, self._eps)
        mapped = self._down(functional.silu(self._gate(normed)) * self._up(normed))
        output: Tensor = hidden + mapped
        return output


def rms_norm(rows: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Zhang and Sennrich, NeurIPS 2019, computed in float32 as transformers does."""
    wide = rows.float()
    normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)
    return weight * normed.to(rows.dtype)


def llama_config(settings: Mapping[str, Any], target: TargetModel) -> LlamaConfig:
    """The configuration of a drafter's layers. Raises ModelLoadError if it does not fit."""
    try:
        config = LlamaConfig(**settings)
    except (TypeError, ValueError) as error:
        raise ModelLoadError(f"the drafter's configuration is not understood: {error}") from error
    if config.vocab_size != target.shape.vocab_size:
        raise ModelLoadError(
            f"the drafter has {config.vocab_size} tokens, and the model {target.shape.vocab_size};"
            " take the drafter that was made for this model"
        )
    return config
