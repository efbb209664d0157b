"""Writes trained heads as `batching.drafters` loads them, and reads them again to judge them."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors.torch import save_file

from batching.drafters.checkpoint import Checkpoint
from training.drafters.eagle import EagleHeads
from training.drafters.features import FeaturesError, read_model_config
from training.drafters.frozen_target import FrozenTarget
from training.drafters.heads import DraftHeads, HeadSizes, HydraHeads, MedusaHeads

KINDS: dict[str, type[DraftHeads]] = {
    "medusa": MedusaHeads,
    "hydra": HydraHeads,
    "eagle": EagleHeads,
}
# With these a drafter for rows of 576 numbers stays below 12 MiB.
DEFAULT_SIZES = {
    "medusa": HeadSizes(num_heads=4, num_layers=4),
    "hydra": HeadSizes(num_heads=2, num_layers=3),
    "eagle": HeadSizes(num_heads=1),
}
WEIGHTS_NAME = "model.safetensors"


def write_drafter(heads: DraftHeads, folder: Path) -> None:
    """Write config.json and the weights in float16, with the map of the drafted tokens."""
    folder.mkdir(parents=True, exist_ok=True)
    token_ids = heads.target.token_ids
    weights = {name: weight.to(torch.float16) for name, weight in heads.weights().items()}
    weights["d2t"] = token_ids - torch.arange(len(token_ids))
    weights["t2d"] = heads.target.is_drafted()
    (folder / "config.json").write_text(
        json.dumps(heads.config(), indent=2) + "\n", encoding="utf-8"
    )
    partial = folder / (WEIGHTS_NAME + ".partial")
    save_file(weights, partial)
    partial.replace(folder / WEIGHTS_NAME)


def read_drafter(kind: str, folder: Path, *, features: Path) -> DraftHeads:
    """The heads in float32, of the target that features were collected from.

    Raises ModelLoadError if they cannot be read, FeaturesError if they are not of our making.
    """
    if kind not in KINDS:
        raise FeaturesError(f"heads of kind {kind!r} are not known; take one of {', '.join(KINDS)}")
    checkpoint = Checkpoint(folder, dtype=torch.float32, device=torch.device("cpu"))
    vocab_size = read_model_config(features)["vocab_size"]
    token_ids = checkpoint.take_vocabulary(vocab_size)
    if token_ids is None:
        token_ids = torch.arange(vocab_size)
    sizes = HeadSizes(
        num_heads=checkpoint.number(f"{kind}_num_heads", 1),
        num_layers=checkpoint.number(f"{kind}_num_layers", 1),
        has_own_head=checkpoint.has("lm_head.weight"),
    )
    target = FrozenTarget.read(features, token_ids, dtype=torch.float32)
    heads = KINDS[kind](target, sizes)
    try:
        heads.load_state_dict(checkpoint.take_all(""))
    except RuntimeError as error:
        raise FeaturesError(
            f"{folder} does not hold {kind} heads as `train` writes them: {error}"
        ) from error
    return heads.eval()
