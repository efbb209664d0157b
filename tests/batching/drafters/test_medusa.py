"""Medusa heads draft what their project computes, written here once more in plain torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from drafter_checkpoints import DRAFTERS
from drafter_oracle import (
    MIN_EQUAL,
    drafted_chains,
    load_drafter,
    make_target,
    random_texts,
    share_equal,
)
from torch import Tensor
from transformers import AutoConfig

from batching.drafters.drafter import LAST_HIDDEN
from batching.errors import ModelLoadError


def oracle_chain(row: Tensor, weights: Mapping[str, Tensor]) -> list[int]:
    """The likeliest token of each head. row: [hidden_size]"""
    chain = []
    for head in range(3):
        mapped = weights[f"{head}.0.linear.weight"] @ row + weights[f"{head}.0.linear.bias"]
        inner = row + mapped * torch.sigmoid(mapped)
        chain.append(int((weights[f"{head}.1.weight"] @ inner).argmax()))
    return chain


@pytest.mark.parametrize("prefix", ["", "medusa_head."])
@pytest.mark.parametrize("file_name", ["medusa_lm_head.pt", "model.safetensors"])
def test_chains_are_those_of_the_heads(
    tiny_model_dir: Path, tmp_path: Path, prefix: str, file_name: str
) -> None:
    write = DRAFTERS["medusa"]
    assert write is not None
    config, weights = write(AutoConfig.from_pretrained(tiny_model_dir))
    target = make_target(tiny_model_dir)
    stored = {prefix + name: weight for name, weight in weights.items()}
    drafter = load_drafter("medusa", (config, stored), target, folder=tmp_path, file_name=file_name)
    texts = random_texts(target, drafter.taps)
    expected = [oracle_chain(text.rows[LAST_HIDDEN][-1], weights) for text in texts]
    assert share_equal(drafted_chains(drafter, texts), expected) >= MIN_EQUAL


def test_heads_of_another_model_are_refused(tiny_model_dir: Path, tmp_path: Path) -> None:
    write = DRAFTERS["medusa"]
    assert write is not None
    config, weights = write(AutoConfig.from_pretrained(tiny_model_dir))
    target = make_target(tiny_model_dir)
    wide = weights | {"0.1.weight": torch.zeros(259, 96)}
    with pytest.raises(ModelLoadError, match=r"0\.1\.weight of shape \[259, 96\]"):
        load_drafter("medusa", (config, wide), target, folder=tmp_path)
    more = weights | {"3.1.weight": torch.zeros(2)}
    with pytest.raises(ModelLoadError, match="1 weights that are not known"):
        load_drafter("medusa", (config, more), target, folder=tmp_path)
