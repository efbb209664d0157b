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


Write = Callable[[Any], tuple[dict[str, Any], dict[str, Tensor]]]
# None: there are no weights.
DRAFTERS: dict[str, Write | None] = {
    "token-recycling": None,
    "medusa": _medusa,
}
