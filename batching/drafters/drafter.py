"""The interface of a drafter that works for all requests at once, beside the model.

A `lookup.Proposer` copies for one request and knows nothing of the model. A `Drafter` may read the
model's hidden rows, and may have keys and values of its own. What it drafts is verified like any
draft, so it changes the speed and never a token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from batching.model.loading import PagedKV
from batching.request import SamplingParams
from lookup.proposer import Draft

# A tap: the model's last hidden rows, after its last norm. Others are the indexes of layers, whose
# output is meant.
LAST_HIDDEN = -1
# Another: the tokens [num_rows, NUM_CANDIDATES] int64 that the model found likeliest behind each
# row, the likeliest first; -1 for rows that were not asked.
CANDIDATES = -2
NUM_CANDIDATES = 8

Features = Mapping[int, Tensor]


@dataclass(frozen=True, slots=True)
class RefusedRow:
    """A row of a drafted token that does not hold; its features tell what would follow it.

    row: its index in the pass
    parent: the row of the token before it, one that holds or a refused one
    """

    row: int
    token_id: int
    parent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedRequest:
    """The rows of one request that a step computed and that hold: tokens of its text.

    rows: their indexes in the pass
    start: the position of the first of them
    token_ids: the token of each
    next_token_ids: the token behind each
    block_ids: where their keys and values stand, by position // block_size
    refused: the rows of its draft that do not hold, parents first; their keys and values are lost
    cache_salt: as in `DraftAsk`
    """

    request_id: str
    rows: Sequence[int]
    start: int
    token_ids: Sequence[int]
    next_token_ids: Sequence[int]
    block_ids: Sequence[int]
    refused: Sequence[RefusedRow] = ()
    cache_salt: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftAsk:
    """A request that is to be drafted for, whose text but for its last token has been observed.

    token_ids: prompt and answer so far
    block_ids: blocks with room for keys and values of `max_depth` tokens more
    max_nodes, max_depth: the tokens of the draft, and those of its longest way, at most
    cache_salt: requests with the same one may know of each other
    """

    request_id: str
    token_ids: Sequence[int]
    num_prompt_tokens: int
    block_ids: Sequence[int]
    sampling: SamplingParams
    max_nodes: int
    max_depth: int
    cache_salt: bytes = b""

    @property
    def output_position(self) -> int:
        """The output position of the first token to draft."""
        return len(self.token_ids) - self.num_prompt_tokens


class Drafter(Protocol):
    """Drafts for many requests. Owned by the engine thread."""

    @property
    def name(self) -> str:
        """What its drafts have for a reference."""
        ...

    @property
    def taps(self) -> Sequence[int]:
        """The hidden rows that `observe` wants."""
        ...

    @property
    def kv(self) -> PagedKV | None:
        """Its keys and values under the block ids of the model's (`TargetModel.make_kv`)."""
        ...

    def observe(self, requests: Sequence[ObservedRequest], features: Features) -> None:
        """Take in what a step computed, as far as it holds, in the order of positions.

        features: for each tap [num_rows of the pass, hidden_size]; `CANDIDATES` as said there
        """
        ...

    def draft(self, asks: Sequence[DraftAsk]) -> list[Draft]:
        """A draft for each request, maybe an empty one. Changes nothing that `observe` has kept."""
        ...

    def forget(self, request_id: str) -> None:
        """A request has ended, or its keys and values are gone; unknown ones are no error."""
        ...
