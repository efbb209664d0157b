"""Grows trees of many requests level by level, as a drafter computes one token after another."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from batching.drafters.drafter import DraftAsk
from batching.drafters.target import TargetModel
from lookup.draft_tree import draft_of_tree
from lookup.proposer import Draft

# A way that is less likely than this is not followed; it would cost more than it brings.
MIN_WORTH = 0.2
# Other tokens that are drafted beside the likeliest one, where they are likely enough.
_NUM_SIDE_TOKENS = 2
_MIN_SIDE_WORTH = 0.1


class Growth:
    """The trees under way. The likeliest way is followed; other tokens are leaves beside it.

    Which leaves are kept is decided by the product of probabilities along their way, as in EAGLE-2
    (Li et al., EMNLP 2024, arXiv 2406.16858).
    """

    def __init__(
        self,
        target: TargetModel,
        asks: Sequence[DraftAsk],
        *,
        reference: str,
        token_ids: Tensor | None = None,
    ) -> None:
        """token_ids: [num_drafted] int64; the tokens that logits are of, ascending; None for all"""
        self._target = target
        self._asks = asks
        self._reference = reference
        self._known = token_ids
        self._trees: list[tuple[list[int], list[int], list[float]]] = [([], [], []) for _ in asks]
        self._ends = [-1] * len(asks)
        self._worths = [1.0] * len(asks)
        self.live = [at for at, ask in enumerate(asks) if ask.max_nodes > 0]
        self.depth = 0

    @property
    def live_asks(self) -> list[DraftAsk]:
        """The requests whose ways are still followed."""
        return [self._asks[at] for at in self.live]

    def grow(self, logits: Tensor) -> Tensor:
        """Add one level to all that are live; the tokens [num_live] int64 that their ways go on by.

        Those whose way has become too unlikely or too long are live no more, which `live` says; of
        what the caller keeps by request, the entries of `kept` remain.

        logits: [num_live, num_tokens] float32
        """
        drawn = self._target.draw(logits, self.live_asks, depth=self.depth)
        probs = logits.softmax(dim=-1)
        count = min(1 + _NUM_SIDE_TOKENS, probs.shape[-1])
        top_probs, top = probs.topk(count, dim=-1)
        drawn_probs = probs.gather(1, drawn[:, None]).squeeze(1)
        known = self._known
        drawn_ids = drawn if known is None else known[drawn]
        top_ids = top if known is None else known[top]
        for row, at in enumerate(self.live):
            self._add_level(
                at,
                int(drawn_ids[row]),
                float(drawn_probs[row]),
                list(zip(top_ids[row].tolist(), top_probs[row].tolist(), strict=True)),
            )
        self.depth += 1
        self.kept = [row for row, at in enumerate(self.live) if self._goes_on(at)]
        self.live = [self.live[row] for row in self.kept]
        return drawn_ids[torch.tensor(self.kept, dtype=torch.int64, device=drawn_ids.device)]

    def drafts(self) -> list[Draft]:
        """The trees as drafts."""
        return [
            draft_of_tree(*tree, reference=self._reference).cut(ask.max_nodes)
            for tree, ask in zip(self._trees, self._asks, strict=True)
        ]

    def _add_level(
        self, at: int, drawn: int, drawn_prob: float, others: Sequence[tuple[int, float]]
    ) -> None:
        token_ids, parents, worths = self._trees[at]
        end, before = self._ends[at], self._worths[at]
        if self._asks[at].sampling.temperature > 0:
            # The draw is right where both distributions agree there, however unlikely the token.
            drawn_prob = max(drawn_prob, *(prob for _, prob in others))
        self._ends[at] = len(token_ids)
        self._worths[at] = before * drawn_prob
        token_ids.append(drawn)
        parents.append(end)
        worths.append(self._worths[at])
        for token_id, prob in others:
            if token_id != drawn and before * prob >= _MIN_SIDE_WORTH:
                token_ids.append(token_id)
                parents.append(end)
                worths.append(min(before * prob, self._worths[at]))

    def _goes_on(self, at: int) -> bool:
        return self.depth < self._asks[at].max_depth and self._worths[at] >= MIN_WORTH
