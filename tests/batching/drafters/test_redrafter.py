"""ReDrafter drafts what its paper's recurrence says, written here once more in plain torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from drafter_checkpoints import redrafter_checkpoint
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


@pytest.mark.parametrize("is_recurrent", [True, False])
@pytest.mark.parametrize("exit_size", [None, 80])
def test_chains_are_those_of_the_recurrence(
    tiny_model_dir: Path, tmp_path: Path, is_recurrent: bool, exit_size: int | None
) -> None:
    checkpoint = redrafter_checkpoint(
        AutoConfig.from_pretrained(tiny_model_dir), exit_size=exit_size, is_recurrent=is_recurrent
    )
    target, embeddings = make_target(tiny_model_dir), embedding_weight(tiny_model_dir)
    drafter = load_drafter("redrafter", checkpoint, target, folder=tmp_path)
    texts = random_texts(target, drafter.taps)
    expected = [oracle_chain(text, *checkpoint, embeddings) for text in texts]
    assert share_equal(drafted_chains(drafter, texts), expected) >= MIN_EQUAL


def oracle_chain(
    text: Text, config: dict[str, Any], weights: Mapping[str, Tensor], embeddings: Tensor
) -> list[int]:
    """The greedy chain behind one text."""
    hidden = text.rows[LAST_HIDDEN][-1]
    state, token, chain = torch.zeros_like(hidden), text.token_ids[-1], []
    for _ in range(MAX_DEPTH):
        if config["rnn"]:
            of_token = weights["rnn_w.weight"] @ embeddings[token]
            of_state = weights["rnn_u.weight"] @ state + weights["rnn_u.bias"]
            state = functional.silu(of_token + of_state)
        else:
            state = state + embeddings[token]
        row = torch.cat([hidden, state])
        if config["exit_dim"] != 2 * len(hidden):
            row = weights["input_proj.weight"] @ row + weights["input_proj.bias"]
        for block in range(config["num_draft_layers"]):
            name = f"lm_head.{block}.linear"
            row = row + functional.silu(weights[f"{name}.weight"] @ row + weights[f"{name}.bias"])
        token = int((weights[f"lm_head.{config['num_draft_layers']}.weight"] @ row).argmax())
        chain.append(token)
    return chain


def test_weights_of_another_size_are_refused(tiny_model_dir: Path, tmp_path: Path) -> None:
    config, weights = redrafter_checkpoint(AutoConfig.from_pretrained(tiny_model_dir))
    with pytest.raises(ModelLoadError, match="made for this model"):
        load_drafter(
            "redrafter",
            (config, weights | {"rnn_w.weight": torch.zeros(8, 8)}),
            make_target(tiny_model_dir),
            folder=tmp_path,
        )
