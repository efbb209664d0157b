"""EAGLE's layer, to be trained: it foretells the target's next hidden row, and that row's token.

Source: Li et al., "EAGLE: Speculative Sampling Requires Rethinking Feature Uncertainty", ICML 2024,
arXiv 2401.15077. `batching.drafters.eagle` drafts with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from training.drafters.features import Passage
from training.drafters.frozen_target import FrozenTarget
from training.drafters.heads import DraftHeads, HeadSizes

# Of the paper: the share of the words in the loss, and the noise on rows that are read.
_WORDS_WEIGHT = 0.1
_NOISE = 0.1

KeysAndValues = tuple[Tensor, Tensor]


class EagleHeads(DraftHeads):
    """A linear map, then a layer like the target's without its first norm.

    In training it reads the target's rows; beyond the first level it goes on from its own.
    """

    def __init__(self, target: FrozenTarget, sizes: HeadSizes) -> None:
        """Only `has_own_head` of the sizes is used."""
        super().__init__(target, sizes)
        self._config = {**target.config, "num_hidden_layers": 1}
        self.fc = nn.Linear(2 * target.hidden_size, target.hidden_size)
        self.layers = nn.ModuleList([_Layer(LlamaConfig(**self._config))])

    def config(self) -> dict[str, Any]:
        """The target's, with one layer."""
        return dict(self._config)

    def loss_sum(self, passage: Passage, rng: torch.Generator) -> Tensor:
        """The distance to the target's next rows, and a tenth of the words' cross entropy."""
        noise = torch.rand(passage.rows.shape, generator=rng) * 2 * _NOISE - _NOISE
        noisy = Passage(passage.token_ids, passage.choice_ids, passage.rows.float() + noise)
        (rows,) = self.level_rows(noisy, 1)
        distances = functional.smooth_l1_loss(
            rows.float(), passage.rows[1:].float(), reduction="none"
        )
        return distances.mean(dim=-1).sum() + _WORDS_WEIGHT * self.words_loss(iter([rows]), passage)

    def level_rows(self, passage: Passage, num_levels: int) -> Iterator[Tensor]:
        """Each level goes on from the one before, with keys and values of its own way."""
        embedded = self.target.embeddings[passage.token_ids]
        hidden = passage.rows.to(embedded.dtype)
        ways: list[KeysAndValues] = []
        for level in range(num_levels):
            num_rows = len(passage) - 1 - level
            inputs = torch.cat([embedded[1 + level :], hidden[:num_rows]], dim=-1)
            hidden = self.layers[0](self.fc(inputs), ways)
            yield hidden


class _Layer(nn.Module):
    """One decoder layer of the Llama family, named as transformers names it."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        size, inner = config.hidden_size, config.intermediate_size
        num_query, num_kv = (
            count * config.head_dim
            for count in (config.num_attention_heads, config.num_key_value_heads)
        )

        def linear(num_in: int, num_out: int) -> nn.Linear:
            return nn.Linear(num_in, num_out, bias=False)

        self._head_dim = config.head_dim
        self._rotary = LlamaRotaryEmbedding(config)
        self.self_attn = nn.ModuleDict(
            {
                "q_proj": linear(size, num_query),
                "k_proj": linear(size, num_kv),
                "v_proj": linear(size, num_kv),
                "o_proj": linear(num_query, size),
            }
        )
        self.mlp = nn.ModuleDict(
            {
                "gate_proj": linear(size, inner),
                "up_proj": linear(size, inner),
                "down_proj": linear(inner, size),
            }
        )
        self.post_attention_layernorm = nn.RMSNorm(size, eps=config.rms_norm_eps)

    def forward(self, rows: Tensor, ways: list[KeysAndValues]) -> Tensor:
        """The layer's output [n, size]; appends this level's keys and values to `ways`.

        rows: [n, size], one row for each way
        """
        query, key, value = (
            self.self_attn[name](rows).view(len(rows), -1, self._head_dim)
            for name in ("q_proj", "k_proj", "v_proj")
        )
        positions = torch.arange(len(rows))[None] + len(ways)
        cos, sin = self._rotary(rows, positions)
        query, key = (
            found[0].transpose(0, 1)
            for found in apply_rotary_pos_emb(
                query[None].transpose(1, 2), key[None].transpose(1, 2), cos, sin
            )
        )
        ways.append((key, value.to(key.dtype)))
        attended = _attend(query, ways).reshape(len(rows), -1)
        hidden: Tensor = rows + self.self_attn["o_proj"](attended)
        normed = self.post_attention_layernorm(hidden.float())
        gate = functional.silu(self.mlp["gate_proj"](normed))
        mapped: Tensor = self.mlp["down_proj"](gate * self.mlp["up_proj"](normed))
        return hidden + mapped


def _attend(query: Tensor, ways: list[KeysAndValues]) -> Tensor:
    """Way i sees the text's rows up to i, and its own rows of later levels.

    query: [n, num_heads, head_dim]; keys and values: [at least n, num_kv_heads, head_dim]
    """
    num_groups = query.shape[1] // ways[0][0].shape[1]
    wide = [
        tuple(part.repeat_interleave(num_groups, dim=1).transpose(0, 1) for part in way)
        for way in ways
    ]
    heads_first = query.transpose(0, 1)
    (text_keys, text_values), own = wide[0], wide[1:]
    if not own:
        return functional.scaled_dot_product_attention(
            heads_first, text_keys, text_values, is_causal=True
        ).transpose(0, 1)
    num_rows = len(query)
    is_later = torch.ones(num_rows, text_keys.shape[1], dtype=torch.bool).triu(1)
    scores = (heads_first @ text_keys.transpose(1, 2)).masked_fill(is_later, -torch.inf)
    own_scores = [(heads_first * keys[:, :num_rows]).sum(-1, keepdim=True) for keys, _ in own]
    shares = (torch.cat([scores, *own_scores], dim=-1) * query.shape[-1] ** -0.5).softmax(dim=-1)
    attended: Tensor = shares[..., : text_keys.shape[1]] @ text_values
    for index, (_, values) in enumerate(own, start=text_keys.shape[1]):
        attended = attended + shares[..., index, None] * values[:, :num_rows]
    return attended.transpose(0, 1)
