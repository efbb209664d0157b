"""Makes the drafters that a configuration names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from batching.config import DrafterConfig
from batching.drafters.checkpoint import Checkpoint
from batching.drafters.draft_model import DraftModel
from batching.drafters.drafter import Drafter
from batching.drafters.eagle import Eagle3Drafter, EagleDrafter
from batching.drafters.history import HistoryDrafter
from batching.drafters.hydra import HydraDrafter
from batching.drafters.layer_skip import LayerSkip
from batching.drafters.lookahead import LookaheadDrafter
from batching.drafters.medusa import MedusaDrafter
from batching.drafters.mtp import MtpDrafter
from batching.drafters.other_tokenizer import OtherTokenizer
from batching.drafters.redrafter import RecurrentDrafter
from batching.drafters.target import TargetModel
from batching.drafters.token_recycling import TokenRecycling
from batching.errors import ModelLoadError
from batching.recipes import TokenText

# Without weights, and with a folder of them.
_PLAIN: dict[str, Callable[[TargetModel], Drafter]] = {
    "token-recycling": TokenRecycling,
    "history": HistoryDrafter,
    "lookahead": LookaheadDrafter,
}
_TRAINED: dict[str, Callable[[TargetModel, Checkpoint], Drafter]] = {
    "medusa": MedusaDrafter,
    "eagle": EagleDrafter,
    "eagle3": Eagle3Drafter,
    "hydra": HydraDrafter,
    "redrafter": RecurrentDrafter,
}
# With a folder of which they read what they need.
_FROM_FOLDER: dict[str, Callable[[TargetModel, Path], Drafter]] = {
    "draft-model": DraftModel,
    "mtp": MtpDrafter,
}
_LAYER_SKIP, _OTHER_TOKENIZER = "layer-skip", "other-tokenizer"
DRAFTER_KINDS = (*_PLAIN, _LAYER_SKIP, *_TRAINED, *_FROM_FOLDER, _OTHER_TOKENIZER)


def make_drafters(
    configs: Sequence[DrafterConfig], target: TargetModel, tokens: TokenText | None = None
) -> list[Drafter]:
    """The drafters in the order of their configurations. Raises ModelLoadError.

    tokens: the model's tokenizer, for drafters that read text
    """
    return [_make(config, target, tokens) for config in configs]


def _make(config: DrafterConfig, target: TargetModel, tokens: TokenText | None) -> Drafter:
    if config.kind == _LAYER_SKIP:
        if config.path is not None:
            raise ModelLoadError(
                f"layer-skip takes a number of layers, such as layer-skip:8, not {config.path}"
            )
        return LayerSkip(target, config.number)
    if config.number is not None:
        raise ModelLoadError(
            f"the drafter {config.kind} takes no number, and {config.number} is given; write a"
            f" folder of this name as ./{config.number}"
        )
    if config.kind in _PLAIN:
        if config.path is not None:
            raise ModelLoadError(
                f"the drafter {config.kind} has no weights, and {config.path} is given"
            )
        return _PLAIN[config.kind](target)
    if config.kind not in DRAFTER_KINDS:
        raise ModelLoadError(
            f"there is no drafter {config.kind!r}; take one of {', '.join(DRAFTER_KINDS)}"
        )
    if config.path is None:
        raise ModelLoadError(
            f"the drafter {config.kind} needs a folder with its weights: {config.kind}:FOLDER"
        )
    if config.kind == _OTHER_TOKENIZER:
        return OtherTokenizer(target, config.path, tokens)
    if config.kind in _FROM_FOLDER:
        return _FROM_FOLDER[config.kind](target, config.path)
    return _TRAINED[config.kind](
        target, Checkpoint(config.path, dtype=target.dtype, device=target.device)
    )
