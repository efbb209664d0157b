"""A batch at fixed addresses: what a captured graph reads, filled anew for each step."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from batching.model.forward_batch import ForwardBatch, VerifiedRows
from batching.model.turning_buffers import TurningBuffers
from kernels.attention_work import (
    LINE_SIZE,
    AttentionHeads,
    AttentionWork,
    WorkLimits,
    list_work,
)

_ALIGNMENT = 16
_NO_SLOT = -1
_NO_DRAFT = -1


class StaticBatch:
    """Room for `num_rows` rows of at most `max_requests` requests, in buffers that it is bound to.

    What a step does not fill is padding: rows that write to no slot, requests without rows. Block
    tables come last, so that filling is one copy to the device of no more than what is used.
    """

    batch: ForwardBatch
    verified: VerifiedRows

    def __init__(
        self,
        *,
        num_rows: int,
        max_requests: int,
        max_blocks: int,
        block_size: int,
        heads: AttentionHeads,
    ) -> None:
        """max_blocks: width of the block tables."""
        self.num_rows = num_rows
        self.max_requests = max_requests
        self._max_blocks = max_blocks
        self._heads = heads
        self._limits = WorkLimits.build(
            heads,
            num_tokens=num_rows,
            num_requests=max_requests,
            max_context=max_blocks * block_size,
        )
        long, short = torch.int64, torch.int32
        self._fields: dict[str, tuple[torch.dtype, tuple[int, ...]]] = {
            "input_ids": (long, (num_rows,)),
            "position_ids": (long, (num_rows,)),
            "slot_mapping": (long, (num_rows,)),
            "logits_rows": (long, (num_rows,)),
            "draft_token_ids": (long, (num_rows,)),
            "cu_rows": (long, (max_requests + 1,)),
            "cu_query_lens": (short, (max_requests + 1,)),
            "context_lens": (short, (max_requests,)),
            "items": (short, (self._limits.max_items, LINE_SIZE)),
            "merges": (short, (self._limits.max_merges, LINE_SIZE)),
            "counts": (short, (2,)),
            "block_tables": (short, (max_requests, max_blocks)),
        }
        self._offsets: dict[str, int] = {}
        end = 0
        for name, (dtype, shape) in self._fields.items():
            self._offsets[name] = end
            end += -(-math.prod(shape) * dtype.itemsize // _ALIGNMENT) * _ALIGNMENT
        self.num_bytes = end

    def bind(self, buffers: TurningBuffers) -> None:
        """Take these buffers, and put nothing but padding into them.

        The static batches of all graphs share them; one is in use.
        """
        self._buffers = buffers
        self._hosts: list[dict[str, NDArray[Any]]] = [
            {name: tensor.numpy() for name, tensor in self._views(host).items()}
            for host in buffers.hosts
        ]
        on_device = self._views(buffers.device)
        self.verified = VerifiedRows(
            start=0,
            stop=self.num_rows,
            draft_token_ids=on_device["draft_token_ids"],
            cu_rows=on_device["cu_rows"],
            allowed=None,
            sampling=None,
            wanted=None,
        )
        self.batch = ForwardBatch(
            input_ids=on_device["input_ids"],
            position_ids=on_device["position_ids"],
            slot_mapping=on_device["slot_mapping"],
            block_tables=on_device["block_tables"],
            cu_query_lens=on_device["cu_query_lens"],
            context_lens=on_device["context_lens"],
            logits_rows=on_device["logits_rows"],
            work=AttentionWork(
                items=on_device["items"],
                merges=on_device["merges"],
                counts=on_device["counts"],
                limits=self._limits,
            ),
        )
        host = self._hosts[buffers.take_turn()]
        for array in host.values():
            array.fill(0)
        host["slot_mapping"].fill(_NO_SLOT)
        host["draft_token_ids"].fill(_NO_DRAFT)
        self._list_work(host, num_requests=0)
        self._send(num_requests=self.max_requests)

    def fill(self, batch: ForwardBatch) -> None:
        """Copy a batch on the host that fits; `self.batch` is then the same, padded.

        The copy to the device may still be under way on return.
        """
        num_tokens, num_requests = batch.input_ids.shape[0], batch.context_lens.shape[0]
        host = self._hosts[self._buffers.take_turn()]
        # Others fill the same memory, so padding is written too: no token may be out of range.
        for name, padding in (("input_ids", 0), ("position_ids", 0), ("slot_mapping", _NO_SLOT)):
            host[name][:num_tokens] = getattr(batch, name).numpy()
            host[name][num_tokens:] = padding
        # Rows of a graph that nobody asks for are as good as any, but must be rows.
        num_asked = batch.logits_rows.shape[0]
        host["logits_rows"][:num_asked] = batch.logits_rows.numpy()
        host["logits_rows"][num_asked:] = 0
        # Entries behind a context, and the tables of requests without one, are never read.
        tables = batch.block_tables.numpy()[:, : self._max_blocks]
        host["block_tables"][:num_requests, : tables.shape[1]] = tables
        host["cu_query_lens"][: num_requests + 1] = batch.cu_query_lens.numpy()
        host["cu_query_lens"][num_requests + 1 :] = num_tokens
        host["context_lens"][:num_requests] = batch.context_lens.numpy()
        host["context_lens"][num_requests:] = 0
        if len(batch.verified) == 1:
            self._fill_verified(host, batch.verified[0])
        self._list_work(host, num_requests)
        self._send(num_requests)

    def _fill_verified(self, host: dict[str, NDArray[Any]], part: VerifiedRows) -> None:
        bounds = part.cu_rows.numpy()
        host["draft_token_ids"][: part.stop] = part.draft_token_ids.numpy()
        host["draft_token_ids"][part.stop :] = _NO_DRAFT
        host["cu_rows"][: len(bounds)] = bounds
        host["cu_rows"][len(bounds) :] = bounds[-1]

    def _list_work(self, host: dict[str, NDArray[Any]], num_requests: int) -> None:
        items, merges = list_work(
            np.diff(host["cu_query_lens"][: num_requests + 1]).astype(np.int64),
            host["context_lens"][:num_requests].astype(np.int64),
            num_tokens=self.num_rows,
            table_width=self._max_blocks,
            heads=self._heads,
            limits=self._limits,
        )
        host["items"][: len(items)] = items
        host["merges"][: len(merges)] = merges
        host["counts"][:] = len(items), len(merges)

    def _send(self, num_requests: int) -> None:
        used = self._offsets["block_tables"] + 4 * num_requests * self._max_blocks
        self._buffers.send(used)

    def _views(self, buffer: Tensor) -> dict[str, Tensor]:
        views = {}
        for name, (dtype, shape) in self._fields.items():
            start = self._offsets[name]
            stop = start + math.prod(shape) * dtype.itemsize
            views[name] = buffer[start:stop].view(dtype).view(shape)
        return views
