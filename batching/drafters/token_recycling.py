"""Token recycling: a table of what the model found likely behind each token, and no weights.

Source: Luo et al., "Turning Trash into Treasure: Accelerating Inference of Large Language Models
with Token Recycling", arXiv 2408.08696.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from batching.drafters.drafter import CANDIDATES, DraftAsk, Features, ObservedRequest
from batching.drafters.target import TargetModel
from lookup.draft_tree import grow_tree
from lookup.proposer import Draft

# The probability that a token's first, second, … candidate follows it; for the order alone.
_WORTHS = (0.6, 0.2, 0.1, 0.05)
_MAX_NODES = 16


class TokenRecycling:
    """Drafts the likeliest ways through the table, which all requests share.

    It holds token ids alone, so one request's text never shows in another's.
    """

    name = "token-recycling"
    taps: Sequence[int] = (CANDIDATES,)
    kv = None

    def __init__(self, target: TargetModel) -> None:
        self._table = torch.full((target.shape.vocab_size, len(_WORTHS)), -1)

    def observe(self, requests: Sequence[ObservedRequest], features: Features) -> None:
        """Replace the candidates of the tokens that were written."""
        rows = torch.tensor([row for one in requests for row in one.rows])
        token_ids = torch.tensor([token for one in requests for token in one.token_ids])
        candidates = features[CANDIDATES][rows, : len(_WORTHS)].cpu()
        is_asked = candidates[:, 0] >= 0
        self._table[token_ids[is_asked]] = candidates[is_asked]

    def draft(self, asks: Sequence[DraftAsk]) -> list[Draft]:
        """The tree behind the last token of each request."""
        return [self._tree(ask) for ask in asks]

    def _tree(self, ask: DraftAsk) -> Draft:
        def children(way: Sequence[int]) -> list[tuple[int, float]]:
            row = self._table[way[-1] if way else ask.token_ids[-1]].tolist()
            return [pair for pair in zip(row, _WORTHS, strict=True) if pair[0] >= 0]

        num_nodes = min(_MAX_NODES, ask.max_nodes)
        return grow_tree(
            children, max_nodes=num_nodes, max_depth=ask.max_depth, reference=self.name
        )

    def forget(self, request_id: str) -> None:
        """Nothing is kept by request."""
