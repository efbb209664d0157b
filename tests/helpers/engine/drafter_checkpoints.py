"""Tiny random checkpoints of all kinds of drafters, in the formats of their projects."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from model_checkpoints import (
    draft_model_checkpoint,
    merging_tokenizer,
    mtp_checkpoint,
    other_tokenizer_checkpoint,
)
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
    if kind == "other-tokenizer":
        merging_tokenizer().save(str(path / "tokenizer.json"))
    return DrafterConfig(kind=kind, path=path)


def random_weights(seed: int, **shapes: tuple[int, ...]) -> dict[str, Tensor]:
    """Normal random numbers by name."""
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn(shape, generator=generator) * STD for name, shape in shapes.items()}


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


def hydra_checkpoint(
    model: Any,
    *,
    architecture: str = "prefix-mlp",
    is_grounded: bool = True,
    has_dropout: bool = True,
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Three heads of two blocks, and the copy of the model's embeddings that nothing reads."""
    size = model.hidden_size
    shapes: dict[str, tuple[int, ...]] = {}
    for head in range(3):
        num_in = (head + 2) * size if is_grounded else size
        first, second = (1, 3) if has_dropout else (0, 1)
        names = ["linear", "res_connection"] if is_grounded else ["linear"]
        for name in names:
            shapes[f"hydra_mlp.{head}.{first}.{name}.weight"] = (size, num_in)
            shapes[f"hydra_mlp.{head}.{first}.{name}.bias"] = (size,)
        shapes[f"hydra_mlp.{head}.{second}.linear.weight"] = (size, size)
        shapes[f"hydra_mlp.{head}.{second}.linear.bias"] = (size,)
        vocabulary = f"hydra_lm_head.{head}" + (".1" if has_dropout else "")
        shapes[f"{vocabulary}.weight"] = (model.vocab_size, size)
        shapes[f"{vocabulary}.bias"] = (model.vocab_size,)
    shapes["input_embed_fn.weight"] = (model.vocab_size, size)
    if architecture == "prefix-mlp":
        shapes |= _prefix_shapes(model)
    config = {
        "hydra_num_heads": 3,
        "hydra_num_layers": 2,
        "hydra_head_arch": architecture,
        "grounded_heads": is_grounded,
        "hidden_state_offset": 0,
    }
    return config, random_weights(5, **shapes)


def _prefix_shapes(model: Any) -> dict[str, tuple[int, ...]]:
    """A model of one layer, with the sizes of `model` and embeddings that it never reads."""
    size, inner = model.hidden_size, model.intermediate_size
    num_query, num_kv = (
        count * model.head_dim for count in (model.num_attention_heads, model.num_key_value_heads)
    )
    layer = "prefix_embeding_layer.layers.0."
    return {
        "prefix_embeding_layer.embed_tokens.weight": (model.vocab_size, size),
        "prefix_embeding_layer.norm.weight": (size,),
        f"{layer}input_layernorm.weight": (size,),
        f"{layer}post_attention_layernorm.weight": (size,),
        f"{layer}self_attn.q_proj.weight": (num_query, size),
        f"{layer}self_attn.k_proj.weight": (num_kv, size),
        f"{layer}self_attn.v_proj.weight": (num_kv, size),
        f"{layer}self_attn.o_proj.weight": (size, num_query),
        f"{layer}self_attn.rotary_emb.inv_freq": (model.head_dim // 2,),
        f"{layer}mlp.gate_proj.weight": (inner, size),
        f"{layer}mlp.up_proj.weight": (inner, size),
        f"{layer}mlp.down_proj.weight": (size, inner),
    }


def redrafter_checkpoint(
    model: Any, *, exit_size: int | None = None, is_recurrent: bool = True
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Two residual blocks, as wide as the hidden row and the state together unless said."""
    size = model.hidden_size
    width = exit_size or 2 * size
    shapes: dict[str, tuple[int, ...]] = {}
    if is_recurrent:
        shapes |= {"rnn_w.weight": (size, size)}
        shapes |= {"rnn_u.weight": (size, size), "rnn_u.bias": (size,)}
    if exit_size is not None:
        shapes |= {"input_proj.weight": (width, 2 * size), "input_proj.bias": (width,)}
    for block in range(2):
        shapes[f"lm_head.{block}.linear.weight"] = (width, width)
        shapes[f"lm_head.{block}.linear.bias"] = (width,)
    shapes["lm_head.2.weight"] = (model.vocab_size, width)
    config = {
        "model_type": "recurrent_drafting_drafter",
        "vocab_size": model.vocab_size,
        "hidden_size": size,
        "exit_dim": width,
        "num_draft_layers": 2,
        "num_lookback_tokens": -1,
        "rnn": is_recurrent,
    }
    return config, random_weights(6, **shapes)


Write = Callable[[Any], tuple[dict[str, Any], dict[str, Tensor]]]
# None: there are no weights.
DRAFTERS: dict[str, Write | None] = {
    "token-recycling": None,
    "history": None,
    "lookahead": None,
    "layer-skip": None,
    "medusa": _medusa,
    "eagle": _eagle,
    "eagle3": _eagle3,
    "hydra": hydra_checkpoint,
    "redrafter": redrafter_checkpoint,
    "draft-model": draft_model_checkpoint,
    "mtp": mtp_checkpoint,
    "other-tokenizer": other_tokenizer_checkpoint,
}
