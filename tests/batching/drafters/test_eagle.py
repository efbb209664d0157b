"""EAGLE's layers draft what their project computes, written here once more without a cache."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from drafter_checkpoints import DRAFTERS
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
from torch import Tensor
from torch.nn import functional
from transformers import AutoConfig

from batching.drafters.drafter import LAST_HIDDEN
from batching.errors import ModelLoadError

Weights = Mapping[str, Tensor]
EPS, HEAD_DIM = 1e-5, 16


def make_checkpoint(kind: str, model_dir: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    write = DRAFTERS[kind]
    assert write is not None
    return write(AutoConfig.from_pretrained(model_dir))


def test_eagle_goes_on_from_the_last_hidden_rows(tiny_model_dir: Path, tmp_path: Path) -> None:
    config, weights = make_checkpoint("eagle", tiny_model_dir)
    target = make_target(tiny_model_dir)
    head = embedding_weight(tiny_model_dir)  # the model's head is tied to its embeddings
    drafter = load_drafter("eagle", (config, weights), target, folder=tmp_path)
    texts = random_texts(target, drafter.taps)

    def chain(text: Text) -> list[int]:
        features, token_ids = text.rows[LAST_HIDDEN], list(text.token_ids)
        drafted: list[int] = []
        for _ in range(MAX_DEPTH):
            embedded = weights["embed_tokens.weight"][token_ids[1:]]
            both = torch.cat([embedded, features], dim=-1)
            rows = both @ weights["fc.weight"].T + weights["fc.bias"]
            output = layer(rows, rows, weights, "layers.0.")
            token_ids.append(int((head @ output[-1]).argmax()))
            drafted.append(token_ids[-1])
            features = torch.cat([features, output[-1:]])
        return drafted

    expected = [chain(text) for text in texts]
    assert share_equal(drafted_chains(drafter, texts), expected) >= MIN_EQUAL


@pytest.mark.parametrize(
    "switches",
    [
        (),
        ("fc_norm", "norm_output"),
        ("norm_before_fc", "norm_before_residual"),
        ("norm_output", "norm_before_residual"),
    ],
    ids=lambda names: "+".join(names) or "plain",
)
def test_eagle3_goes_on_from_three_layers(
    tiny_model_dir: Path, tmp_path: Path, switches: tuple[str, ...]
) -> None:
    config, weights = make_checkpoint("eagle3", tiny_model_dir)
    config |= dict.fromkeys(switches, True)
    weights |= norms_of(switches, size=weights["fc.weight"].shape[1] // 3)
    target = make_target(tiny_model_dir)
    embeddings = embedding_weight(tiny_model_dir)
    token_of = torch.arange(len(weights["d2t"])) + weights["d2t"]
    drafter = load_drafter("eagle3", (config, weights), target, folder=tmp_path)
    assert list(drafter.taps) == [0, 0, 1], "the outputs of the layers before 1, 1 and 2"
    texts = random_texts(target, drafter.taps)

    def chain(text: Text) -> list[int]:
        rows = [text.rows[tap] for tap in (0, 0, 1)]
        if "fc_norm" in switches:
            rows = [norm(one, weights[f"fc_norm.{at}.weight"]) for at, one in enumerate(rows)]
        taps = torch.cat(rows, dim=-1)
        if "norm_before_fc" in switches:
            taps = norm(taps, weights["input_norm.weight"])
        features, token_ids = taps @ weights["fc.weight"].T, list(text.token_ids)
        drafted: list[int] = []
        for _ in range(MAX_DEPTH):
            embedded = norm(embeddings[token_ids[1:]], weights["midlayer.input_layernorm.weight"])
            normed = norm(features, weights["midlayer.hidden_norm.weight"])
            residual = normed if "norm_before_residual" in switches else features
            output = layer(torch.cat([embedded, normed], dim=-1), residual, weights, "midlayer.")
            last = norm(output[-1:], weights["norm.weight"])
            token_ids.append(int(token_of[(last[0] @ weights["lm_head.weight"].T).argmax()]))
            drafted.append(token_ids[-1])
            features = torch.cat([features, last if "norm_output" in switches else output[-1:]])
        return drafted

    expected = [chain(text) for text in texts]
    assert share_equal(drafted_chains(drafter, texts), expected) >= MIN_EQUAL


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("eagle", {"vocab_size": 300}, "the drafter has 300 tokens, and the model 259"),
        ("eagle3", {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 1, 9]}}, "layer 8"),
        ("eagle3", {"fc_norm": True, "norm_before_fc": True}, "both norm_before_fc and fc_norm"),
        ("eagle3", {"fc_norm": True}, "fc_norm.0.weight"),
    ],
)
def test_a_drafter_of_another_model_is_refused(
    tiny_model_dir: Path, tmp_path: Path, kind: str, change: dict[str, Any], message: str
) -> None:
    config, weights = make_checkpoint(kind, tiny_model_dir)
    target = make_target(tiny_model_dir)
    with pytest.raises(ModelLoadError, match=message):
        load_drafter(kind, (config | change, weights), target, folder=tmp_path)


def norms_of(switches: tuple[str, ...], *, size: int) -> dict[str, Tensor]:
    """The further weights that some switches bring."""
    generator = torch.Generator().manual_seed(5)
    shapes: dict[str, int] = {}
    if "fc_norm" in switches:
        shapes |= {f"fc_norm.{at}.weight": size for at in range(3)}
    if "norm_before_fc" in switches:
        shapes["input_norm.weight"] = 3 * size
    return {name: 0.5 + torch.rand(count, generator=generator) for name, count in shapes.items()}


def norm(rows: Tensor, weight: Tensor) -> Tensor:
    return weight * rows / (rows.square().mean(-1, keepdim=True) + EPS).sqrt()


def rotated(rows: Tensor) -> Tensor:
    """Rotary embeddings, base 10,000. rows: [num_rows, num_heads, HEAD_DIM]"""
    half = HEAD_DIM // 2
    angles = torch.arange(len(rows))[:, None] * 10000.0 ** (-torch.arange(half) / half)
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    first, second = rows[..., :half], rows[..., half:]
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


def layer(rows: Tensor, residual: Tensor, weights: Weights, prefix: str) -> Tensor:
    """One decoder layer over whole texts. rows: [n, input_size]; residual: [n, size]"""

    def mapped(name: str, inputs: Tensor) -> Tensor:
        return inputs @ weights[f"{prefix}{name}.weight"].T

    query, key, value = (
        mapped(f"self_attn.{name}_proj", rows).view(len(rows), -1, HEAD_DIM) for name in "qkv"
    )
    groups = query.shape[1] // key.shape[1]
    attended = functional.scaled_dot_product_attention(
        rotated(query).transpose(0, 1),
        rotated(key).repeat_interleave(groups, dim=1).transpose(0, 1),
        value.repeat_interleave(groups, dim=1).transpose(0, 1),
        is_causal=True,
    )
    merged = attended.transpose(0, 1).reshape(len(rows), -1)
    hidden = residual + mapped("self_attn.o_proj", merged)
    inner = norm(hidden, weights[f"{prefix}post_attention_layernorm.weight"])
    gate = mapped("mlp.gate_proj", inner)
    return hidden + mapped("mlp.down_proj", gate.sigmoid() * gate * mapped("mlp.up_proj", inner))
