"""Decoder layers computed with fused operations, in place of those of a loaded transformers model.

Queries, keys and values come from one matrix product, as do gate and up. The residual stream is
added to in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers.modeling_outputs import BaseModelOutputWithPast
from transformers.models.llama.modeling_llama import LlamaDecoderLayer
from transformers.models.mistral.modeling_mistral import MistralDecoderLayer
from transformers.models.qwen2.modeling_qwen2 import Qwen2DecoderLayer
from transformers.models.qwen3.modeling_qwen3 import Qwen3DecoderLayer

from batching.model.forward_batch import ForwardBatch
from batching.model.loading import PagedKV, attend_paged
from kernels.op_set import FusedOps, Ops

# Exact types: a subclass computes something else.
KNOWN_LAYERS = (LlamaDecoderLayer, Qwen2DecoderLayer, Qwen3DecoderLayer, MistralDecoderLayer)


def fuse_decoder(model: nn.Module, fused: FusedOps) -> bool:
    """Replace the decoder of a known family by a `FusedDecoder`; whether that was done.

    Changes `model`. Other families, and gates that are not SiLU, stay as they are.
    """
    decoder = cast(Any, model).model
    is_known = all(
        type(layer) in KNOWN_LAYERS and layer.mlp.config.hidden_act == "silu"
        for layer in getattr(decoder, "layers", [None])
    )
    if is_known:
        model.model = FusedDecoder(decoder, fused)
    return is_known


class FusedDecoder(nn.Module):
    """Embeddings, layers and last norm of a transformers decoder, whose weights it takes over.

    It asks nothing of the host while it runs, so a CUDA graph can hold it.
    """

    def __init__(self, decoder: Any, fused: FusedOps) -> None:
        super().__init__()
        self.embed_tokens = decoder.embed_tokens
        self.rotary_emb = decoder.rotary_emb
        self.layers = nn.ModuleList()
        for index, layer in enumerate(decoder.layers):
            self.layers.append(FusedDecoderLayer(layer, fused))
            decoder.layers[index] = nn.Identity()  # its own copies of the weights can go
        self.norm = FusedRmsNorm(decoder.norm, fused)

    def forward(
        self,
        input_ids: Tensor,
        position_ids: Tensor,
        *,
        batch: ForwardBatch,
        paged_kv: PagedKV,
        ops: Ops,
        **_unused: Any,
    ) -> BaseModelOutputWithPast:
        """input_ids, position_ids: [1, num_tokens]. Hidden states are [1, num_tokens, hidden]."""
        hidden = self.embed_tokens(input_ids)
        cos, sin = self.rotary_emb(hidden, position_ids=position_ids)
        rows = hidden[0]
        for layer in self.layers:
            layer(rows, cos=cos[0], sin=sin[0], batch=batch, paged_kv=paged_kv, ops=ops)
        return BaseModelOutputWithPast(last_hidden_state=self.norm(rows)[None])


class FusedRmsNorm(nn.Module):
    """A norm with the weight and the epsilon of another."""

    def __init__(self, norm: Any, fused: FusedOps) -> None:
        super().__init__()
        self.weight = norm.weight
        self.eps = float(norm.variance_epsilon)
        self._fused = fused

    def forward(self, hidden: Tensor) -> Tensor:
        """Rows [num_tokens, size], or heads [num_tokens, num_heads, head_dim], normalised."""
        return self._fused.rms_norm(hidden, self.weight, eps=self.eps)

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
        residual: Tensor,
        *,
        cos: Tensor,
        sin: Tensor,
        batch: ForwardBatch,
        paged_kv: PagedKV,
        ops: Ops,
    ) -> None:
        """residual: [num_tokens, hidden_size], to which both halves of the layer are added.

        cos, sin: [num_tokens, head_dim]
        """
        query, key, value = self._project(self.input_norm(residual))
        self._fused.rotary(query, key, cos=cos, sin=sin)
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

    def _project(self, normed: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, not yet rotated: [num_tokens, heads or kv_heads, head_dim]."""
        packed = self.qkv_proj(normed)
        query, key, value = (
            part.unflatten(1, (-1, self.head_dim))
            for part in packed.split((self.q_size, self.kv_size, self.kv_size), dim=1)
        )
        if self.q_norm is not None and self.k_norm is not None:
            query, key = self.q_norm(query), self.k_norm(key)
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
