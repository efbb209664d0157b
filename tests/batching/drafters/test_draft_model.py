"""A draft model drafts what transformers' own forward pass of it finds likeliest."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from drafter_oracle import (
    MAX_DEPTH,
    MIN_EQUAL,
    Text,
    drafted_chains,
    load_drafter,
    make_target,
    random_texts,
    share_equal,
)
from model_checkpoints import draft_model_checkpoint
from transformers import AutoConfig, LlamaForCausalLM

from batching.errors import ModelLoadError


@torch.inference_mode()
def test_chains_are_those_of_the_model(tiny_model_dir: Path, tmp_path: Path) -> None:
    checkpoint = draft_model_checkpoint(AutoConfig.from_pretrained(tiny_model_dir))
    target = make_target(tiny_model_dir)
    drafter = load_drafter("draft-model", checkpoint, target, folder=tmp_path)
    texts = random_texts(target, drafter.taps)
    model = LlamaForCausalLM.from_pretrained(tmp_path, dtype=torch.float32).eval()

    def chain(text: Text) -> list[int]:
        token_ids = list(text.token_ids)
        for _ in range(MAX_DEPTH):
            logits = model(torch.tensor([token_ids]), use_cache=False).logits
            token_ids.append(int(logits[0, -1].argmax()))
        return token_ids[-MAX_DEPTH:]

    expected = [chain(text) for text in texts]
    assert share_equal(drafted_chains(drafter, texts), expected) >= MIN_EQUAL


def test_a_model_with_other_tokens_is_refused(tiny_model_dir: Path, tmp_path: Path) -> None:
    model = AutoConfig.from_pretrained(tiny_model_dir)
    checkpoint = draft_model_checkpoint(model, vocab_size=300)
    with pytest.raises(ModelLoadError, match="has 300 tokens, and the model 259"):
        load_drafter("draft-model", checkpoint, make_target(tiny_model_dir), folder=tmp_path)


def test_a_folder_without_a_model_is_refused(tiny_model_dir: Path, tmp_path: Path) -> None:
    config, weights = draft_model_checkpoint(AutoConfig.from_pretrained(tiny_model_dir))
    del weights["lm_head.weight"]
    with pytest.raises(ModelLoadError, match="lm_head"):
        load_drafter("draft-model", (config, weights), make_target(tiny_model_dir), folder=tmp_path)
