"""What heads read of the target, and never change: embeddings, and its head for drafted tokens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional

from training.drafters.features import TARGET_NAME, FeaturesError, read_model_config


@dataclass(frozen=True, slots=True)
class FrozenTarget:
    """Weights of the target in the numbers that products are computed in.

    embeddings: [vocab_size, hidden_size]
    head: [num_drafted, hidden_size]
    token_ids: [num_drafted] int64, the tokens that are drafted, ascending
    config: the target's, as transformers writes it
    """

    embeddings: Tensor
    head: Tensor
    token_ids: Tensor
    config: Mapping[str, Any]

    @classmethod
    def read(cls, features: Path, token_ids: Tensor, *, dtype: torch.dtype) -> FrozenTarget:
        """The target that features were collected from. Raises FeaturesError."""
        try:
            weights = load_file(features / TARGET_NAME)
        except (OSError, SafetensorError) as error:
            raise FeaturesError(f"{features} lacks the target ({error}); collect again") from error
        embeddings = weights["embed_tokens.weight"].to(dtype)
        head = weights.get("lm_head.weight", embeddings)[token_ids].to(dtype)
        return cls(embeddings, head, token_ids, read_model_config(features))

    @property
    def hidden_size(self) -> int:
        """The width of hidden rows."""
        return self.head.shape[1]

    @property
    def vocab_size(self) -> int:
        """All tokens of the target."""
        return self.embeddings.shape[0]

    def is_drafted(self) -> Tensor:
        """[vocab_size] bool"""
        marks = torch.zeros(self.vocab_size, dtype=torch.bool)
        marks[self.token_ids] = True
        return marks

    def probs(self, rows: Tensor) -> Tensor:
        """The target's probabilities [n, num_drafted] float32 among drafted tokens."""
        return functional.linear(rows.to(self.head.dtype), self.head).float().softmax(dim=-1)
