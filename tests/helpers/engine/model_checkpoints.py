"""Tiny random models that draft: whole ones, and modules for multi-token prediction."""

from __future__ import annotations

from typing import Any

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    Glm4MoeConfig,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen3Config,
    Qwen3NextConfig,
)

STD = 0.3
SIZES = {
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "intermediate_size": 80,
    "rms_norm_eps": 1e-5,
    "pad_token_id": None,
}
MERGES = ("th", "in", "er", "an", "on", "re", " t", " a")

Checkpoint = tuple[dict[str, Any], dict[str, Tensor]]


def draft_model_checkpoint(model: Any, *, vocab_size: int | None = None) -> Checkpoint:
    """One narrow layer, which reads the tokens of `model` unless said otherwise."""
    config = LlamaConfig(
        **SIZES,
        vocab_size=vocab_size or model.vocab_size,
        hidden_size=32,
        num_hidden_layers=1,
        max_position_embeddings=model.max_position_embeddings,
        tie_word_embeddings=False,
        initializer_range=0.35,
        architectures=["LlamaForCausalLM"],
    )
    torch.manual_seed(7)
    return config.to_dict(), dict(LlamaForCausalLM(config).state_dict())


def merging_tokenizer() -> Tokenizer:
    """One token for each byte and for some pairs of them, and one that ends a text."""
    vocab: dict[str, int] = {}
    for symbol in sorted(pre_tokenizers.ByteLevel.alphabet()):
        vocab[symbol] = len(vocab)
    pairs = [(pair[0].replace(" ", "\u0120"), pair[1]) for pair in MERGES]
    for first, second in pairs:
        vocab[first + second] = len(vocab)
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken("</s>", special=True)])
    return tokenizer


def other_tokenizer_checkpoint(model: Any) -> Checkpoint:
    """A draft model for the tokens of `merging_tokenizer`."""
    return draft_model_checkpoint(model, vocab_size=merging_tokenizer().get_vocab_size())


def mtp_checkpoint(model: Any, *, family: str = "qwen3") -> Checkpoint:
    """A module with a layer of "qwen3", "glm", "glm-experts" or "qwen3-next"."""
    config = _family_config(family, model)
    with torch.device("meta"):
        layers: Any = AutoModelForCausalLM.from_config(config).model.layers
    size, vocabulary = model.hidden_size, (model.vocab_size, model.hidden_size)
    shapes: dict[str, tuple[int, ...]] = {
        name: tuple(weight.shape) for name, weight in layers[-1].state_dict().items()
    }
    if family == "qwen3-next":
        shapes = {f"mtp.layers.0.{name}": shape for name, shape in shapes.items()}
        shapes["mtp.fc.weight"] = (size, 2 * size)
        for name in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"):
            shapes[f"mtp.{name}.weight"] = (size,)
    else:
        shapes |= {f"{name}.weight": (size,) for name in ("enorm", "hnorm", "shared_head.norm")}
        shapes["eh_proj.weight"] = (size, 2 * size)
        if family != "qwen3":
            shapes |= {"embed_tokens.weight": vocabulary, "shared_head.head.weight": vocabulary}
        prefix = f"model.layers.{config.num_hidden_layers}."
        shapes = {prefix + name: shape for name, shape in shapes.items()}
    generator = torch.Generator().manual_seed(8)
    weights = {
        name: torch.randn(shape, generator=generator) * STD for name, shape in shapes.items()
    }
    weights = _with_single_experts(weights)
    # What else stands in the folder of a whole model.
    weights["model.layers.0.input_layernorm.weight"] = torch.ones(size)
    return config.to_dict(), weights


def _family_config(family: str, model: Any) -> Any:
    sizes: dict[str, Any] = SIZES | {
        "hidden_size": model.hidden_size,
        "vocab_size": model.vocab_size,
        "max_position_embeddings": model.max_position_embeddings,
    }
    if family == "qwen3":
        return Qwen3Config(**sizes, num_hidden_layers=2)
    if family == "qwen3-next":
        # The fourth layer is the first one with full attention, and dense.
        return Qwen3NextConfig(**sizes, num_hidden_layers=4, mlp_only_layers=[3])
    return Glm4MoeConfig(
        **sizes,
        num_hidden_layers=2,
        first_k_dense_replace=2 if family == "glm" else 1,
        attention_bias=True,
        use_qk_norm=True,
        moe_intermediate_size=24,
        n_routed_experts=6,
        num_experts_per_tok=2,
    )


def _with_single_experts(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights of experts as files have them, each by itself."""
    single: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if name.endswith("experts.gate_up_proj"):
            stem = name.removesuffix("gate_up_proj")
            for index, expert in enumerate(weight):
                gate, up = expert.chunk(2)
                single[f"{stem}{index}.gate_proj.weight"] = gate.contiguous()
                single[f"{stem}{index}.up_proj.weight"] = up.contiguous()
        elif name.endswith("experts.down_proj"):
            for index, expert in enumerate(weight):
                stem = name.removesuffix("down_proj")
                single[f"{stem}{index}.down_proj.weight"] = expert.contiguous()
        else:
            single[name] = weight
    return single
