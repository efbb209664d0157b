"""Medusa heads: each guesses the token so many places on from the model's last hidden row alone.

Source: Cai et al., "Medusa: Simple LLM Inference Acceleration Framework with Multiple Decoding
Heads", ICML 2024, arXiv 2401.10774. A head is a few residual blocks, x + SiLU(Wx + b), and a linear
map to the vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional

from batching.drafters.checkpoint import Checkpoint
from batching.drafters.drafter import LAST_HIDDEN, DraftAsk, Features, ObservedRequest
from batching.drafters.growth import Growth
from batching.drafters.last_rows import LastRows
from batching.drafters.shared_head import take_shared_head
from batching.drafters.target import TargetModel
from lookup.proposer import Draft


@dataclass(frozen=True, slots=True)
class _Head:
    """Linear maps: those of the residual blocks, and the one to the vocabulary."""

    blocks: Sequence[Callable[[Tensor], Tensor]]
    vocabulary: Callable[[Tensor], Tensor]

    def logits(self, rows: Tensor) -> Tensor:
        for block in self.blocks:
            rows = rows + functional.silu(block(rows))
        return self.vocabulary(rows).float()


class MedusaDrafter:
    """Heads of Medusa-1 or Medusa-2, as their project stores them.

    The configuration has `medusa_num_heads` and `medusa_num_layers`; weights are named
    `{head}.{block}.linear.weight`, `{head}.{block}.linear.bias` and `{head}.{num_layers}.weight`,
    maybe behind `medusa_head.`. A vocabulary may be reduced as EAGLE-3's is. With our own key
    `medusa_shared_head` all heads share one map to it (`take_shared_head`).
    """

    name = "medusa"
    taps: Sequence[int] = (LAST_HIDDEN,)
    kv = None

    def __init__(self, target: TargetModel, checkpoint: Checkpoint) -> None:
        """Raises ModelLoadError if the heads do not fit the model."""
        self._target = target
        self._rows = LastRows()
        self._token_ids = checkpoint.take_vocabulary(target.shape.vocab_size)
        num_tokens = target.shape.vocab_size if self._token_ids is None else len(self._token_ids)
        size, num_layers = target.shape.hidden_size, checkpoint.number("medusa_num_layers", 1)
        prefix = "medusa_head." if checkpoint.has("medusa_head.0.0.linear.weight") else ""

        def block(name: str) -> Callable[[Tensor], Tensor]:
            weight = checkpoint.take(f"{name}.linear.weight", size, size)
            return target.linear(weight, checkpoint.take(f"{name}.linear.bias", size))

        shared = None
        if checkpoint.config.get("medusa_shared_head", False):
            shared = take_shared_head(target, checkpoint, self._token_ids)

        def vocabulary(name: str) -> Callable[[Tensor], Tensor]:
            if shared is not None:
                return shared
            return target.linear(checkpoint.take(name, num_tokens, size))

        self._heads = [
            _Head(
                [block(f"{prefix}{head}.{at}") for at in range(num_layers)],
                vocabulary(f"{prefix}{head}.{num_layers}.weight"),
            )
            for head in range(checkpoint.number("medusa_num_heads"))
        ]
        checkpoint.check_all_taken()

    def observe(self, requests: Sequence[ObservedRequest], features: Features) -> None:
        """Keep the last hidden row of each request."""
        self._rows.keep(requests, features[LAST_HIDDEN])

    def draft(self, asks: Sequence[DraftAsk]) -> list[Draft]:
        """One level for each head."""
        growth = Growth(self._target, asks, reference=self.name, token_ids=self._token_ids)
        for head in self._heads:
            if not growth.live:
                break
            growth.grow(head.logits(self._rows.stacked(growth.live_asks)))
        return growth.drafts()

    def forget(self, request_id: str) -> None:
        """Let the row of a request go."""
        self._rows.forget(request_id)
