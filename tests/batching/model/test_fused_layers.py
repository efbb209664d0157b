"""Fused decoder layers compute what the transformers layers that they replace compute."""

from __future__ import annotations

import dataclasses
import os
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import (
    GraniteConfig,
    GraniteForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from batching.model.forward_batch import ForwardBatch
from batching.model.fused_layers import FusedDecoderLayer, SideBySide, fuse_decoder, pack_linears
from batching.model.loading import PagedKV, compute_logits, run_decoder
from kernels.op_set import Ops
from kernels.ops import reference_ops

VOCAB_SIZE = 40
NUM_LAYERS = 2
NUM_KV_HEADS = 2
HEAD_DIM = 16
BLOCK_SIZE = 4

SIZES: dict[str, Any] = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 48,
    "intermediate_size": 72,
    "num_hidden_layers": NUM_LAYERS,
    "num_attention_heads": 6,
    "num_key_value_heads": NUM_KV_HEADS,
    "max_position_embeddings": 64,
    "head_dim": HEAD_DIM,
    "initializer_range": 0.3,
}
# Qwen2 has biases of its own and no setting for the size of a head.
FAMILIES = {
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**SIZES, attention_bias=True)),
    "mistral": lambda: MistralForCausalLM(MistralConfig(**SIZES, sliding_window=None)),
    "qwen2": lambda: Qwen2ForCausalLM(Qwen2Config(**{**SIZES, "hidden_size": 96})),
    "qwen3": lambda: Qwen3ForCausalLM(Qwen3Config(**SIZES)),
}


def interpreted_ops() -> Ops:
    from kernels.gpu.triton_ops import triton_ops

    return triton_ops()


needs_interpreter = pytest.mark.skipif(
    find_spec("triton") is None or os.environ.get("TRITON_INTERPRET") != "1",
    reason="the kernels are not interpreted here",
)


def make_model(family: str) -> nn.Module:
    torch.manual_seed(len(family))
    model = FAMILIES[family]().eval()
    for name, parameter in model.named_parameters():
        if "norm" in name or "bias" in name:  # all ones and zeros would hide mistakes
            nn.init.normal_(parameter, mean=0.7, std=0.3)
    return model


def make_batch(token_ids: Tensor) -> tuple[ForwardBatch, PagedKV]:
    """One prompt in scattered blocks, behind whose rows stands one of padding."""
    num_tokens = len(token_ids)
    blocks = torch.tensor([5, 2, 7, 1, 4])
    positions = torch.arange(num_tokens)
    slots = blocks[positions // BLOCK_SIZE] * BLOCK_SIZE + positions % BLOCK_SIZE
    padding = torch.zeros(1, dtype=torch.int64)
    batch = ForwardBatch(
        input_ids=torch.cat([token_ids, padding]),
        position_ids=torch.cat([positions, padding]),
        slot_mapping=torch.cat([slots, padding - 1]),
        block_tables=blocks[None].int(),
        cu_query_lens=torch.tensor([0, num_tokens], dtype=torch.int32),
        context_lens=torch.tensor([num_tokens], dtype=torch.int32),
        logits_rows=positions,
    )
    cache = torch.zeros(NUM_LAYERS, 8, BLOCK_SIZE, NUM_KV_HEADS, HEAD_DIM)
    return batch, PagedKV(keys=cache, values=cache.clone())


@pytest.mark.parametrize(
    "make_ops", [reference_ops, pytest.param(interpreted_ops, marks=needs_interpreter)]
)
@pytest.mark.parametrize("family", list(FAMILIES))
def test_a_family_keeps_its_logits(family: str, make_ops: Any) -> None:
    model = make_model(family)
    token_ids = torch.randint(VOCAB_SIZE, (18,), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        expected = model(token_ids[None]).logits[0]
        ops = make_ops()
        assert fuse_decoder(model, ops.fused)
        batch, paged_kv = make_batch(token_ids)
        hidden = run_decoder(model, batch, paged_kv=paged_kv, ops=ops)
        logits = compute_logits(model, hidden[batch.logits_rows])
    assert expected.std() > 0.1
    torch.testing.assert_close(logits, expected, atol=2e-5, rtol=2e-5)


def test_other_families_keep_their_layers() -> None:
    model = GraniteForCausalLM(GraniteConfig(**SIZES))
    layers = list(model.model.layers)
    fused = reference_ops().fused
    assert fused is not None
    assert not fuse_decoder(model, fused)
    assert list(model.model.layers) == layers


def test_a_gate_that_is_not_silu_keeps_its_layer() -> None:
    model = LlamaForCausalLM(LlamaConfig(**{**SIZES, "hidden_act": "gelu"}))
    fused = reference_ops().fused
    assert fused is not None
    assert not fuse_decoder(model, fused)


def test_the_operations_of_the_layer_are_the_ones_given() -> None:
    model = make_model("qwen3")
    ops = reference_ops()
    assert ops.fused is not None
    calls: list[str] = []

    def count(name: str, operation: Any) -> Any:
        def counted(*args: Any, **kwargs: Any) -> Any:
            calls.append(name)
            return operation(*args, **kwargs)

        return counted

    names = [field.name for field in dataclasses.fields(ops.fused)]
    fused = type(ops.fused)(**{name: count(name, getattr(ops.fused, name)) for name in names})
    fuse_decoder(model, fused)
    assert all(isinstance(layer, FusedDecoderLayer) for layer in model.model.layers)
    batch, paged_kv = make_batch(torch.tensor([3, 1, 2]))
    with torch.inference_mode():
        run_decoder(model, batch, paged_kv=paged_kv, ops=ops)
    # Three norms a layer before attention, of rows, queries and keys; one behind the last layer.
    assert {name: calls.count(name) for name in names} == {
        "rms_norm": 3 * NUM_LAYERS + 1,
        "add_rms_norm": NUM_LAYERS,
        "rotary": NUM_LAYERS,
        "silu_mul": NUM_LAYERS,
    }


def test_plain_layers_are_packed_and_others_called_in_turn() -> None:
    first, second = nn.Linear(5, 3), nn.Linear(5, 4)
    rows = torch.randn(2, 5, generator=torch.Generator().manual_seed(0))
    expected = torch.cat([first(rows), second(rows)], dim=1)
    packed = pack_linears((first, second))
    assert type(packed) is nn.Linear
    torch.testing.assert_close(packed(rows), expected)
    beside = pack_linears((first, nn.Sequential(second)))
    assert isinstance(beside, SideBySide)
    torch.testing.assert_close(beside(rows), expected)
    uneven = pack_linears((first, nn.Linear(5, 4, bias=False)))
    assert isinstance(uneven, SideBySide)
