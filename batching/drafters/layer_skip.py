"""LayerSkip: the first layers of the model draft for all of them.

Source: Elhoushi et al., "LayerSkip: Enabling Early Exit Inference and Self-Speculative Decoding",
ACL 2024, arXiv 2404.16710. It works with any checkpoint, and pays with those alone that were
trained to exit early, such as `facebook/layerskip-*`: elsewhere an early layer's row means little
to the model's head.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from torch import nn

from batching.drafters.drafter import DraftAsk, Features, ObservedRequest
from batching.drafters.model_chain import ModelChain
from batching.drafters.target import TargetModel
from batching.errors import ModelLoadError
from lookup.proposer import Draft

# Without an exit layer one of so many layers drafts, as with the 8 of 32 of Llama 2 7B there.
_DEFAULT_SHARE = 4


class LayerSkip:
    """The first `exit_layer` layers, the model's norm and its head.

    Drafted tokens leave their keys and values in the model's own cache, from the last known token
    on: that is where the step that verifies them writes all layers anew, and what is not verified
    is not read.
    """

    name = "layer-skip"
    taps: Sequence[int] = ()
    kv = None

    def __init__(self, target: TargetModel, exit_layer: int | None = None) -> None:
        """Raises ModelLoadError if the model has no such layer, or none behind it."""
        num_layers = target.shape.num_layers
        if not hasattr(target.model.model, "layers"):
            raise ModelLoadError(
                "layer-skip drafts with the model's own layers, and several ranks share them; take"
                " another drafter, or one process"
            )
        if exit_layer is None:
            exit_layer = max(1, num_layers // _DEFAULT_SHARE)
        if not 0 < exit_layer < num_layers:
            raise ModelLoadError(
                f"layer-skip is to draft with {exit_layer} layers, and the model has {num_layers};"
                f" take 1 to {num_layers - 1}, such as layer-skip:{max(1, num_layers // 4)}"
            )
        self._chain = ModelChain(
            _first_layers(target.model, exit_layer),
            target.paged_kv,
            target=target,
            shape=target.shape,
        )

    def observe(self, requests: Sequence[ObservedRequest], features: Features) -> None:
        """Nothing is to be taken in: the model's own keys and values are read."""

    def draft(self, asks: Sequence[DraftAsk]) -> list[Draft]:
        """The trees that the first layers grow behind the texts."""
        return self._chain.draft(asks, reference=self.name)

    def forget(self, request_id: str) -> None:
        """Nothing is kept by request."""


def _first_layers(model: nn.Module, num_layers: int) -> nn.Module:
    """The model without its later layers; both share all weights."""
    short = _shallow_copy(model)
    short.model = _shallow_copy(short.model)
    short.model.layers = short.model.layers[:num_layers]
    return short  # type: ignore[no-any-return]


def _shallow_copy(module: Any) -> Any:
    """A module with a list of its own of the same parts."""
    copied = copy(module)
    copied._modules = dict(module._modules)
    return copied
