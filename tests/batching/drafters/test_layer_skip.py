"""The first layers draft what a model of these layers alone finds likeliest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from drafter_oracle import (
    MAX_DEPTH,
    MIN_EQUAL,
    Text,
    drafted_chains,
    make_target,
    random_texts,
    share_equal,
)
from transformers import AutoConfig, LlamaConfig, LlamaForCausalLM

from batching.config import DrafterConfig, parse_drafters
from batching.drafters.model_chain import ModelChain
from batching.drafters.own_layers import RowRun
from batching.drafters.registry import make_drafters
from batching.drafters.target import TargetModel
from batching.errors import ModelLoadError

NUM_LAYERS = 3


@pytest.fixture(scope="module")
def model_dir(tiny_model_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with layers enough to leave some out."""
    path = tmp_path_factory.mktemp("three-layers")
    settings = AutoConfig.from_pretrained(tiny_model_dir).to_dict()
    torch.manual_seed(5)
    model = LlamaForCausalLM(LlamaConfig(**settings | {"num_hidden_layers": NUM_LAYERS}))
    model.save_pretrained(path)
    return path


def compute(target: TargetModel, texts: Sequence[Text]) -> None:
    """The keys and values of whole texts but for their last tokens, as steps write them."""
    chain = ModelChain(target.model, target.paged_kv, target=target, shape=target.shape)
    chain.compute([RowRun(text.token_ids[:-1], 0, text.block_ids) for text in texts])


@torch.inference_mode()
@pytest.mark.parametrize("exit_layer", [1, 2])
def test_chains_are_those_of_the_first_layers(model_dir: Path, exit_layer: int) -> None:
    target = make_target(model_dir)
    (drafter,) = make_drafters(parse_drafters(f"layer-skip:{exit_layer}"), target)
    texts = random_texts(target, drafter.taps)
    model = LlamaForCausalLM.from_pretrained(model_dir, dtype=torch.float32).eval()
    model.model.layers = model.model.layers[:exit_layer]

    def chain(text: Text) -> list[int]:
        token_ids = list(text.token_ids)
        for _ in range(MAX_DEPTH):
            logits = model(torch.tensor([token_ids]), use_cache=False).logits
            token_ids.append(int(logits[0, -1].argmax()))
        return token_ids[-MAX_DEPTH:]

    compute(target, texts)
    expected = [chain(text) for text in texts]
    assert share_equal(drafted_chains(drafter, texts), expected) >= MIN_EQUAL


@torch.inference_mode()
def test_keys_and_values_of_known_tokens_stay(model_dir: Path) -> None:
    target = make_target(model_dir)
    (drafter,) = make_drafters(parse_drafters("layer-skip:2"), target)
    texts = random_texts(target, drafter.taps)
    compute(target, texts)
    caches = (target.paged_kv.keys, target.paged_kv.values)
    before = [cache.clone() for cache in caches]
    drafted_chains(drafter, texts)
    slots = torch.tensor(
        [
            text.block_ids[at // target.block_size] * target.block_size + at % target.block_size
            for text in texts
            for at in range(text.num_rows)
        ]
    )
    for old, new in zip(before, caches, strict=True):
        assert torch.equal(old.flatten(1, 2)[:, slots], new.flatten(1, 2)[:, slots])
        assert torch.equal(old[2:], new[2:]), "later layers are never written"


def test_a_quarter_of_the_layers_drafts_unless_said(model_dir: Path) -> None:
    (config,) = parse_drafters("layer-skip")
    assert config == DrafterConfig("layer-skip")
    (drafter,) = make_drafters([config], make_target(model_dir))
    assert drafter.name == "layer-skip"


@pytest.mark.parametrize("text", ["layer-skip:0", "layer-skip:3", "layer-skip:/weights", "mtp:4"])
def test_what_cannot_be_is_refused(model_dir: Path, text: str) -> None:
    with pytest.raises(ModelLoadError):
        make_drafters(parse_drafters(text), make_target(model_dir))
