"""What the programs of an attention on a GPU do, listed by the host before they start.

A tile is up to `block_m` rows of one request, each of them a query token under one head of a group.
Contexts are cut every `SPLIT_SIZE` positions. An item is a tile with all of its splits, or with one
of them; a merge then puts the parts of a tile together. Both do the same arithmetic in the same
order, so the host may decide by how much work there is: a long tile beside little else is spread
over many programs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

SPLIT_SIZE = 512
# Numbers of an item or a merge; see `list_work`.
LINE_SIZE = 8
ALL_SPLITS = -1

# Sizes from which kernels are compiled: few, so that a new batch does not wait for a compiler.
_BLOCKS_M = (16, 64)
# Partial results of one call; tiles without room for theirs go through their splits in turn.
_MAX_PARTIAL_BYTES = 128 << 20
# So many programs keep any device busy.
_NUM_PROGRAMS = 512

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionHeads:
    """Sizes of an attention: `num_groups` query heads share each of `num_kv_heads`."""

    num_groups: int
    num_kv_heads: int
    head_dim: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkLimits:
    """Sizes of the lists of a call, which a captured graph has once and for all.

    block_m: rows a tile; max_items, max_merges: lines; num_slots: partial results of one tile
    """

    block_m: int
    max_items: int
    max_merges: int
    num_slots: int

    @classmethod
    def build(
        cls,
        heads: AttentionHeads,
        *,
        num_tokens: int,
        num_requests: int,
        max_context: int,
        split_size: int = SPLIT_SIZE,
    ) -> WorkLimits:
        """Limits for any `num_tokens` query tokens of `num_requests` requests and of padding."""
        num_rows = num_tokens * heads.num_groups
        block_m = next((size for size in _BLOCKS_M if size >= num_rows), _BLOCKS_M[-1])
        # Each request, and the padding behind the last one, may leave one tile partly filled.
        max_tiles = num_rows // block_m + num_requests + 1
        max_splits = -(-max_context // split_size)
        slot_bytes = 4 * heads.num_kv_heads * block_m * heads.head_dim
        num_slots = 0
        if max_splits > 1:
            num_slots = min(_MAX_PARTIAL_BYTES // slot_bytes, max_tiles * max_splits)
        return cls(
            block_m=block_m,
            max_items=max_tiles + num_slots,
            max_merges=min(max_tiles, num_slots // 2),
            num_slots=num_slots,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionWork:
    """The lists of one call, as `list_work` makes them, and how many of their lines count.

    items: [max_items, LINE_SIZE] int32; merges: [max_merges, LINE_SIZE] int32
    counts: [2] int32; the lines of `items` and of `merges` that there are
    """

    items: Tensor
    merges: Tensor
    counts: Tensor
    limits: WorkLimits

    @classmethod
    def plan(
        cls,
        query_lens: Array | Sequence[int],
        context_lens: Array | Sequence[int],
        *,
        num_tokens: int,
        table_width: int,
        heads: AttentionHeads,
        split_size: int = SPLIT_SIZE,
    ) -> AttentionWork:
        """The lists for these requests and no others, on the host; arguments as of `list_work`."""
        contexts = np.asarray(context_lens, dtype=np.int64)
        limits = WorkLimits.build(
            heads,
            num_tokens=num_tokens,
            num_requests=len(contexts),
            max_context=int(contexts.max(initial=0)),
            split_size=split_size,
        )
        items, merges = list_work(
            np.asarray(query_lens, dtype=np.int64),
            contexts,
            num_tokens=num_tokens,
            table_width=table_width,
            heads=heads,
            limits=limits,
            split_size=split_size,
        )
        num_slots = int(merges[:, 5].sum())
        return cls(
            items=torch.from_numpy(items),
            merges=torch.from_numpy(merges),
            counts=torch.tensor([len(items), len(merges)], dtype=torch.int32),
            limits=replace(
                limits, max_items=len(items), max_merges=len(merges), num_slots=num_slots
            ),
        )

    def to(self, device: torch.device) -> AttentionWork:
        """The same lists on another device."""
        return replace(
            self,
            items=self.items.to(device),
            merges=self.merges.to(device),
            counts=self.counts.to(device),
        )


def list_work(
    query_lens: Array,
    context_lens: Array,
    *,
    num_tokens: int,
    table_width: int,
    heads: AttentionHeads,
    limits: WorkLimits,
    split_size: int = SPLIT_SIZE,
) -> tuple[Array, Array]:
    """Items [num_items, LINE_SIZE] and merges [num_merges, LINE_SIZE], int32.

    An item: where the request's block table begins, its first token, the position of that token,
    the first row of the tile, the rows of the request, the split or ALL_SPLITS, the slot that its
    part goes to. A merge: the same, with the number of parts and the slot of the first one.

    query_lens, context_lens: [num_requests] int64, those of padding 0
    num_tokens: padding behind the last request included; its rows come back as zeros
    table_width: entries from one block table to the next
    """
    # Padding is a request without a context: none of its rows sees a position.
    lens = np.append(query_lens, num_tokens - query_lens.sum())
    first_tokens = np.cumsum(lens) - lens
    first_positions = np.append(context_lens, 0) - lens
    num_rows = lens * heads.num_groups
    num_tiles = -(-num_rows // limits.block_m)
    owner = np.repeat(np.arange(len(lens)), num_tiles)
    first_rows = np.arange(len(owner)) - (np.cumsum(num_tiles) - num_tiles)[owner]
    first_rows *= limits.block_m
    last_rows = np.minimum(first_rows + limits.block_m, num_rows[owner]) - 1
    visible = first_positions[owner] + last_rows // heads.num_groups + 1
    num_splits = np.maximum(0, -(-visible // split_size))

    tiles = np.zeros((len(owner), LINE_SIZE), dtype=np.int32)
    tiles[:, 0] = owner * table_width
    tiles[:, 1] = first_tokens[owner]
    tiles[:, 2] = first_positions[owner]
    tiles[:, 3] = first_rows
    tiles[:, 4] = num_rows[owner]
    tiles[:, 5] = ALL_SPLITS
    is_spread = _are_spread(num_splits, heads=heads, num_slots=limits.num_slots)
    # The longest first: what is left at the end is short.
    whole = tiles[~is_spread][np.argsort(-num_splits[~is_spread], kind="stable")]
    merges = tiles[is_spread]
    num_parts = num_splits[is_spread]
    first_slots = np.cumsum(num_parts) - num_parts
    merges[:, 5], merges[:, 6] = num_parts, first_slots

    at = np.repeat(np.arange(len(merges)), num_parts)
    splits = np.arange(len(at)) - first_slots[at]
    parts = merges[at]
    parts[:, 5], parts[:, 6] = splits, np.arange(len(at))
    # Tiles of the same split follow each other, so that its keys and values are in the L2 cache.
    order = np.lexsort((at, splits, owner[is_spread][at]))
    return np.concatenate([whole, parts[order]]), merges


def _are_spread(num_splits: Array, *, heads: AttentionHeads, num_slots: int) -> Array:
    """Which tiles have a program for each split: those of more than twice a fair share."""
    total = int(num_splits.sum()) * heads.num_kv_heads
    is_long: Array = num_splits > max(1, 2 * total // _NUM_PROGRAMS)
    order = np.argsort(-num_splits, kind="stable")
    num_used = np.cumsum(np.where(is_long, num_splits, 0)[order])
    is_long[order] = is_long[order] & (num_used <= num_slots)
    return is_long
