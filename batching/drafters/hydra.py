"""Hydra heads: each guesses one more token from the hidden row and the tokens guessed before.

Source: Ankner et al., "Hydra: Sequentially-Dependent Draft Heads for Medusa Decoding", arXiv
2402.05109. In Hydra++ the row first passes one more decoder layer over the whole text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional

from batching.drafters.checkpoint import Checkpoint
from batching.drafters.drafter import LAST_HIDDEN, DraftAsk, Features, ObservedRequest
from batching.drafters.growth import Growth
from batching.drafters.last_rows import LastRows
from batching.drafters.own_layers import (
    LlamaLayer,
    llama_config,
    pack_runs,
    rms_norm,
    runs_behind,
)
from batching.drafters.shared_head import take_shared_head
from batching.drafters.target import TargetModel
from batching.errors import ModelLoadError
from batching.model.loading import PagedKV
from kernels.attention_work import AttentionHeads
from lookup.proposer import Draft

Linear = Callable[[Tensor], Tensor]


class HydraDrafter:
    """Heads of Hydra and Hydra++, as their project stores them in `hydra_lm_head.pt`.

    The configuration has `hydra_num_heads`, `hydra_num_layers`, `grounded_heads`,
    `hidden_state_offset` and `hydra_head_arch`, which may be "mlp" or "prefix-mlp". Weights are
    `hydra_mlp.{head}.{i}.linear` and `hydra_lm_head.{head}`; the first block of a grounded head has
    `res_connection`, too, and "prefix-mlp" has `prefix_embeding_layer`. Where the heads were made
    with dropout, it takes every other place: `hydra_mlp.{head}.1.linear`, `hydra_lm_head.{head}.1`.

    Two things are our own: a vocabulary may be reduced as EAGLE-3's is, and with the key
    `hydra_shared_head` all heads share one map to it (`take_shared_head`).
    """

    name = "hydra"

    def __init__(self, target: TargetModel, checkpoint: Checkpoint) -> None:
        """Raises ModelLoadError if the heads do not fit the model."""
        self._target = target
        self._rows = LastRows()
        architecture = checkpoint.config.get("hydra_head_arch", "mlp")
        if architecture not in ("mlp", "prefix-mlp"):
            raise ModelLoadError(
                f"{checkpoint.path}/config.json has hydra_head_arch {architecture!r}; heads of the"
                " kinds mlp and prefix-mlp are known"
            )
        self.taps: Sequence[int] = (_tap(checkpoint, target),)
        self._prefix = None if architecture == "mlp" else _Prefix(target, checkpoint)
        self.kv: PagedKV | None = None if self._prefix is None else self._prefix.kv
        self._is_grounded = bool(checkpoint.config.get("grounded_heads", False))
        num_heads = checkpoint.number("hydra_num_heads")
        self._token_ids = checkpoint.take_vocabulary(target.shape.vocab_size)
        self._shared_head: Linear | None = None
        if checkpoint.config.get("hydra_shared_head", False):
            self._shared_head = take_shared_head(target, checkpoint, self._token_ids)
        self._heads = [self._take_head(checkpoint, index) for index in range(num_heads)]
        # A copy of the model's own embeddings, which were not trained.
        checkpoint.take_all("input_embed_fn.")
        checkpoint.check_all_taken()

    def observe(self, requests: Sequence[ObservedRequest], features: Features) -> None:
        """Keep the last row of each request, and keys and values of all if there is a layer."""
        hidden = features[self.taps[0]]
        if self._prefix is None:
            self._rows.keep(requests, hidden)
        else:
            self._rows.keep_rows(requests, self._prefix.last_rows(requests, hidden))

    def draft(self, asks: Sequence[DraftAsk]) -> list[Draft]:
        """One level for each head, which reads the levels before it."""
        growth = Growth(self._target, asks, reference=self.name, token_ids=self._token_ids)
        if not growth.live:
            return growth.drafts()
        inputs = self._rows.stacked(growth.live_asks)
        last_ids = [ask.token_ids[-1] for ask in growth.live_asks]
        inputs = self._with_tokens(inputs, torch.tensor(last_ids, device=inputs.device))
        for head in self._heads:
            if not growth.live:
                break
            tokens = growth.grow(head.logits(inputs))
            inputs = self._with_tokens(inputs[growth.kept], tokens)
        return growth.drafts()

    def forget(self, request_id: str) -> None:
        """Let the row of a request go."""
        self._rows.forget(request_id)

    def _with_tokens(self, inputs: Tensor, tokens: Tensor) -> Tensor:
        """What the next head reads: [n, size], and hidden_size more if it is grounded."""
        if not self._is_grounded:
            return inputs
        return torch.cat([inputs, self._target.embed(tokens)], dim=-1)

    def _take_head(self, checkpoint: Checkpoint, index: int) -> _Head:
        shape = self._target.shape
        size = shape.hidden_size
        name = f"hydra_mlp.{index}"
        num_blocks = checkpoint.number("hydra_num_layers", 1)
        has_dropout = not checkpoint.has(f"{name}.0.linear.weight")
        places = range(1, 2 * num_blocks, 2) if has_dropout else range(num_blocks)

        def linear(name: str, num_out: int, num_in: int) -> Linear:
            weight = checkpoint.take(f"{name}.weight", num_out, num_in)
            return self._target.linear(weight, checkpoint.take(f"{name}.bias", num_out))

        blocks: list[_Block] = []
        for place in places:
            block, num_in = f"{name}.{place}", size
            shortcut = None
            if self._is_grounded and not blocks:
                num_in = (index + 2) * size
                shortcut = linear(f"{block}.res_connection", size, num_in)
            blocks.append(_Block(linear(f"{block}.linear", size, num_in), shortcut))
        if self._shared_head is not None:
            return _Head(blocks, self._shared_head)
        name = f"hydra_lm_head.{index}" + (".1" if has_dropout else "")
        num_tokens = shape.vocab_size if self._token_ids is None else len(self._token_ids)
        return _Head(blocks, linear(name, num_tokens, size))


@dataclass(frozen=True, slots=True)
class _Block:
    """A residual block; where it narrows its input, a linear map stands for the input itself."""

    linear: Linear
    shortcut: Linear | None

    def forward(self, rows: Tensor) -> Tensor:
        kept = rows if self.shortcut is None else self.shortcut(rows)
        return kept + functional.silu(self.linear(rows))


@dataclass(frozen=True, slots=True)
class _Head:
    blocks: Sequence[_Block]
    vocabulary: Linear

    def logits(self, rows: Tensor) -> Tensor:
        for block in self.blocks:
            rows = block.forward(rows)
        return self.vocabulary(rows).float()


class _Prefix:
    """The decoder layer of Hydra++ and the norm behind it; its sizes are those of the model."""

    def __init__(self, target: TargetModel, checkpoint: Checkpoint) -> None:
        """Raises ModelLoadError if a weight is missing or does not fit."""
        self._target = target
        model_config = cast(Any, target.model).config.to_dict()
        config = llama_config(
            {name: model_config[name] for name in _LAYER_SETTINGS if name in model_config}, target
        )
        self._eps = config.rms_norm_eps
        self._heads = AttentionHeads(
            num_groups=config.num_attention_heads // config.num_key_value_heads,
            num_kv_heads=config.num_key_value_heads,
            head_dim=config.head_dim,
        )
        self.kv = target.make_kv(
            num_layers=1, num_kv_heads=config.num_key_value_heads, head_dim=config.head_dim
        )
        name, size = "prefix_embeding_layer", config.hidden_size
        self._input_norm = checkpoint.take(f"{name}.layers.0.input_layernorm.weight", size)
        self._norm = checkpoint.take(f"{name}.norm.weight", size)
        self._layer = LlamaLayer(
            target, checkpoint, f"{name}.layers.0.", config=config, input_size=size, kv=self.kv
        )
        # Stored with the layer, and never read: it is given rows, not tokens.
        checkpoint.take_all(f"{name}.embed_tokens.")
        checkpoint.take_all(f"{name}.layers.0.self_attn.rotary_emb.")

    def last_rows(self, requests: Sequence[ObservedRequest], hidden: Tensor) -> Tensor:
        """The last row [num_requests, hidden_size] of each, once keys and values of all are kept.

        hidden: [num_rows of the pass, hidden_size]
        """
        rows = hidden[torch.tensor([row for one in requests for row in one.rows])]
        batch = pack_runs(runs_behind(requests), self._target, self._heads)
        output = self._layer.forward(rms_norm(rows, self._input_norm, self._eps), rows, batch)
        ends = torch.tensor([len(one.rows) for one in requests]).cumsum(0) - 1
        return rms_norm(output[ends], self._norm, self._eps)


_LAYER_SETTINGS = (
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "vocab_size",
    "max_position_embeddings",
    "rms_norm_eps",
    "rope_parameters",
)


def _tap(checkpoint: Checkpoint, target: TargetModel) -> int:
    """The rows that the heads were trained on, so many layers before the end."""
    offset, num_layers = checkpoint.number("hidden_state_offset", 0), target.shape.num_layers
    if offset == 0:
        return LAST_HIDDEN
    if offset >= num_layers:
        raise ModelLoadError(
            f"{checkpoint.path}/config.json has hidden_state_offset {offset}, and the model"
            f" {num_layers} layers; take the drafter that was made for this model"
        )
    return num_layers - 1 - offset
