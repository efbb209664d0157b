"""Tiny random checkpoints of all kinds of drafters, in the formats of their projects."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import AutoConfig

from batching.config import DrafterConfig

STD = 0.3


def make_drafter_config(kind: str, model_dir: Path, folder: Path) -> DrafterConfig:
    """The configuration of a drafter for a model, its weights written to a folder."""
    write = DRAFTERS[kind]
    if write is None:
        return DrafterConfig(kind=kind)
    path = folder / kind
    path.mkdir()
    config, weights = write(AutoConfig.from_pretrained(model_dir))
    (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    save_file(weights, path / "model.safetensors")
    return DrafterConfig(kind=kind, path=path)


def random_weights(seed: int, **shapes: tuple[int, ...]) -> dict[str, Tensor]:
    """Normal random numbers by name."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: torch.randn(shape, generator=generator) * STD for name, shape in shapes.items()
    }


def _medusa(model: Any) -> tuple[dict[str, Any], dict[str, Tensor]]:
    size = model.hidden_size
    shapes: dict[str, tuple[int, ...]] = {}
    for head in range(3):
        shapes[f"{head}.0.linear.weight"] = (size, size)
        shapes[f"{head}.0.linear.bias"] = (size,)
        shapes[f"{head}.1.weight"] = (model.vocab_size, size)
    config = {"medusa_num_heads": 3, "medusa_num_layers": 1, "base_model_name_or_path": "tiny"}
    return config, random_weights(1, **shapes)


def _layer_shapes(prefix: str, size: int, input_size: int) -> dict[str, tuple[int, ...]]:
    """A Llama layer of 4 heads with 2 of keys and values, 16 numbers each."""
    return {
        f"{prefix}self_attn.q_proj.weight": (64, input_size),
        f"{prefix}self_attn.k_proj.weight": (32, input_size),
        f"{prefix}self_attn.v_proj.weight": (32, input_size),
        f"{prefix}self_attn.o_proj.weight": (size, 64),
        f"{prefix}mlp.gate_proj.weight": (80, size),
        f"{prefix}mlp.up_proj.weight": (80, size),
        f"{prefix}mlp.down_proj.weight": (size, 80),
        f"{prefix}post_attention_layernorm.weight": (size,),
    }


def _eagle_config(model: Any) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": model.hidden_size,
        "intermediate_size": 80,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "num_hidden_layers": 1,
        "vocab_size": model.vocab_size,
        "max_position_embeddings": model.max_position_embeddings,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
    }


def _eagle(model: Any) -> tuple[dict[str, Any], dict[str, Tensor]]:
    size = model.hidden_size
    shapes = {"fc.weight": (size, 2 * size), "fc.bias": (size,)}
    shapes |= _layer_shapes("layers.0.", size, size)
    shapes["embed_tokens.weight"] = (model.vocab_size, size)
    return _eagle_config(model), random_weights(2, **shapes)


def _eagle3(model: Any) -> tuple[dict[str, Any], dict[str, Tensor]]:
    size, num_drafted = model.hidden_size, 100
    shapes = {"fc.weight": (size, 3 * size), "norm.weight": (size,)}
    shapes |= _layer_shapes("midlayer.", size, 2 * size)
    shapes["midlayer.hidden_norm.weight"] = shapes["midlayer.input_layernorm.weight"] = (size,)
    shapes["lm_head.weight"] = (num_drafted, size)
    weights = random_weights(3, **shapes)
    chosen = torch.randperm(model.vocab_size, generator=torch.Generator().manual_seed(4))
    chosen = chosen[:num_drafted].sort().values
    weights["d2t"] = chosen - torch.arange(num_drafted)
    weights["t2d"] = torch.zeros(model.vocab_size, dtype=torch.bool)
    weights["t2d"][chosen] = True
    config = _eagle_config(model) | {
        "draft_vocab_size": num_drafted,
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 1, 2]},
    }
    return config, weights


Write = Callable[[Any], tuple[dict[str, Any], dict[str, Tensor]]]
# None: there are no weights.
DRAFTERS: dict[str, Write | None] = {
    "token-recycling": None,
    "medusa": _medusa,
    "eagle": _eagle,
    "eagle3": _eagle3,
}
