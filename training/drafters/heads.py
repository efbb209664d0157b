"""Heads that can be trained: Medusa's, which are independent, and Hydra's, which read drafts.

All heads of a drafter share one map to the drafted tokens, the target's own or a trained copy.
Modules are named as `batching.drafters` reads them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.drafters.features import Passage
from training.drafters.frozen_target import FrozenTarget

# Cai et al., 2024, weigh the head so many tokens on by this to that power.
_LEVEL_WEIGHT = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadSizes:
    """How many heads, residual blocks of each, and whether the map to the tokens is trained."""

    num_heads: int
    num_layers: int = 1
    has_own_head: bool = False


class DraftHeads(nn.Module, ABC):
    """Drafts the tokens behind the next one. Level k of row i leads to token i + 2 + k."""

    def __init__(self, target: FrozenTarget, sizes: HeadSizes) -> None:
        super().__init__()
        self.target = target
        self.sizes = sizes
        self._is_drafted = target.is_drafted()
        self.lm_head: nn.Linear | None = None
        if sizes.has_own_head:
            self.lm_head = nn.Linear(target.hidden_size, len(target.token_ids), bias=False)
            with torch.no_grad():
                self.lm_head.weight.copy_(target.head)

    def fit_inputs(self, passage: Passage) -> None:
        """Set what depends on how large the target's rows are, by a passage of it."""

    def weights(self) -> dict[str, Tensor]:
        """What the drafter's file holds, by name."""
        return dict(self.state_dict())

    @abstractmethod
    def config(self) -> dict[str, Any]:
        """What the drafter's config.json holds."""

    @abstractmethod
    def level_rows(self, passage: Passage, num_levels: int) -> Iterator[Tensor]:
        """What leads to each level's tokens, given the tokens before in the text.

        Yields [num_tokens - 1 - k, hidden_size] for level k. num_levels: below num_tokens
        """

    def logits(self, rows: Tensor) -> Tensor:
        """Logits [n, num_drafted] of rows [n, hidden_size]."""
        weight = self.target.head if self.lm_head is None else self.lm_head.weight
        return functional.linear(rows, weight)

    def loss_sum(self, passage: Passage, rng: torch.Generator) -> Tensor:
        """The loss of a passage, summed over its rows: cross entropy to the target's words.

        Rows at which the target chooses a token that is not drafted do not count.
        """
        num_levels = min(self.sizes.num_heads, len(passage) - 1)
        return self.words_loss(self.level_rows(passage, num_levels), passage)

    def words_loss(self, levels: Iterator[Tensor], passage: Passage) -> Tensor:
        """The weighted sum of the levels' cross entropies  # [] float32"""
        with torch.no_grad():
            target_probs = self.target.probs(passage.rows)
        is_known = self._is_drafted[passage.choice_ids]
        total = torch.zeros(())
        for level, rows in enumerate(levels):
            kept = is_known[1 + level :]
            log_probs = self.logits(rows[kept]).float().log_softmax(dim=-1)
            total = (
                total - _LEVEL_WEIGHT**level * (target_probs[1 + level :][kept] * log_probs).sum()
            )
        return total

    def guesses(self, passage: Passage, *, num_levels: int, count: int) -> list[Tensor]:
        """The likeliest tokens [num_tokens - 1 - k, count] of each level k, the likeliest first."""
        return [
            self.target.token_ids[self.logits(rows).topk(count, dim=-1).indices]
            for rows in self.level_rows(passage, min(num_levels, len(passage) - 1))
        ]


class ResidualBlock(nn.Module):
    """x + SiLU(Wx + b); where it narrows its input, a linear map stands for the input itself.

    At first it gives what it was given, or the first `size` numbers of it.
    """

    def __init__(self, num_in: int, size: int) -> None:
        super().__init__()
        self.linear = nn.Linear(num_in, size)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        self.res_connection: nn.Linear | None = None
        if num_in != size:
            self.res_connection = nn.Linear(num_in, size)
            nn.init.eye_(self.res_connection.weight)
            nn.init.zeros_(self.res_connection.bias)

    def forward(self, rows: Tensor) -> Tensor:
        """[n, size] of rows [n, num_in]."""
        kept: Tensor = rows if self.res_connection is None else self.res_connection(rows)
        return kept + functional.silu(self.linear(rows))


class MedusaHeads(DraftHeads):
    """Each head guesses from the last hidden row alone (see `batching.drafters.medusa`)."""

    def __init__(self, target: FrozenTarget, sizes: HeadSizes) -> None:
        super().__init__(target, sizes)
        size = target.hidden_size
        self.medusa_head = nn.ModuleList(
            nn.Sequential(*(ResidualBlock(size, size) for _ in range(sizes.num_layers)))
            for _ in range(sizes.num_heads)
        )

    def config(self) -> dict[str, Any]:
        """As the project of Medusa names it, and our own key."""
        return {
            "medusa_num_heads": self.sizes.num_heads,
            "medusa_num_layers": self.sizes.num_layers,
            "medusa_shared_head": True,
        }

    def level_rows(self, passage: Passage, num_levels: int) -> Iterator[Tensor]:
        """One level for each head."""
        rows = passage.rows.to(self.target.head.dtype)
        for level, head in enumerate(self.medusa_head[:num_levels]):
            yield head(rows[: len(passage) - 1 - level])


class HydraHeads(DraftHeads):
    """Each head reads the drafted tokens before its own (see `batching.drafters.hydra`).

    Embeddings are far smaller than hidden rows, so what reads them would learn far more slowly.
    While it is trained a head reads them enlarged, and stored weights are larger in their place.
    """

    def __init__(self, target: FrozenTarget, sizes: HeadSizes) -> None:
        super().__init__(target, sizes)
        self._embedding_scale = 1.0
        size = target.hidden_size
        self.hydra_mlp = nn.ModuleList(
            nn.Sequential(
                ResidualBlock((head + 2) * size, size),
                *(ResidualBlock(size, size) for _ in range(sizes.num_layers - 1)),
            )
            for head in range(sizes.num_heads)
        )

    def fit_inputs(self, passage: Passage) -> None:
        """Read embeddings as large as the target's rows."""
        rows, embeddings = passage.rows.float(), self.target.embeddings.float()
        self._embedding_scale = float(
            rows.square().mean().sqrt() / embeddings.square().mean().sqrt()
        )

    def weights(self) -> dict[str, Tensor]:
        """Those of first blocks are as they read embeddings as they are."""
        weights = dict(self.state_dict())
        for name, weight in weights.items():
            if weight.ndim == 2 and weight.shape[1] > self.target.hidden_size:
                scale = torch.ones(weight.shape[1])
                scale[self.target.hidden_size :] = self._embedding_scale
                weights[name] = weight * scale
        return weights

    def config(self) -> dict[str, Any]:
        """As the project of Hydra names it, and our own key."""
        return {
            "hydra_num_heads": self.sizes.num_heads,
            "hydra_num_layers": self.sizes.num_layers,
            "hydra_head_arch": "mlp",
            "grounded_heads": True,
            "hidden_state_offset": 0,
            "hydra_shared_head": True,
        }

    def level_rows(self, passage: Passage, num_levels: int) -> Iterator[Tensor]:
        """One level for each head."""
        embedded = self._embedding_scale * self.target.embeddings[passage.token_ids]
        inputs = passage.rows.to(embedded.dtype)
        for level, head in enumerate(self.hydra_mlp[:num_levels]):
            num_rows = len(passage) - 1 - level
            inputs = torch.cat([inputs[:num_rows], embedded[1 + level :]], dim=-1)
            yield head(inputs)
