"""Hydra heads draft what their project computes, written here once more in plain torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from drafter_checkpoints import hydra_checkpoint
from drafter_oracle import (
    MIN_EQUAL,
    drafted_chains,
    embedding_weight,
    load_drafter,
    make_target,
    random_texts,
    share_equal,
)
from torch import Tensor
from torch.nn import functional
from transformers import AutoConfig, LlamaConfig, LlamaModel

from batching.drafters.drafter import LAST_HIDDEN
from batching.errors import ModelLoadError

FORMATS: dict[str, dict[str, Any]] = {
    "heads": {"architecture": "mlp", "has_dropout": False},
    "ungrounded-heads": {"architecture": "mlp", "has_dropout": False, "is_grounded": False},
    "prefix": {"architecture": "prefix-mlp"},
    "ungrounded-prefix": {"architecture": "prefix-mlp", "is_grounded": False},
    "prefix-without-dropout": {"architecture": "prefix-mlp", "has_dropout": False},
}


@pytest.mark.parametrize("name", FORMATS)
def test_chains_are_those_of_the_heads(tiny_model_dir: Path, tmp_path: Path, name: str) -> None:
    model_config = AutoConfig.from_pretrained(tiny_model_dir)
    config, weights = hydra_checkpoint(model_config, **FORMATS[name])
    target, embeddings = make_target(tiny_model_dir), embedding_weight(tiny_model_dir)
    drafter = load_drafter(
        "hydra", (config, weights), target, folder=tmp_path, file_name="hydra_lm_head.pt"
    )
    texts = random_texts(target, drafter.taps)
    rows = [text.rows[LAST_HIDDEN] for text in texts]
    if config["hydra_head_arch"] == "prefix-mlp":
        rows = prefix_rows(rows, model_config, weights)
    expected = [
        oracle_chain(hidden[-1], text.token_ids[-1], config, weights, embeddings)
        for hidden, text in zip(rows, texts, strict=True)
    ]
    assert share_equal(drafted_chains(drafter, texts), expected) >= MIN_EQUAL


@torch.inference_mode()
def prefix_rows(
    rows: Sequence[Tensor], model_config: Any, weights: Mapping[str, Tensor]
) -> list[Tensor]:
    """The rows behind a model of one layer, which reads whole texts of rows."""
    settings = model_config.to_dict() | {"num_hidden_layers": 1, "tie_word_embeddings": False}
    layer = LlamaModel(LlamaConfig(**settings)).eval()
    prefix = "prefix_embeding_layer."
    layer.load_state_dict(
        {
            name.removeprefix(prefix): weight
            for name, weight in weights.items()
            if name.startswith(prefix) and "rotary_emb" not in name
        }
    )
    return [layer(inputs_embeds=one[None]).last_hidden_state[0] for one in rows]


def oracle_chain(
    hidden: Tensor,
    token: int,
    config: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    embeddings: Tensor,
) -> list[int]:
    """The greedy chain behind one row [hidden_size] and the token that follows from it."""

    def linear(name: str, row: Tensor) -> Tensor:
        return weights[f"{name}.weight"] @ row + weights[f"{name}.bias"]

    chain, read = [], [hidden]
    for head in range(config["hydra_num_heads"]):
        read.append(embeddings[token])
        row = torch.cat(read) if config["grounded_heads"] else hidden
        for place in block_places(weights, head):
            block = f"hydra_mlp.{head}.{place}"
            is_narrowed = f"{block}.res_connection.weight" in weights
            kept = linear(f"{block}.res_connection", row) if is_narrowed else row
            row = kept + functional.silu(linear(f"{block}.linear", row))
        has_dropout = f"hydra_lm_head.{head}.1.weight" in weights
        logits = linear(f"hydra_lm_head.{head}" + (".1" if has_dropout else ""), row)
        token = int(logits.argmax())
        chain.append(token)
    return chain


def block_places(weights: Mapping[str, Tensor], head: int) -> list[int]:
    """Where the blocks of a head stand among its modules, in their order."""
    beginning = f"hydra_mlp.{head}."
    names = [name.removeprefix(beginning) for name in weights if name.startswith(beginning)]
    return sorted({int(name.split(".")[0]) for name in names})


def test_rows_are_read_so_many_layers_before_the_end(tiny_model_dir: Path, tmp_path: Path) -> None:
    config, weights = hydra_checkpoint(AutoConfig.from_pretrained(tiny_model_dir))
    target = make_target(tiny_model_dir)
    checkpoint = config | {"hidden_state_offset": 1}, weights
    drafter = load_drafter("hydra", checkpoint, target, folder=tmp_path)
    assert drafter.taps == (target.shape.num_layers - 2,)


@pytest.mark.parametrize(
    ("setting", "value"), [("hydra_head_arch", "cross-attn"), ("hidden_state_offset", 2)]
)
def test_what_is_not_known_is_refused(
    tiny_model_dir: Path, tmp_path: Path, setting: str, value: object
) -> None:
    config, weights = hydra_checkpoint(AutoConfig.from_pretrained(tiny_model_dir))
    with pytest.raises(ModelLoadError, match=setting):
        load_drafter(
            "hydra",
            (config | {setting: value}, weights),
            make_target(tiny_model_dir),
            folder=tmp_path,
        )
