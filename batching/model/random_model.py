"""Models with real sizes and random weights, for timing."""

from __future__ import annotations

from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config

from batching.config import Dtype
from batching.model.loading import ATTENTION_NAME, read_shape, register_attention
from batching.model.runner import DeviceModel

MAX_POSITION = 40_960


def _qwen2(**sizes: Any) -> Qwen2Config:
    return Qwen2Config(max_position_embeddings=MAX_POSITION, **sizes)


def _llama(**sizes: Any) -> LlamaConfig:
    return LlamaConfig(max_position_embeddings=MAX_POSITION, **sizes)


# Sizes of Qwen2.5-Coder 7B and 1.5B, of SmolLM2 135M, and of nothing, to try the bench itself.
_CONFIGS = {
    "7b": lambda: _qwen2(
        vocab_size=152064,
        hidden_size=3584,
        intermediate_size=18944,
        num_hidden_layers=28,
        num_attention_heads=28,
        num_key_value_heads=4,
        tie_word_embeddings=False,
    ),
    "1.5b": lambda: _qwen2(
        vocab_size=151936,
        hidden_size=1536,
        intermediate_size=8960,
        num_hidden_layers=28,
        num_attention_heads=12,
        num_key_value_heads=2,
        tie_word_embeddings=True,
    ),
    "135m": lambda: _llama(
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        tie_word_embeddings=True,
    ),
    "tiny": lambda: _llama(
        vocab_size=256,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=True,
    ),
}
SHAPE_NAMES = tuple(_CONFIGS)


def make_random_model(
    shape_name: str, *, dtype: Dtype, device: torch.device, attention: str = ATTENTION_NAME
) -> DeviceModel:
    """A model of one of `SHAPE_NAMES` on `device`; the weights are made there.

    With another `attention`, one of transformers' own, it is a model as anyone would load it.
    """
    config = _CONFIGS[shape_name]()
    register_attention()
    with device:
        model = AutoModelForCausalLM.from_config(
            config, dtype=getattr(torch, dtype), attn_implementation=attention
        )
    return DeviceModel(model.eval(), read_shape(config), f"random-{shape_name}")
