"""A forward batch whose tensors stay where they are, so that a captured graph can read them."""

from __future__ import annotations

import torch
from torch import Tensor

from batching.model.forward_batch import ForwardBatch

_NO_SLOT = -1


class StaticBatch:
    """Room for `num_rows` rows of at most `max_requests` requests, filled anew for each step.

    What a step does not fill is padding: rows that write to no slot, requests without rows. All of
    it lies in one buffer, so that filling takes a single copy to the device.
    """

    def __init__(
        self, *, num_rows: int, max_requests: int, max_blocks: int, device: torch.device
    ) -> None:
        """max_blocks: width of the block tables."""
        self.num_rows = num_rows
        self.max_requests = max_requests
        self.max_blocks = max_blocks
        size = 8 * num_rows + max_requests * max_blocks + 2 * max_requests + 1
        self._host_buffer = torch.zeros(size, dtype=torch.int32, pin_memory=device.type == "cuda")
        self._device_buffer = torch.zeros(size, dtype=torch.int32, device=device)
        self._host = self._carve(self._host_buffer)
        self.batch = self._carve(self._device_buffer)
        self._host.slot_mapping.fill_(_NO_SLOT)
        self._device_buffer.copy_(self._host_buffer)

    def can_hold(self, batch: ForwardBatch) -> bool:
        """Whether the rows and requests of a batch fit; contexts are for the caller to check."""
        return (
            batch.input_ids.shape[0] <= self.num_rows
            and batch.context_lens.shape[0] <= self.max_requests
        )

    def fill(self, batch: ForwardBatch) -> None:
        """Copy a batch on the host that it can hold; `self.batch` is then the same, padded.

        The copy to the device may still be under way on return: do not fill again before the step
        has been waited for.
        """
        num_tokens, num_requests = batch.input_ids.shape[0], batch.context_lens.shape[0]
        host = self._host
        host.input_ids[:num_tokens] = batch.input_ids
        host.position_ids[:num_tokens] = batch.position_ids
        host.slot_mapping[:num_tokens] = batch.slot_mapping
        host.slot_mapping[num_tokens:] = _NO_SLOT
        host.logits_rows[: batch.logits_rows.shape[0]] = batch.logits_rows
        # Entries behind a context, and the tables of requests without one, are never read.
        tables = batch.block_tables[:, : self.max_blocks]
        host.block_tables[:num_requests, : tables.shape[1]] = tables
        host.cu_query_lens[: num_requests + 1] = batch.cu_query_lens
        host.cu_query_lens[num_requests + 1 :] = num_tokens
        host.context_lens[:num_requests] = batch.context_lens
        host.context_lens[num_requests:] = 0
        self._device_buffer.copy_(self._host_buffer, non_blocking=True)

    def _carve(self, buffer: Tensor) -> ForwardBatch:
        """Views of one int32 buffer; what verification needs is no part of it."""
        rows, requests = 2 * self.num_rows, self.max_requests
        sizes = [rows] * 4 + [requests * self.max_blocks, requests + 1, requests]
        parts = buffer.split(sizes)  # type: ignore[no-untyped-call]
        inputs, positions, slots, logits_rows = (part.view(torch.int64) for part in parts[:4])
        nothing = buffer.new_zeros(0, dtype=torch.int64)
        return ForwardBatch(
            input_ids=inputs,
            position_ids=positions,
            slot_mapping=slots,
            block_tables=parts[4].view(requests, self.max_blocks),
            cu_query_lens=parts[5],
            context_lens=parts[6],
            logits_rows=logits_rows,
            draft_token_ids=nothing,
            cu_rows=nothing,
            allowed=None,
            sampling=None,
        )
