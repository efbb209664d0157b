"""Steps captured once and replayed: a step costs the host one launch.

Graphs are kept by rows, not by requests, drafts or contexts: rows of all requests are packed
anyway, and attention walks a list. So ragged drafts and changing batches fit the same few graphs.
Where all rows are verified greedily, a graph has the head and the verification too; else it ends
at the hidden rows. Graphs are captured when a size has come up twice, those that earlier starts
used most at the start.
"""

from __future__ import annotations

import bisect
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import torch
from torch import Tensor

from batching.model.forward_batch import ForwardBatch, VerifiedRows
from batching.model.static_batch import StaticBatch
from batching.model.turning_buffers import TurningBuffers
from kernels.attention_work import AttentionHeads

_SMALL_ROW_SIZES = (1, 2, 4, 8, 12, 16)
# A size is this much larger than the one before, so a step is padded by 6 % on average.
_GROWTH = 1.125
_ROW_MULTIPLE = 8
# A graph that is larger by this still beats launching each kernel.
_MAX_PADDING = 1.25
USES_BEFORE_CAPTURE = 2
# With fewer of its rows verified, a step would mostly compute logits that nobody asks for.
_MIN_VERIFIED = 0.8
# Rows of one draft of usual length, with those of a few other requests.
_USUAL_ROWS = 72
_FIRST_CAPTURES_S = 8.0
_MAX_GRAPH_BYTES = 1 << 30

Forward = Callable[[ForwardBatch], Tensor]
Verify = Callable[[Tensor, VerifiedRows], Tensor]
Replay = Callable[[], None]
Capture = Callable[[Callable[[], Tensor]], tuple[Replay, Tensor]]


@dataclass(frozen=True, slots=True, order=True)
class GraphKey:
    """The size of a graph: up to `num_rows` rows, with head and verification or without."""

    num_rows: int
    has_head: bool


@dataclass(frozen=True, slots=True)
class GraphGrid:
    """The numbers of rows that graphs may have, ascending."""

    row_sizes: tuple[int, ...]

    @classmethod
    def build(cls, *, max_rows: int) -> GraphGrid:
        """Sizes up to the token budget of a step."""
        sizes = list(_SMALL_ROW_SIZES)
        while sizes[-1] < max_rows:
            grown = int(sizes[-1] * _GROWTH) // _ROW_MULTIPLE * _ROW_MULTIPLE
            sizes.append(max(sizes[-1] + _ROW_MULTIPLE, grown))
        return cls((*(size for size in sizes if size < max_rows), max_rows))

    def find(self, num_rows: int) -> int | None:
        """The smallest size that holds so many rows; None if there is none."""
        at = bisect.bisect_left(self.row_sizes, num_rows)
        return self.row_sizes[at] if at < len(self.row_sizes) else None

    def usual(self) -> list[GraphKey]:
        """What every server meets: decoding, and one draft."""
        return [GraphKey(size, True) for size in self.row_sizes if size <= _USUAL_ROWS]

    @property
    def largest(self) -> GraphKey:
        """A full step of prompts."""
        return GraphKey(self.row_sizes[-1], False)


@dataclass(frozen=True, slots=True)
class _Graph:
    static_batch: StaticBatch
    replay: Replay
    result: Tensor  # the hidden rows [num_rows, size], or the outcome with room for all requests


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphLimits:
    """Sizes of the largest step, and how much memory all graphs may take."""

    max_rows: int
    max_requests: int
    max_context: int
    block_size: int
    max_head_rows: int
    max_bytes: int = _MAX_GRAPH_BYTES


