"""Forward passes captured once and replayed: a step costs the host one launch.

Graphs are kept by total rows and context bucket, not by requests and draft length: rows of all
requests are packed anyway, so ragged drafts and changing batches fit the same few graphs. The
attention kernel is cut up by shapes alone, and programs without work end at once. A graph ends at
the hidden rows: only those that are verified go on to the head, which is no part of it.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import product

import torch
from torch import Tensor

from batching.model.forward_batch import ForwardBatch

# 66 rows are a draft of 64, its bonus row, and one row of another request; and so on in pairs.
_ROW_SIZES = (1, 2, 4, 8, 16, 32, 48, 66, 96, 130, 194, 258, 386, 514, 770, 1026, 1538, 2050, 4098)
_MIN_CONTEXT = 1024
_CONTEXT_GROWTH = 4

Forward = Callable[[ForwardBatch], Tensor]
Replay = Callable[[], None]
Capture = Callable[[Callable[[], Tensor]], tuple[Replay, Tensor]]


@dataclass(frozen=True, slots=True, order=True)
class GraphKey:
    """The size of a graph: up to `num_rows` rows with contexts of up to `max_context` tokens."""

    num_rows: int
    max_context: int


@dataclass(frozen=True, slots=True)
class GraphGrid:
    """The sizes that graphs exist for, each tuple ascending."""

    row_sizes: tuple[int, ...]
    context_sizes: tuple[int, ...]

    @classmethod
    def build(cls, *, max_rows: int, max_context: int) -> GraphGrid:
        """Sizes up to the token budget of a step and the longest context of the model."""
        rows = [size for size in _ROW_SIZES if size < max_rows]
        contexts = []
        size = _MIN_CONTEXT
        while size < max_context:
            contexts.append(size)
            size *= _CONTEXT_GROWTH
        return cls((*rows, max_rows), (*contexts, max_context))

    def all_keys(self) -> list[GraphKey]:
        """All sizes, the largest first, so that smaller graphs fit in the memory of larger ones."""
        keys = (GraphKey(*pair) for pair in product(self.row_sizes, self.context_sizes))
        return sorted(keys, reverse=True)

    def find(self, *, num_rows: int, max_context: int) -> GraphKey | None:
        """The smallest size that holds a step; None if there is none."""
        if num_rows > self.row_sizes[-1] or max_context > self.context_sizes[-1]:
            return None
        rows = self.row_sizes[bisect.bisect_left(self.row_sizes, num_rows)]
        context = self.context_sizes[bisect.bisect_left(self.context_sizes, max_context)]
        return GraphKey(rows, context)


@dataclass(frozen=True, slots=True)
class _Graph:
    static_batch: StaticBatch
    replay: Replay
    hidden: Tensor


class CudaGraphs:
    """The captured forward passes of one model; owns their buffers."""

    def __init__(
        self,
        forward: Forward,
        *,
        grid: GraphGrid,
        max_requests: int,
        block_size: int,
        device: torch.device,
        capture: Capture | None = None,
    ) -> None:
        """forward: hidden states [num_tokens, size] of a batch, without waiting for the device."""
        self._forward = forward
        self._grid = grid
        self._max_requests = max_requests
        self._block_size = block_size
        self._device = device
        self._capture = capture or cuda_capture()
        self._graphs: dict[GraphKey, _Graph] = {}
        self.num_replays = 0

    @property
    def num_graphs(self) -> int:
        """The number of captured graphs."""
        return len(self._graphs)

    def capture_all(self) -> None:
        """Capture the whole grid; runs padding only, which leaves the KV cache as it is."""
        for key in self._grid.all_keys():
            static_batch = StaticBatch(
                num_rows=key.num_rows,
                max_requests=min(key.num_rows, self._max_requests),
                max_blocks=-(-key.max_context // self._block_size),
                device=self._device,
            )
            replay, hidden = self._capture(_bind(self._forward, static_batch.batch))
            self._graphs[key] = _Graph(static_batch, replay, hidden)

    def try_run(self, batch: ForwardBatch) -> Tensor | None:
        """Hidden states [num_rows, size] of the `logits_rows` of a batch on the host.

        None if no graph is for it.
        The tensor belongs to the caller.
        """
        key = self._grid.find(
            num_rows=batch.input_ids.shape[0], max_context=int(batch.context_lens.max())
        )
        graph = self._graphs.get(key) if key is not None else None
        if graph is None or not graph.static_batch.can_hold(batch):
            return None
        graph.static_batch.fill(batch)
        graph.replay()
        self.num_replays += 1
        rows = graph.static_batch.batch.logits_rows[: batch.logits_rows.shape[0]]
        return graph.hidden.index_select(0, rows)


def cuda_capture() -> Capture:
    """Captures on the current CUDA device, all graphs in one pool of memory."""
    pool = torch.cuda.graph_pool_handle()

    def capture(run: Callable[[], Tensor]) -> tuple[Replay, Tensor]:
        # Kernels are compiled and libraries set up outside of the capture, on a stream like its.
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            run()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            hidden = run()
        return graph.replay, hidden

    return capture


def _bind(forward: Forward, batch: ForwardBatch) -> Callable[[], Tensor]:
    return lambda: forward(batch)


_NO_SLOT = -1
_INPUTS = [one for one in fields(ForwardBatch) if one.name != "verified"]


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
        host = self._carve(self._host_buffer)
        self._host = {one.name: getattr(host, one.name).numpy() for one in _INPUTS}
        self.batch = self._carve(self._device_buffer)
        self._host["slot_mapping"].fill(_NO_SLOT)
        self._device_buffer.copy_(self._host_buffer)

    def can_hold(self, batch: ForwardBatch) -> bool:
        """True if the rows and requests of a batch fit; contexts are for the caller to check."""
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
        for name in ("input_ids", "position_ids", "slot_mapping"):
            host[name][:num_tokens] = getattr(batch, name).numpy()
        host["slot_mapping"][num_tokens:] = _NO_SLOT
        host["logits_rows"][: batch.logits_rows.shape[0]] = batch.logits_rows.numpy()
        # Entries behind a context, and the tables of requests without one, are never read.
        tables = batch.block_tables.numpy()[:, : self.max_blocks]
        host["block_tables"][:num_requests, : tables.shape[1]] = tables
        host["cu_query_lens"][: num_requests + 1] = batch.cu_query_lens.numpy()
        host["cu_query_lens"][num_requests + 1 :] = num_tokens
        host["context_lens"][:num_requests] = batch.context_lens.numpy()
        host["context_lens"][num_requests:] = 0
        self._device_buffer.copy_(self._host_buffer, non_blocking=True)

    def _carve(self, buffer: Tensor) -> ForwardBatch:
        """Views of one int32 buffer; what verification needs is no part of it."""
        rows, requests = 2 * self.num_rows, self.max_requests
        sizes = [rows] * 4 + [requests * self.max_blocks, requests + 1, requests]
        parts = buffer.split(sizes)  # type: ignore[no-untyped-call]
        inputs, positions, slots, logits_rows = (part.view(torch.int64) for part in parts[:4])
        return ForwardBatch(
            input_ids=inputs,
            position_ids=positions,
            slot_mapping=slots,
            block_tables=parts[4].view(requests, self.max_blocks),
            cu_query_lens=parts[5],
            context_lens=parts[6],
            logits_rows=logits_rows,
        )
