"""Multi-token prediction: a module that came with the model guesses the token after the next.

Sources: DeepSeek-AI, "DeepSeek-V3 Technical Report", arXiv 2412.19437, section 2.2; and how
DeepSeek, GLM-4.5 and Qwen3-Next store such modules. As in EAGLE, the row at position i is made of
the model's hidden row i and of token i + 1, and leads to token i + 2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM

from batching.drafters.checkpoint import Checkpoint
from batching.drafters.drafter import LAST_HIDDEN, DraftAsk, Features, ObservedRequest
from batching.drafters.growth import Growth
from batching.drafters.last_rows import LastRows
from batching.drafters.own_layers import RowRun, drafted_runs, pack_runs, runs_behind
from batching.drafters.target import TargetModel
from batching.errors import ModelLoadError
from batching.model.loading import ATTENTION_NAME, read_shape
from kernels.attention_work import AttentionHeads
from kernels.linear import use_onednn_linear
from lookup.proposer import Draft

_EXPERT = re.compile(r"mlp\.experts\.(\d+)\.(gate|up|down)_proj\.weight")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """Where a family keeps the parts of a module.

    feeds_normed: the row goes on to the next token after the last norm, not before it
    """

    prefix: str
    embedding_norm: str
    hidden_norm: str
    projection: str
    layer: str
    last_norm: str
    feeds_normed: bool


class MtpDrafter:
    """The first module of a folder, which may be that of the model itself.

    Names are `model.layers.{num_hidden_layers}.` with `enorm`, `hnorm`, `eh_proj`, `shared_head`
    and maybe `embed_tokens` (DeepSeek, GLM), or `mtp.` with `pre_fc_norm_embedding`,
    `pre_fc_norm_hidden`, `fc`, `layers.0` and `norm` (Qwen3-Next). The layer is one of the family
    that config.json names, dense or with experts. The same module drafts all tokens.
    """

    name = "mtp"
    taps: Sequence[int] = (LAST_HIDDEN,)

    def __init__(self, target: TargetModel, path: Path) -> None:
        """Raises ModelLoadError if the module does not fit the model, or has latent attention."""
        config = _read_config(path, target)
        shape, size = read_shape(config), config.hidden_size
        layouts = _layouts(config.num_hidden_layers)
        checkpoint = Checkpoint(
            path,
            dtype=target.dtype,
            device=target.device,
            prefixes=tuple(layout.prefix for layout in layouts),
        )
        self._layout = layout = _find_layout(checkpoint, layouts)
        prefix = layout.prefix
        self._target, self._rows = target, LastRows()
        self._heads = AttentionHeads(
            num_groups=shape.num_heads // shape.num_kv_heads,
            num_kv_heads=shape.num_kv_heads,
            head_dim=shape.head_dim,
        )
        self.kv = target.make_kv(
            num_layers=1, num_kv_heads=shape.num_kv_heads, head_dim=shape.head_dim
        )
        self._projection = target.linear(
            checkpoint.take(f"{prefix}{layout.projection}.weight", size, 2 * size)
        )
        norms = [
            checkpoint.take(f"{prefix}{name}.weight", size)
            for name in (layout.embedding_norm, layout.hidden_norm, layout.last_norm)
        ]
        # DeepSeek stores copies of the model's own; others may have trained them.
        name = f"{prefix}embed_tokens.weight"
        vocabulary = (config.vocab_size, size)
        self._embeddings = checkpoint.take(name, *vocabulary) if checkpoint.has(name) else None
        name = f"{prefix}shared_head.head.weight"
        self._head: Callable[[Tensor], Tensor] = target.logits
        if checkpoint.has(name):
            self._head = target.linear(checkpoint.take(name, *vocabulary))
        weights = checkpoint.take_all(f"{prefix}{layout.layer}")
        checkpoint.check_all_taken()
        self._layer, self._rotary = _make_layer(config, weights, target, path)
        norm_type, eps = type(self._layer.input_layernorm), config.rms_norm_eps
        self._embedding_norm, self._hidden_norm, self._last_norm = (
            _make_norm(norm_type, weight, eps) for weight in norms
        )

    def observe(self, requests: Sequence[ObservedRequest], features: Features) -> None:
        """Compute keys and values of the rows that hold, and where each request stands."""
        rows = torch.tensor([row for one in requests for row in one.rows])
        output = self._forward(features[LAST_HIDDEN][rows], runs_behind(requests))
        ends = torch.tensor([len(one.rows) for one in requests]).cumsum(0) - 1
        self._rows.keep_rows(requests, output[ends])

    def draft(self, asks: Sequence[DraftAsk]) -> list[Draft]:
        """One row after the other, each from the one before."""
        growth = Growth(self._target, asks, reference=self.name)
        if not growth.live:
            return growth.drafts()
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
        halves = [self._embedding_norm(embedded), self._hidden_norm(hidden)]
        rows = self._projection(torch.cat(halves, dim=-1))[None]
        positions = batch.position_ids[None]
        output = self._layer(
            rows,
            attention_mask=None,
            position_ids=positions,
            position_embeddings=self._rotary(rows, position_ids=positions),
            batch=batch,
            paged_kv=self.kv,
            ops=self._target.ops,
        )
        output = cast(Tensor, output[0] if isinstance(output, tuple) else output)
        output = output.view(-1, output.shape[-1])
        return self._last_norm(output) if self._layout.feeds_normed else output

    def _logits(self, hidden: Tensor) -> Tensor:
        normed = hidden if self._layout.feeds_normed else self._last_norm(hidden)
        return self._head(normed).float()


def _layouts(num_layers: int) -> tuple[_Layout, ...]:
    """How DeepSeek and GLM-4.5 keep a module behind so many layers, and how Qwen3-Next does."""
    return (
        _Layout(
            prefix=f"model.layers.{num_layers}.",
            embedding_norm="enorm",
            hidden_norm="hnorm",
            projection="eh_proj",
            layer="",
            last_norm="shared_head.norm",
            feeds_normed=False,
        ),
        _Layout(
            prefix="mtp.",
            embedding_norm="pre_fc_norm_embedding",
            hidden_norm="pre_fc_norm_hidden",
            projection="fc",
            layer="layers.0.",
            last_norm="norm",
            feeds_normed=True,
        ),
    )


def _find_layout(checkpoint: Checkpoint, layouts: Sequence[_Layout]) -> _Layout:
    names = [f"{layout.prefix}{layout.projection}.weight" for layout in layouts]
    for name, layout in zip(names, layouts, strict=True):
        if checkpoint.has(name):
            return layout
    raise ModelLoadError(
        f"{checkpoint.path} has no module for multi-token prediction: neither {' nor '.join(names)}"
    )


def _read_config(path: Path, target: TargetModel) -> Any:
    try:
        config = AutoConfig.from_pretrained(path, trust_remote_code=False)
    except Exception as error:  # families check their settings each in its own way
        raise ModelLoadError(f"the drafter {path} could not be loaded: {error}") from error
    if getattr(config, "kv_lora_rank", None):
        raise ModelLoadError(
            f"the drafter {path} has latent attention (kv_lora_rank {config.kv_lora_rank}), whose"
            " keys and values the paged cache cannot hold"
        )
    for name in ("vocab_size", "hidden_size"):
        value, needed = getattr(config, name, None), getattr(target.shape, name)
        if value != needed:
            raise ModelLoadError(
                f"the drafter {path} has {name} {value}, and the model {needed}; take the drafter"
                " that was made for this model"
            )
    return config


def _make_layer(
    config: Any, weights: Mapping[str, Tensor], target: TargetModel, path: Path
) -> tuple[Any, nn.Module]:
    """A decoder layer of the family with these weights, and its rotary embeddings."""
    with torch.device("meta"):
        model: Any = AutoModelForCausalLM.from_config(
            config, dtype=target.dtype, attn_implementation=ATTENTION_NAME, trust_remote_code=False
        )
    packed = _pack_experts(
        {
            # Choices between experts are made in float32, as transformers does.
            name: weight.to(target.device, None if "correction_bias" in name else target.dtype)
            for name, weight in weights.items()
        }
    )
    by_difference = sorted(
        model.model.layers, key=lambda layer: len(layer.state_dict().keys() ^ packed.keys())
    )
    layer = by_difference[0]
    different = sorted(layer.state_dict().keys() ^ packed.keys())
    if different:
        raise ModelLoadError(
            f"the layer for multi-token prediction in {path} is none of the family"
            f" {config.model_type}: {different[0]} is missing or not known"
        )
    try:
        layer.load_state_dict(packed, assign=True)
    except RuntimeError as error:
        raise ModelLoadError(f"the drafter {path} does not fit its config.json: {error}") from error
    layer.requires_grad_(False)
    layer.eval()
    layer.self_attn.layer_idx = 0
    if target.device.type == "cpu" and target.dtype in (torch.float32, torch.bfloat16):
        use_onednn_linear(layer)
    return layer, type(model.model.rotary_emb)(config).to(target.device)


def _pack_experts(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights with those of all experts in one, as transformers computes them."""
    experts = {match.groups(): name for name in weights if (match := _EXPERT.fullmatch(name))}
    if not experts:
        return weights
    indexes = sorted({index for index, _ in experts}, key=int)

    def stacked(*parts: str) -> Tensor:
        return torch.stack(
            [torch.cat([weights[experts[index, part]] for part in parts]) for index in indexes]
        )

    packed = {name: weight for name, weight in weights.items() if name not in experts.values()}
    packed["mlp.experts.gate_up_proj"] = stacked("gate", "up")
    packed["mlp.experts.down_proj"] = stacked("down")
    return packed


def _make_norm(norm_type: Any, weight: Tensor, eps: float) -> nn.Module:
    norm: nn.Module = norm_type(len(weight), eps=eps)
    norm.weight = nn.Parameter(weight, requires_grad=False)
    return norm
