"""EAGLE: one decoder layer goes on from the model's own hidden rows.

Sources: Li et al., "EAGLE: Speculative Sampling Requires Rethinking Feature Uncertainty", ICML
2024, arXiv 2401.15077; "EAGLE-3: Scaling up Inference Acceleration of Large Language Models via
Training-Time Test", NeurIPS 2025, arXiv 2503.01840. Trees as in EAGLE-2 (see `growth`).

The row at position i is made of the model's hidden row i and of token i + 1, and leads to token
i + 2. So keys and values of the last token in a block depend on the first one behind it: where a
cached block is taken over with another token behind it, drafts are a little worse there.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from batching.drafters.checkpoint import Checkpoint
from batching.drafters.drafter import LAST_HIDDEN, DraftAsk, Features, ObservedRequest
from batching.drafters.growth import Growth
from batching.drafters.last_rows import LastRows
from batching.drafters.own_layers import (
    LlamaLayer,
    RowRun,
    drafted_runs,
    llama_config,
    pack_runs,
    rms_norm,
    runs_behind,
)
from batching.drafters.shared_head import take_shared_head
from batching.drafters.target import TargetModel
from batching.errors import ModelLoadError
from batching.model.forward_batch import ForwardBatch
from kernels.attention_work import AttentionHeads
from lookup.proposer import Draft


class EagleDrafter:
    """EAGLE-1 and EAGLE-2, which share their weights: a linear map, then layers like Llama's.

    Weights: `fc`, `layers.{i}` (the first one without `input_layernorm`), and maybe `embed_tokens`;
    the head is the model's. Our own are `d2t`, as EAGLE-3 has it, and `lm_head` in its place.
    """

    name = "eagle"
    taps: Sequence[int] = (LAST_HIDDEN,)

    def __init__(self, target: TargetModel, checkpoint: Checkpoint) -> None:
        """Raises ModelLoadError if the drafter does not fit the model."""
        self._target = target
        self._config = config = llama_config(checkpoint.config, target)
        self._heads = AttentionHeads(
            num_groups=config.num_attention_heads // config.num_key_value_heads,
            num_kv_heads=config.num_key_value_heads,
            head_dim=config.head_dim,
        )
        self._embeddings = None
        if checkpoint.has("embed_tokens.weight"):
            self._embeddings = checkpoint.take(
                "embed_tokens.weight", config.vocab_size, config.hidden_size
            )
        self._rows = LastRows()
        self._token_ids: Tensor | None = None
        self._load(checkpoint)
        checkpoint.check_all_taken()

    def observe(self, requests: Sequence[ObservedRequest], features: Features) -> None:
        """Compute keys and values of the rows that hold, and where each request stands."""
        rows = torch.tensor([row for one in requests for row in one.rows])
        hidden = self._project([features[tap][rows] for tap in self.taps])
        output = self._forward(hidden, runs_behind(requests))
        ends = torch.tensor([len(one.rows) for one in requests]).cumsum(0) - 1
        self._rows.keep_rows(requests, output[ends])

    def draft(self, asks: Sequence[DraftAsk]) -> list[Draft]:
        """One row after the other, each from the one before."""
        growth = Growth(self._target, asks, reference=self.name, token_ids=self._token_ids)
        hidden = self._rows.stacked(growth.live_asks)
        while growth.live:
            tokens = growth.grow(self._logits(hidden))
            if growth.live:
                runs = drafted_runs(growth.live_asks, tokens, shift=growth.depth - 2)
                hidden = self._forward(hidden[growth.kept], runs)
        return growth.drafts()

    def forget(self, request_id: str) -> None:
        """Let the row of a request go."""
        self._rows.forget(request_id)

    def _forward(self, hidden: Tensor, runs: Sequence[RowRun]) -> Tensor:
        """The rows [n, size] that follow. hidden: [n, size] of the positions, runs: the tokens."""
        batch = pack_runs(runs, self._target, self._heads)
        if self._embeddings is None:
            embedded = self._target.embed(batch.input_ids)
        else:
            embedded = self._embeddings[batch.input_ids]
        return self._layers_forward(embedded, hidden, batch)

    def _load(self, checkpoint: Checkpoint) -> None:
        config, size = self._config, self._config.hidden_size
        self._token_ids = checkpoint.take_vocabulary(config.vocab_size)
        self._head = take_shared_head(self._target, checkpoint, self._token_ids)
        has_bias = checkpoint.has("fc.bias")
        self._fc = self._target.linear(
            checkpoint.take("fc.weight", size, 2 * size),
            checkpoint.take("fc.bias", size) if has_bias else None,
        )
        kv = self._target.make_kv(
            num_layers=config.num_hidden_layers,
            num_kv_heads=config.num_key_value_heads,
            head_dim=config.head_dim,
        )
        self.kv = kv
        self._norms = [
            checkpoint.take(f"layers.{index}.input_layernorm.weight", size) if index else None
            for index in range(config.num_hidden_layers)
        ]
        self._layers = [
            LlamaLayer(
                self._target,
                checkpoint,
                f"layers.{index}.",
                config=config,
                input_size=size,
                kv=kv,
                index=index,
            )
            for index in range(config.num_hidden_layers)
        ]

    def _project(self, taps: Sequence[Tensor]) -> Tensor:
        return taps[0]

    def _layers_forward(self, embedded: Tensor, hidden: Tensor, batch: ForwardBatch) -> Tensor:
        hidden = self._fc(torch.cat([embedded, hidden], dim=-1))
        for norm, layer in zip(self._norms, self._layers, strict=True):
            rows = hidden if norm is None else rms_norm(hidden, norm, self._config.rms_norm_eps)
            hidden = layer.forward(rows, hidden, batch)
        return hidden

    def _logits(self, hidden: Tensor) -> Tensor:
        return self._head(hidden).float()


class Eagle3Drafter(EagleDrafter):
    """EAGLE-3: from the hidden rows of three of the model's layers, with a head of its own.

    Weights: `fc`, `midlayer`, `norm`, `lm_head`, maybe `embed_tokens`, and with fewer tokens than
    the model (`draft_vocab_size`) `d2t`. The layers read are those before layer 2, the middle one
    and the third-last, unless `eagle_config.eagle_aux_hidden_state_layer_ids` has others.

    EAGLE-3.1 (arXiv 2605.09992) is the same with `fc_norm`, a norm of each of the rows read
    (`fc_norm.{i}`), and `norm_output`: the next row is made of the normed one. Some have one norm
    of all rows (`norm_before_fc`: `input_norm`), or add what the layer gives to the normed row
    (`norm_before_residual`).
    """

    name = "eagle3"

    def _load(self, checkpoint: Checkpoint) -> None:
        config, size = self._config, self._config.hidden_size
        model_size, num_layers = self._target.shape.hidden_size, self._target.shape.num_layers
        chosen = (checkpoint.config.get("eagle_config") or {}).get(
            "eagle_aux_hidden_state_layer_ids"
        ) or (2, num_layers // 2, num_layers - 3)
        # A layer's input is the output of the one before.
        self.taps = tuple(int(index) - 1 for index in chosen)
        if min(self.taps) < 0 or max(self.taps) >= num_layers:
            wrong = next(tap for tap in self.taps if not 0 <= tap < num_layers)
            raise ModelLoadError(
                f"the drafter {checkpoint.path} reads what layer {wrong} gives, and the model has"
                f" {num_layers} layers, from 0 on; take the drafter that was made for this model"
            )
        self._fc = self._target.linear(
            checkpoint.take("fc.weight", size, len(self.taps) * model_size)
        )
        self.kv = self._target.make_kv(
            num_layers=1, num_kv_heads=config.num_key_value_heads, head_dim=config.head_dim
        )
        self._take_switches(checkpoint, model_size)
        self._hidden_norm = checkpoint.take("midlayer.hidden_norm.weight", size)
        self._input_norm = checkpoint.take("midlayer.input_layernorm.weight", size)
        self._layer = LlamaLayer(
            self._target, checkpoint, "midlayer.", config=config, input_size=2 * size, kv=self.kv
        )
        self._norm = checkpoint.take("norm.weight", size)
        self._token_ids = checkpoint.take_vocabulary(config.vocab_size)
        num_tokens = config.vocab_size if self._token_ids is None else len(self._token_ids)
        self._head = self._target.linear(checkpoint.take("lm_head.weight", num_tokens, size))

    def _take_switches(self, checkpoint: Checkpoint, model_size: int) -> None:
        has_one, has_each = (
            bool(checkpoint.config.get(name, False)) for name in ("norm_before_fc", "fc_norm")
        )
        if has_one and has_each:
            raise ModelLoadError(
                f"{checkpoint.path}/config.json has both norm_before_fc and fc_norm; take one"
            )
        self._norms_output = bool(checkpoint.config.get("norm_output", False))
        self._adds_to_normed = bool(checkpoint.config.get("norm_before_residual", False))
        count = len(self.taps)
        self._tap_norm = (
            checkpoint.take("input_norm.weight", count * model_size) if has_one else None
        )
        self._tap_norms = [
            checkpoint.take(f"fc_norm.{index}.weight", model_size)
            for index in range(count if has_each else 0)
        ]

    def _project(self, taps: Sequence[Tensor]) -> Tensor:
        rows = list(taps)
        if self._tap_norms:
            rows = [self._normed(*pair) for pair in zip(rows, self._tap_norms, strict=True)]
        joined = torch.cat(rows, dim=-1)
        return self._fc(joined if self._tap_norm is None else self._normed(joined, self._tap_norm))

    def _layers_forward(self, embedded: Tensor, hidden: Tensor, batch: ForwardBatch) -> Tensor:
        normed = self._normed(hidden, self._hidden_norm)
        rows = torch.cat([self._normed(embedded, self._input_norm), normed], dim=-1)
        output = self._layer.forward(rows, normed if self._adds_to_normed else hidden, batch)
        return self._normed(output, self._norm) if self._norms_output else output

    def _logits(self, hidden: Tensor) -> Tensor:
        normed = hidden if self._norms_output else self._normed(hidden, self._norm)
        return self._head(normed).float()

    def _normed(self, rows: Tensor, weight: Tensor) -> Tensor:
        return rms_norm(rows, weight, self._config.rms_norm_eps)