class CudaGraphs:
    """The captured steps of one model; owns their buffers."""

    def __init__(
        self,
        forward: Forward,
        verify: Verify,
        *,
        heads: AttentionHeads,
        limits: GraphLimits,
        device: torch.device,
        capture: Capture | None = None,
        free_bytes: Callable[[], int] | None = None,
    ) -> None:
        """forward: hidden states [num_tokens, size] of a batch; verify: the outcome of its rows.

        Neither may wait for the device. `capture` and `free_bytes` None are those of CUDA.
        """
        self._forward = forward
        self._verify = verify
        self._heads = heads
        self._limits = limits
        self._device = device
        self._capture = capture or cuda_capture()
        self._free_bytes = free_bytes or _cuda_free_bytes
        self._grid = GraphGrid.build(max_rows=limits.max_rows)
        sizes = map(self._static_batch, self._grid.row_sizes)
        self._buffers = TurningBuffers(max(one.num_bytes for one in sizes), device)
        self._graphs: dict[GraphKey, _Graph] = {}
        self._num_uses: Counter[GraphKey] = Counter()
        self._num_bytes = 0
        self.num_replays = 0
        self.num_padding_rows = 0

    @property
    def num_graphs(self) -> int:
        """The number of captured graphs."""
        return len(self._graphs)

    @property
    def most_used(self) -> list[GraphKey]:
        """The captured graphs, those that most steps asked for first."""
        captured = ((key, count) for key, count in self._num_uses.items() if key in self._graphs)
        return [key for key, _ in sorted(captured, key=lambda pair: -pair[1])]

    def capture_first(
        self, known: Iterable[GraphKey] = (), *, budget_s: float = _FIRST_CAPTURES_S
    ) -> None:
        """Capture what earlier starts used most and what is usual, until the time is up.

        The largest comes first: all share one pool, so the others find their memory in what it
        leaves. It does not count, as such a step would take as much without a graph.
        Runs padding only, which leaves the KV cache as it is.
        """
        end = time.monotonic() + budget_s
        if budget_s > 0:
            with suppress(torch.OutOfMemoryError):  # the others may be small enough
                self._graph_of(self._grid.largest)
            self._num_bytes = 0
        for key in dict.fromkeys([*known, *self._grid.usual()]):
            if time.monotonic() >= end or not self._has_room():
                return
            if key in self._graphs:
                continue
            if key.num_rows in self._grid.row_sizes and self._may_have(key):
                self._graph_of(key)

    def try_outcome(self, batch: ForwardBatch) -> Tensor | None:
        """The outcome of a batch on the host, as `pack_outcome` makes it; None if no graph has it.

        The tensor belongs to the caller.
        """
        num_tokens = batch.input_ids.shape[0]
        part = batch.verified[0] if len(batch.verified) == 1 else None
        if part is None or part.wants_logits or part.stop < _MIN_VERIFIED * num_tokens:
            return None
        graph = self._find(batch, has_head=True)
        if graph is None:
            return None
        self._run(graph, batch)
        num_requests = part.cu_rows.shape[0] - 1
        token_ids, num_accepted = graph.result.tensor_split([graph.static_batch.num_rows])
        return torch.cat([token_ids[: part.stop], num_accepted[:num_requests]])

    def try_hidden(self, batch: ForwardBatch) -> Tensor | None:
        """Hidden states [num_rows, size] of the `logits_rows` of a batch on the host.

        None if no graph has it. The tensor belongs to the caller.
        """
        graph = self._find(batch, has_head=False)
        if graph is None:
            return None
        self._run(graph, batch)
        rows = graph.static_batch.batch.logits_rows[: batch.logits_rows.shape[0]]
        return graph.result.index_select(0, rows)

    def _run(self, graph: _Graph, batch: ForwardBatch) -> None:
        graph.static_batch.fill(batch)
        graph.replay()
        self.num_replays += 1
        self.num_padding_rows += graph.static_batch.num_rows - batch.input_ids.shape[0]

    def _find(self, batch: ForwardBatch, *, has_head: bool) -> _Graph | None:
        """The graph for a batch, captured now if its size has come up before; or a larger one."""
        num_rows = batch.input_ids.shape[0]
        size = self._grid.find(num_rows)
        if (
            size is None
            or batch.shared is not None
            or batch.context_lens.shape[0] > self._limits.max_requests
            or int(batch.context_lens.max()) > self._limits.max_context
        ):
            return None
        key = GraphKey(size, has_head)
        if not self._may_have(key):
            return None
        self._num_uses[key] += 1
        if key in self._graphs:
            return self._graphs[key]
        if self._num_uses[key] >= USES_BEFORE_CAPTURE and self._has_room():
            return self._graph_of(key)
        for larger in self._grid.row_sizes[bisect.bisect_right(self._grid.row_sizes, size) :]:
            if larger > _MAX_PADDING * num_rows:
                break
            if (found := self._graphs.get(GraphKey(larger, has_head))) is not None:
                return found
        return None

    def _may_have(self, key: GraphKey) -> bool:
        return not key.has_head or key.num_rows <= self._limits.max_head_rows

    def _has_room(self) -> bool:
        return self._num_bytes < self._limits.max_bytes

    def _graph_of(self, key: GraphKey) -> _Graph:
        """A graph of this size, captured now."""
        static_batch = self._static_batch(key.num_rows)
        static_batch.bind(self._buffers)
        batch, verified = static_batch.batch, static_batch.verified

        def run() -> Tensor:
            hidden = self._forward(batch)
            if not key.has_head:
                return hidden
            return self._verify(hidden.index_select(0, batch.logits_rows), verified)

        free_before = self._free_bytes()
        replay, result = self._capture(run)
        self._num_bytes += max(0, free_before - self._free_bytes())
        self._graphs[key] = _Graph(static_batch, replay, result)
        return self._graphs[key]

    def _static_batch(self, num_rows: int) -> StaticBatch:
        limits = self._limits
        return StaticBatch(
            num_rows=num_rows,
            max_requests=min(num_rows, limits.max_requests),
            max_blocks=-(-limits.max_context // limits.block_size),
            block_size=limits.block_size,
            heads=self._heads,
        )


def read_graph_keys(values: Sequence[Sequence[int]]) -> list[GraphKey]:
    """Keys from plain lists of a JSON file; raises ValueError for anything else."""
    return [GraphKey(int(num_rows), bool(has_head)) for num_rows, has_head in values]


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
        # Other threads move prompts to and from the device meanwhile.
        with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
            result = run()
        return graph.replay, result

    return capture


def _cuda_free_bytes() -> int:
    return int(torch.cuda.mem_get_info()[0])
