"""ReDrafter: a recurrent network reads the drafted tokens, beside the model's last hidden row.

Source: Cheng et al., "Recurrent Drafter for Fast Speculative Decoding in Large Language Models",
arXiv 2403.09919. Its beam search is replaced by `growth`: the likeliest way is followed, and other
likely tokens are leaves beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from batching.drafters.checkpoint import Checkpoint
from batching.drafters.drafter import LAST_HIDDEN, DraftAsk, Features, ObservedRequest
from batching.drafters.growth import Growth
from batching.drafters.last_rows import LastRows
from batching.drafters.target import TargetModel
from batching.model.loading import PagedKV
from lookup.proposer import Draft


class RecurrentDrafter:
    """A recurrent drafter, as its project stores it.

    The configuration has `exit_dim`, `num_draft_layers` and `rnn`. Weights: `rnn_w` and `rnn_u` of
    the network, `lm_head.{i}.linear` of the residual blocks, x + SiLU(Wx + b), and
    `lm_head.{num_draft_layers}` of the vocabulary. `input_proj` is there where `exit_dim` is not
    twice the hidden size. Without `rnn` the state is the sum of the tokens' embeddings.
    """

    name = "redrafter"
    taps: Sequence[int] = (LAST_HIDDEN,)
    kv: PagedKV | None = None

    def __init__(self, target: TargetModel, checkpoint: Checkpoint) -> None:
        """Raises ModelLoadError if the drafter does not fit the model."""
        self._target = target
        self._rows = LastRows()
        size, vocab_size = target.shape.hidden_size, target.shape.vocab_size
        exit_size = checkpoint.number("exit_dim", 2 * size)
        num_blocks = checkpoint.number("num_draft_layers")

        def linear(name: str, num_out: int, num_in: int) -> Callable[[Tensor], Tensor]:
            weight = checkpoint.take(f"{name}.weight", num_out, num_in)
            return target.linear(weight, checkpoint.take(f"{name}.bias", num_out))

        self._is_recurrent = bool(checkpoint.config.get("rnn", False))
        if self._is_recurrent:
            self._of_token = target.linear(checkpoint.take("rnn_w.weight", size, size))
            self._of_state = linear("rnn_u", size, size)
        has_projection = exit_size != 2 * size
        self._project = linear("input_proj", exit_size, 2 * size) if has_projection else None
        self._blocks = [
            linear(f"lm_head.{index}.linear", exit_size, exit_size) for index in range(num_blocks)
        ]
        self._vocabulary = target.linear(
            checkpoint.take(f"lm_head.{num_blocks}.weight", vocab_size, exit_size)
        )
        checkpoint.check_all_taken()

    def observe(self, requests: Sequence[ObservedRequest], features: Features) -> None:
        """Keep the last hidden row of each request."""
        self._rows.keep(requests, features[LAST_HIDDEN])

    def draft(self, asks: Sequence[DraftAsk]) -> list[Draft]:
        """One token after the other; the state starts anew behind the text's last hidden row."""
        growth = Growth(self._target, asks, reference=self.name)
        if not growth.live:
            return growth.drafts()
        context = self._rows.stacked(growth.live_asks)
        state = torch.zeros_like(context)
        tokens = torch.tensor(
            [ask.token_ids[-1] for ask in growth.live_asks], device=context.device
        )
        while growth.live:
            state = self._next_state(state, tokens)
            tokens = growth.grow(self._logits(torch.cat([context, state], dim=-1)))
            context, state = context[growth.kept], state[growth.kept]
        return growth.drafts()

    def forget(self, request_id: str) -> None:
        """Let the row of a request go."""
        self._rows.forget(request_id)

    def _next_state(self, state: Tensor, tokens: Tensor) -> Tensor:
        embedded = self._target.embed(tokens)
        if not self._is_recurrent:
            return state + embedded
        return functional.silu(self._of_token(embedded) + self._of_state(state))

    def _logits(self, rows: Tensor) -> Tensor:
        """Logits [n, vocab_size] float32. rows: [n, 2 * hidden_size], the context and the state"""
        if self._project is not None:
            rows = self._project(rows)
        for block in self._blocks:
            rows = rows + functional.silu(block(rows))
        return self._vocabulary(rows).float()
