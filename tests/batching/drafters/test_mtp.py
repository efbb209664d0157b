"""Modules for multi-token prediction draft what they compute, written once more in plain torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
import torch
from drafter_oracle import (
    MAX_DEPTH,
    MIN_EQUAL,
    Text,
    drafted_chains,
    embedding_weight,
    load_drafter,
    make_target,
    random_texts,
    share_equal,
)
from model_checkpoints import mtp_checkpoint
from torch import Tensor
from torch.nn import functional
from transformers import AutoConfig

from batching.drafters.drafter import LAST_HIDDEN
from batching.errors import ModelLoadError

Weights = Mapping[str, Tensor]
EPS, HEAD_DIM = 1e-5, 16
# The share of a head that is rotated.
ROTATED = {"qwen3": 1.0, "glm": 0.5, "glm-experts": 0.5, "qwen3-next": 0.25}


@torch.inference_mode()
@pytest.mark.parametrize("family", ROTATED)
def test_chains_are_those_of_the_module(tiny_model_dir: Path, tmp_path: Path, family: str) -> None:
    config, weights = mtp_checkpoint(AutoConfig.from_pretrained(tiny_model_dir), family=family)
    target, own = make_target(tiny_model_dir), embedding_weight(tiny_model_dir)
    drafter = load_drafter("mtp", (config, weights), target, folder=tmp_path)
    texts = random_texts(target, drafter.taps)
    is_next = family == "qwen3-next"
    prefix = "mtp." if is_next else f"model.layers.{config['num_hidden_layers']}."
    parts = {name.removeprefix(prefix): one for name, one in weights.items() if prefix in name}
    embeddings, head = parts.get("embed_tokens.weight", own), parts.get("shared_head.head.weight")
    head = own if head is None else head  # the model's head is tied to its embeddings
    rope_theta = config["rope_parameters"]["rope_theta"]
    turn = partial(rotated, share=ROTATED[family], base=rope_theta)

    def normed(rows: Tensor, name: str) -> Tensor:
        weight = parts[f"{name}.weight"]
        return norm(rows, 1 + weight if is_next else weight)

    def chain(text: Text) -> list[int]:
        features, token_ids = text.rows[LAST_HIDDEN], list(text.token_ids)
        for _ in range(MAX_DEPTH):
            embedded = embeddings[token_ids[1:]]
            if is_next:
                halves = [
                    normed(embedded, "pre_fc_norm_embedding"),
                    normed(features, "pre_fc_norm_hidden"),
                ]
                rows = torch.cat(halves, dim=-1) @ parts["fc.weight"].T
                last = normed(layer(rows, parts, "layers.0.", normed, turn)[-1:], "norm")
                logits = last[0] @ head.T
            else:
                halves = [normed(embedded, "enorm"), normed(features, "hnorm")]
                rows = torch.cat(halves, dim=-1) @ parts["eh_proj.weight"].T
                last = layer(rows, parts, "", normed, turn)[-1:]
                logits = normed(last, "shared_head.norm")[0] @ head.T
            token_ids.append(int(logits.argmax()))
            features = torch.cat([features, last])
        return token_ids[-MAX_DEPTH:]

    expected = [chain(text) for text in texts]
    assert share_equal(drafted_chains(drafter, texts), expected) >= MIN_EQUAL


def test_a_module_of_another_model_is_refused(tiny_model_dir: Path, tmp_path: Path) -> None:
    config, weights = mtp_checkpoint(AutoConfig.from_pretrained(tiny_model_dir))
    target = make_target(tiny_model_dir)
    load = partial(load_drafter, "mtp", target=target, folder=tmp_path)
    with pytest.raises(ModelLoadError, match="has hidden_size 64, and the model 48"):
        load((config | {"hidden_size": 64}, weights))
    longer = {"num_hidden_layers": 7, "layer_types": ["full_attention"] * 7}
    with pytest.raises(ModelLoadError, match="no module for multi-token prediction"):
        load((config | longer, weights))
    with pytest.raises(ModelLoadError, match="could not be loaded"):
        load((config | {"num_hidden_layers": 7}, weights))
    strange = {**weights, "model.layers.2.self_attn.kv_a_proj_with_mqa.weight": torch.ones(2, 2)}
    with pytest.raises(ModelLoadError, match="kv_a_proj_with_mqa"):
        load((config, strange))


def test_latent_attention_is_refused(tiny_model_dir: Path, tmp_path: Path) -> None:
    config, weights = mtp_checkpoint(AutoConfig.from_pretrained(tiny_model_dir))
    latent = {
        "model_type": "deepseek_v3",
        "hidden_size": config["hidden_size"],
        "vocab_size": config["vocab_size"],
        "kv_lora_rank": 16,
    }
    with pytest.raises(ModelLoadError, match="latent attention"):
        load_drafter("mtp", (latent, weights), make_target(tiny_model_dir), folder=tmp_path)


def norm(rows: Tensor, weight: Tensor) -> Tensor:
    return weight * rows / (rows.square().mean(-1, keepdim=True) + EPS).sqrt()


def rotated(rows: Tensor, *, share: float, base: float) -> Tensor:
    """The first part of each head turned. rows: [num_rows, num_heads, HEAD_DIM]"""
    half = int(share * HEAD_DIM) // 2
    angles = torch.arange(len(rows))[:, None] * base ** (-torch.arange(half) / half)
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    first, second, rest = rows[..., :half], rows[..., half : 2 * half], rows[..., 2 * half :]
    return torch.cat([first * cos - second * sin, second * cos + first * sin, rest], dim=-1)


def layer(
    rows: Tensor,
    weights: Weights,
    prefix: str,
    normed: Callable[[Tensor, str], Tensor],
    turn: Callable[[Tensor], Tensor],
) -> Tensor:
    """One decoder layer over whole texts. rows: [n, size]"""

    def mapped(name: str, inputs: Tensor) -> Tensor:
        bias = weights.get(f"{prefix}{name}.bias", torch.zeros(1))
        return inputs @ weights[f"{prefix}{name}.weight"].T + bias

    inputs = normed(rows, f"{prefix}input_layernorm")
    query, key, value = (
        mapped(f"self_attn.{name}_proj", inputs).view(len(rows), num_heads, -1)
        for name, num_heads in (("q", 4), ("k", 2), ("v", 2))
    )
    # Qwen3-Next has a gate behind each query.
    query, gate = query[..., :HEAD_DIM], query[..., HEAD_DIM:]
    query = turn(normed(query, f"{prefix}self_attn.q_norm"))
    key = turn(normed(key, f"{prefix}self_attn.k_norm"))
    groups = query.shape[1] // key.shape[1]
    attended = functional.scaled_dot_product_attention(
        query.transpose(0, 1),
        key.repeat_interleave(groups, dim=1).transpose(0, 1),
        value.repeat_interleave(groups, dim=1).transpose(0, 1),
        is_causal=True,
    ).transpose(0, 1)
    if gate.shape[-1]:
        attended = attended * gate.sigmoid()
    hidden = rows + mapped("self_attn.o_proj", attended.reshape(len(rows), -1))
    inner = normed(hidden, f"{prefix}post_attention_layernorm")

    def mlp(name: str, inputs: Tensor) -> Tensor:
        gated = functional.silu(mapped(f"{name}.gate_proj", inputs))
        return mapped(f"{name}.down_proj", gated * mapped(f"{name}.up_proj", inputs))

    if f"{prefix}mlp.gate.weight" not in weights:
        return hidden + mlp("mlp", inner)
    scores = mapped("mlp.gate", inner).sigmoid()
    output = mlp("mlp.shared_experts", inner)
    for at, row in enumerate(inner):
        biased = scores[at] + weights[f"{prefix}mlp.gate.e_score_correction_bias"]
        chosen = biased.topk(2).indices
        total = scores[at, chosen].sum()
        for expert in chosen.tolist():
            output[at] += scores[at, expert] / total * mlp(f"mlp.experts.{expert}", row)
    return hidden + output
