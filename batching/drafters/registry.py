"""Makes the drafters that a configuration names."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from batching.config import DrafterConfig
from batching.drafters.checkpoint import Checkpoint
from batching.drafters.drafter import Drafter
from batching.drafters.eagle import Eagle3Drafter, EagleDrafter
from batching.drafters.hydra import HydraDrafter
from batching.drafters.medusa import MedusaDrafter
from batching.drafters.redrafter import RecurrentDrafter
from batching.drafters.target import TargetModel
from batching.drafters.token_recycling import TokenRecycling
from batching.errors import ModelLoadError

# Without weights, and with a folder of them.
_PLAIN: dict[str, Callable[[TargetModel], Drafter]] = {
    "token-recycling": TokenRecycling,
}
_TRAINED: dict[str, Callable[[TargetModel, Checkpoint], Drafter]] = {
    "medusa": MedusaDrafter,
    "eagle": EagleDrafter,
    "eagle3": Eagle3Drafter,
    "hydra": HydraDrafter,
    "redrafter": RecurrentDrafter,
}
DRAFTER_KINDS = (*_PLAIN, *_TRAINED)


def make_drafters(configs: Sequence[DrafterConfig], target: TargetModel) -> list[Drafter]:
    """The drafters in the order of their configurations. Raises ModelLoadError."""
    return [_make(config, target) for config in configs]


def _make(config: DrafterConfig, target: TargetModel) -> Drafter:
    if config.kind in _PLAIN:
        if config.path is not None:
            raise ModelLoadError(
                f"the drafter {config.kind} has no weights, and {config.path} is given"
            )
        return _PLAIN[config.kind](target)
    if config.kind not in _TRAINED:
        raise ModelLoadError(
            f"there is no drafter {config.kind!r}; take one of {', '.join(DRAFTER_KINDS)}"
        )
    if config.path is None:
        raise ModelLoadError(
            f"the drafter {config.kind} needs a folder with its weights: {config.kind}:FOLDER"
        )
    return _TRAINED[config.kind](
        target, Checkpoint(config.path, dtype=target.dtype, device=target.device)
    )
