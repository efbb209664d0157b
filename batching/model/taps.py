"""Takes hidden rows out of a model as it computes, for drafters that read them."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from batching.drafters.drafter import CANDIDATES, LAST_HIDDEN, NUM_CANDIDATES
from batching.errors import ModelLoadError


class Taps:
    """Keeps the output of some layers of the last forward pass, until it is taken."""

    def __init__(self, model: Any, layers: Collection[int]) -> None:
        """Raises ModelLoadError for a layer that the model does not have."""
        self._kept: dict[int, Tensor] = {}
        self._candidates: list[Tensor] = []
        self._has_last = LAST_HIDDEN in layers
        self.has_candidates = CANDIDATES in layers
        modules: nn.ModuleList = model.model.layers
        for index in sorted(set(layers) - {LAST_HIDDEN, CANDIDATES}):
            if not 0 <= index < len(modules):
                raise ModelLoadError(
                    f"a drafter reads layer {index}, and the model has {len(modules)} layers; take"
                    " the drafter that was made for this model"
                )
            modules[index].register_forward_hook(partial(self._keep, index))

    def _keep(self, index: int, _module: nn.Module, _inputs: Any, output: Any) -> None:
        hidden = output[0] if isinstance(output, tuple) else output
        self._kept[index] = hidden.reshape(-1, hidden.shape[-1])

    def take(self, last_hidden: Tensor) -> dict[int, Tensor]:
        """The rows of the pass by tap; `last_hidden` are those after the last norm."""
        kept, self._kept = self._kept, {}
        if self._has_last:
            kept[LAST_HIDDEN] = last_hidden
        return kept

    def add_candidates(
        self, features: dict[int, Tensor], logits_rows: Tensor, num_rows: int
    ) -> None:
        """Put the candidates of the rows with logits among the others. logits_rows: [n] int64"""
        candidates = torch.full((num_rows, NUM_CANDIDATES), -1, device=logits_rows.device)
        if self._candidates:
            candidates[logits_rows] = torch.cat(self._candidates)
        features[CANDIDATES] = candidates
        self._candidates = []

    def see(self, logits: Tensor) -> None:
        """Take the logits of the next rows that are asked. logits: [n, vocab_size]"""
        count = min(NUM_CANDIDATES, logits.shape[1])
        best = logits.topk(count, dim=-1).indices
        self._candidates.append(functional.pad(best, (0, NUM_CANDIDATES - count), value=-1))
