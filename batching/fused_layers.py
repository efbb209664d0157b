"""Decoder layers computed with fused operations, in place of those of a loaded transformers model.

A layer takes its weights over and keeps the call that transformers' models make. Queries, keys and
values come from one matrix product, as do gate and up; the residual stream is added in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers.models.llama.modeling_llama import LlamaDecoderLayer
from transformers.models.mistral.modeling_mistral import MistralDecoderLayer
from transformers.models.qwen2.modeling_qwen2 import Qwen2DecoderLayer
from transformers.models.qwen3.modeling_qwen3 import Qwen3DecoderLayer

from batching.forward_batch import ForwardBatch
from batching.model import PagedKV, attend_paged
from kernels.ops import FusedOps, Ops

# Exact types: a subclass computes something else.
_FUSABLE_LAYERS = (LlamaDecoderLayer, Qwen2DecoderLayer, Qwen3DecoderLayer, MistralDecoderLayer)


def fuse_layers(model: nn.Module, fused: FusedOps) -> int:
    """Replace the decoder layers and the last norm of a known family; how many layers.

    Changes `model`. Layers of other families, and those whose gate is not SiLU, stay as they are.
    """
    decoder = cast(Any, model).model
    num_replaced = 0
    for index, layer in enumerate(decoder.layers):
        if type(layer) in _FUSABLE_LAYERS and layer.mlp.config.hidden_act == "silu":
            decoder.layers[index] = FusedDecoderLayer(layer, fused)
            num_replaced += 1
    if num_replaced:
        decoder.norm = FusedRmsNorm(decoder.norm, fused)
    return num_replaced


class FusedRmsNorm(nn.Module):
    """A norm of `[..., size]`, of which it takes weight and epsilon."""

    def __init__(self, norm: Any, fused: FusedOps) -> None:
        super().__init__()
        self.weight = norm.weight
        self.eps = float(norm.variance_epsilon)
        self._fused = fused

    def forward(self, hidden: Tensor) -> Tensor:
        """The rows normalised."""
        rows = hidden.view(-1, hidden.shape[-1])
        return self._fused.rms_norm(rows, self.weight, eps=self.eps).view(hidden.shape)

    def norm_heads(self, heads: Tensor) -> Tensor:
        """Each head [num_tokens, num_heads, head_dim] normalised; the input may be strided."""
        return self._fused.rms_norm(heads, self.weight, eps=self.eps)

    def add(self, hidden: Tensor, residual: Tensor) -> Tensor:
        """The sum normalised; it stays in `residual`."""
        return self._fused.add_rms_norm(hidden, residual, self.weight, eps=self.eps)


class FusedDecoderLayer(nn.Module):
    """One layer of Llama, Mistral, Qwen2 or Qwen3 over the packed rows of a batch."""

    def __init__(self, layer: Any, fused: FusedOps) -> None:
        super().__init__()
        attention, mlp = layer.self_attn, layer.mlp
        self.layer_index = int(attention.layer_idx)
        self.head_dim = int(attention.head_dim)
        self.scale = float(attention.scaling)
        self.q_size = self.head_dim * int(attention.config.num_attention_heads)
        self.kv_size = self.head_dim * int(attention.config.num_key_value_heads)
        self.qkv_proj = pack_linears((attention.q_proj, attention.k_proj, attention.v_proj))
        self.o_proj = attention.o_proj
        self.gate_up_proj = pack_linears((mlp.gate_proj, mlp.up_proj))
        self.down_proj = mlp.down_proj
        self.input_norm = FusedRmsNorm(layer.input_layernorm, fused)
        self.mlp_norm = FusedRmsNorm(layer.post_attention_layernorm, fused)
        self.q_norm, self.k_norm = (
            FusedRmsNorm(norm, fused) if norm is not None else None
            for norm in (getattr(attention, name, None) for name in ("q_norm", "k_norm"))
        )
        self._fused = fused

    def forward(
        self,
        hidden_states: Tensor,
        *,
        position_embeddings: tuple[Tensor, Tensor],
        batch: ForwardBatch,
        paged_kv: PagedKV,
        ops: Ops,
        **_unused: Any,
    ) -> Tensor:
        """hidden_states: [1, num_tokens, hidden_size], which becomes the result."""
        residual = hidden_states[0]
        query, key, value = self._project(self.input_norm(residual), position_embeddings)
        attended = attend_paged(
            query,
            key,
            value,
            layer_index=self.layer_index,
            scale=self.scale,
            batch=batch,
            paged_kv=paged_kv,
            ops=ops,
        )
        normed = self.mlp_norm.add(self.o_proj(attended.flatten(1)), residual)
        residual += self.down_proj(self._fused.silu_mul(self.gate_up_proj(normed)))
        return hidden_states

    def _project(
        self, normed: Tensor, position_embeddings: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Rotated queries and keys, and values: [num_tokens, heads or kv_heads, head_dim]."""
        packed = self.qkv_proj(normed)
        query, key, value = (
            part.unflatten(1, (-1, self.head_dim))
            for part in packed.split((self.q_size, self.kv_size, self.kv_size), dim=1)
        )
        if self.q_norm is not None and self.k_norm is not None:
            query, key = self.q_norm.norm_heads(query), self.k_norm.norm_heads(key)
        cos, sin = position_embeddings
        self._fused.rotary(query, key, cos=cos[0], sin=sin[0])
        return query, key, value


def pack_linears(linears: Sequence[nn.Module]) -> nn.Module:
    """One module that gives the outputs of all side by side.

    Plain layers become one with their weights copied together; other kinds, such as quantised ones,
    are kept and called in turn.
    """
    plain = [linear for linear in linears if type(linear) is nn.Linear]
    has_bias = {linear.bias is not None for linear in plain}
    if len(plain) < len(linears) or len(has_bias) > 1:
        return SideBySide(linears)
    first = plain[0]
    packed = nn.Linear(
        first.in_features,
        sum(linear.out_features for linear in plain),
        bias=first.bias is not None,
        device="meta",
    )
    packed.weight = nn.Parameter(
        torch.cat([linear.weight.detach() for linear in plain]), requires_grad=False
    )
    if first.bias is not None:
        packed.bias = nn.Parameter(
            torch.cat([linear.bias.detach() for linear in plain]), requires_grad=False
        )
    return packed


class SideBySide(nn.Module):
    """The outputs of several layers over the same rows, concatenated."""

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, rows: Tensor) -> Tensor:
        """rows: [num_tokens, in_features]. Returns [num_tokens, sum of out_features]."""
        return torch.cat([layer(rows) for layer in self.layers], dim=-1)
