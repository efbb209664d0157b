"""Graphs off the GPU: their grid, their padding, and that a padded step computes the same."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, repeat
from pathlib import Path

import pytest
import torch
from torch import Tensor

from batching.model.cuda_graphs import (
    CudaGraphs,
    GraphGrid,
    GraphKey,
    GraphLimits,
    read_graph_keys,
)
from batching.model.forward_batch import ForwardBatch, VerifiedRows
from batching.model.fused_layers import fuse_decoder
from batching.model.loading import PagedKV, compute_logits, load_model, run_decoder
from batching.model.static_batch import StaticBatch
from batching.model.turning_buffers import TurningBuffers
from batching.model.verifier import verify_logits
from batching.request import SamplingParams
from batching.step_plan import ScheduledRequest, StepPlan
from kernels.attention_work import AttentionHeads
from kernels.ops import reference_ops
from lookup.proposer import Draft

CPU = torch.device("cpu")
BLOCK_SIZE = 4
NUM_BLOCKS = 12
HEADS = AttentionHeads(num_groups=2, num_kv_heads=2, head_dim=16)


def make_scheduled(
    token_ids: tuple[int, ...],
    *,
    start: int,
    block_ids: tuple[int, ...],
    drafts: tuple[int, ...] = (),
    has_logits: bool = True,
) -> ScheduledRequest:
    return ScheduledRequest(
        request_id=f"request-{block_ids[0]}",
        token_ids=token_ids,
        start=start,
        block_ids=block_ids,
        draft=Draft(drafts, "test", 0) if drafts else None,
        has_logits=has_logits,
        output_position=start,
        sampling=SamplingParams(max_tokens=8),
    )


def pack(*scheduled: ScheduledRequest) -> ForwardBatch:
    return ForwardBatch.from_plan(StepPlan(scheduled), block_size=BLOCK_SIZE)


PREFILL = pack(
    make_scheduled((5, 6, 7, 8, 9), start=0, block_ids=(3, 1)),
    make_scheduled((11, 12), start=0, block_ids=(7,), has_logits=False),
)
VERIFY = pack(
    make_scheduled((10,), start=5, block_ids=(3, 1, 9), drafts=(20, 21, 22, 23)),
    make_scheduled((13,), start=2, block_ids=(7,)),
)
DECODE = pack(make_scheduled((30,), start=3, block_ids=(7,)))


def make_static(num_rows: int, *, max_requests: int, max_blocks: int) -> StaticBatch:
    static = StaticBatch(
        num_rows=num_rows,
        max_requests=max_requests,
        max_blocks=max_blocks,
        block_size=BLOCK_SIZE,
        heads=HEADS,
    )
    static.bind(TurningBuffers(static.num_bytes, CPU))
    return static


@pytest.mark.parametrize("max_rows", [1, 2, 16, 65, 512, 4096])
def test_a_step_gets_the_smallest_graph_that_holds_it(max_rows: int) -> None:
    grid = GraphGrid.build(max_rows=max_rows)
    assert list(grid.row_sizes) == sorted(set(grid.row_sizes))
    for num_rows in range(1, max_rows + 1):
        size = grid.find(num_rows)
        assert size == min(one for one in grid.row_sizes if one >= num_rows)
        if num_rows > 64:
            assert size <= 1.125 * num_rows
    assert grid.find(max_rows + 1) is None
    assert len(grid.row_sizes) <= 52
    assert {key.num_rows for key in grid.usual()} <= set(grid.row_sizes)


def test_a_static_batch_is_the_batch_and_padding() -> None:
    static = make_static(8, max_requests=3, max_blocks=5)
    static.fill(PREFILL)
    static.fill(VERIFY)
    filled = static.batch
    assert filled.input_ids.tolist()[:6] == VERIFY.input_ids.tolist()
    assert filled.position_ids.tolist()[:6] == VERIFY.position_ids.tolist()
    assert filled.slot_mapping.tolist() == [*VERIFY.slot_mapping.tolist(), -1, -1]
    assert filled.cu_query_lens.tolist() == [0, 5, 6, 6]
    assert filled.context_lens.tolist() == [10, 3, 0]
    assert filled.block_tables[:2, :3].tolist() == VERIFY.block_tables.tolist()
    assert filled.logits_rows.tolist()[:6] == VERIFY.logits_rows.tolist()
    assert max(filled.logits_rows.tolist()) < 8
    verified = VERIFY.verified[0]
    assert static.verified.draft_token_ids.tolist() == [*verified.draft_token_ids.tolist(), -1, -1]
    assert static.verified.cu_rows.tolist() == [0, 5, 6, 6]
    for name in ("block_tables", "cu_query_lens", "context_lens"):
        assert getattr(filled, name).dtype == torch.int32
    work = filled.work
    assert work is not None
    expected = VERIFY.with_work(HEADS).work
    assert expected is not None
    num_items = work.counts[0].item()
    lines = [[line[0] // 5, *line[1:]] for line in work.items[:num_items].tolist()]
    assert lines[:-1] == [[line[0] // 3, *line[1:]] for line in expected.items.tolist()]
    assert lines[-1][1] == 6  # the padding


def test_a_fresh_static_batch_writes_nothing_and_asks_nothing() -> None:
    static = make_static(4, max_requests=2, max_blocks=1)
    assert static.batch.slot_mapping.tolist() == [-1] * 4
    assert static.batch.context_lens.tolist() == [0, 0]
    assert static.batch.cu_query_lens.tolist() == [0, 0, 0]
    assert static.verified.draft_token_ids.tolist() == [-1] * 4


def test_batches_of_other_sizes_may_share_their_buffers() -> None:
    large, small = (
        make_static(8, max_requests=3, max_blocks=5),
        make_static(2, max_requests=2, max_blocks=5),
    )
    buffers = TurningBuffers(large.num_bytes, CPU)
    large.bind(buffers)
    small.bind(buffers)
    for left in (*buffers.hosts, buffers.device):
        left.fill_(0x7F)
    large.fill(VERIFY)
    # What others left there is no token, no position and no slot of the padding.
    assert large.batch.slot_mapping.tolist() == [*VERIFY.slot_mapping.tolist(), -1, -1]
    assert large.batch.input_ids.tolist() == [*VERIFY.input_ids.tolist(), 0, 0]
    assert large.batch.position_ids.tolist() == [*VERIFY.position_ids.tolist(), 0, 0]
    assert large.batch.logits_rows.tolist()[6:] == [0, 0]
    small.fill(DECODE)
    assert small.batch.input_ids.tolist() == [*DECODE.input_ids.tolist(), 0]


def test_a_step_is_filled_where_the_copy_of_the_one_before_is_not_under_way() -> None:
    buffers = TurningBuffers(4, CPU)
    turns = []
    for value in (1, 2, 3):
        turns.append(buffers.take_turn())
        buffers.hosts[turns[-1]].fill_(value)
        assert buffers.send(3).tolist() == [value] * 3
    assert turns[0] == turns[2] != turns[1]
    assert buffers.hosts[turns[1]].tolist() == [2] * 4
    assert buffers.device.tolist() == [3, 3, 3, 0]


def test_blocks_that_are_reserved_beyond_the_context_are_left_out() -> None:
    reserved = pack(make_scheduled((30,), start=3, block_ids=(7, 8, 9, 10)))
    static = make_static(1, max_requests=1, max_blocks=1)
    static.fill(reserved)
    assert static.batch.block_tables.tolist() == [[7]]
    assert static.batch.context_lens.tolist() == [4]


@pytest.mark.parametrize("max_context", [64, 131_072])
def test_buffers_hold_every_size(max_context: int) -> None:
    """A small step of long contexts may have more partial results than a large one."""
    heads = AttentionHeads(num_groups=7, num_kv_heads=4, head_dim=128)
    grid = GraphGrid.build(max_rows=24)
    graphs = CudaGraphs(
        lambda batch: batch.input_ids,
        lambda rows, _part: rows,
        heads=heads,
        limits=GraphLimits(
            max_rows=24, max_requests=1, max_context=max_context, block_size=16, max_head_rows=24
        ),
        device=CPU,
        capture=lambda run: (lambda: None, run()),
        free_bytes=lambda: 0,
    )
    graphs.capture_first([GraphKey(size, False) for size in grid.row_sizes])
    assert graphs.num_graphs >= len(grid.row_sizes)


def capture_by_calling(run: Callable[[], Tensor]) -> tuple[Callable[[], None], Tensor]:
    """What a CUDA graph does, without one: the same call again, into the same result."""
    result = run()

    def replay() -> None:
        result.copy_(run())

    return replay, result


class Model:
    """A tiny model with graphs and, beside it, a KV cache for steps without them."""

    def __init__(self, model_dir: Path, *, max_rows: int, free_bytes: Callable[[], int]) -> None:
        self.model, shape = load_model(model_dir, dtype="float32", device=CPU)
        self.ops = reference_ops()
        assert self.ops.fused is not None
        assert fuse_decoder(self.model, self.ops.fused)
        sizes = (shape.num_layers, NUM_BLOCKS, BLOCK_SIZE, shape.num_kv_heads, shape.head_dim)
        self.captured_kv = PagedKV(keys=torch.zeros(sizes), values=torch.zeros(sizes))
        self.plain_kv = PagedKV(keys=torch.zeros(sizes), values=torch.zeros(sizes))
        self.graphs = CudaGraphs(
            lambda batch: self.forward(batch, self.captured_kv),
            self.verify,
            heads=AttentionHeads(
                num_groups=shape.num_heads // shape.num_kv_heads,
                num_kv_heads=shape.num_kv_heads,
                head_dim=shape.head_dim,
            ),
            limits=GraphLimits(
                max_rows=max_rows,
                max_requests=2,
                max_context=NUM_BLOCKS * BLOCK_SIZE,
                block_size=BLOCK_SIZE,
                max_head_rows=max_rows,
                max_bytes=1000,
            ),
            device=CPU,
            capture=capture_by_calling,
            free_bytes=free_bytes,
        )

    def forward(self, batch: ForwardBatch, paged_kv: PagedKV) -> Tensor:
        return run_decoder(self.model, batch, paged_kv=paged_kv, ops=self.ops)

    def verify(self, rows: Tensor, part: VerifiedRows) -> Tensor:
        return verify_logits(compute_logits(self.model, rows), part, ops=self.ops)


@pytest.mark.parametrize("grid_rows", [6, 16])
@torch.inference_mode()
def test_padded_steps_compute_what_plain_ones_do(tiny_model_dir: Path, grid_rows: int) -> None:
    model = Model(tiny_model_dir, max_rows=grid_rows, free_bytes=lambda: 0)
    model.graphs.capture_first()
    assert model.captured_kv.keys.count_nonzero() == 0
    for batch in (PREFILL, VERIFY, DECODE):
        expected = model.forward(batch, model.plain_kv)[batch.logits_rows]
        hidden = model.graphs.try_hidden(batch)
        if hidden is None:
            hidden = model.forward(batch, model.captured_kv)[batch.logits_rows]
        torch.testing.assert_close(hidden, expected, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(
            model.captured_kv.keys, model.plain_kv.keys, atol=1e-5, rtol=1e-5
        )
        torch.testing.assert_close(
            model.captured_kv.values, model.plain_kv.values, atol=1e-5, rtol=1e-5
        )
        outcome = model.graphs.try_outcome(batch)
        # Of seven rows of prompts one is asked about, and 7 rows are more than a grid of 6.
        assert (outcome is None) == (batch is PREFILL)
        if outcome is not None:
            assert torch.equal(outcome, model.verify(expected, batch.verified[0]))


@torch.inference_mode()
def test_a_graph_is_captured_when_its_size_comes_up_again(tiny_model_dir: Path) -> None:
    model = Model(tiny_model_dir, max_rows=16, free_bytes=lambda: 0)
    assert model.graphs.try_outcome(VERIFY) is None
    assert model.graphs.num_graphs == 0
    assert model.graphs.try_outcome(VERIFY) is not None
    assert model.graphs.try_outcome(DECODE) is None
    assert model.graphs.try_outcome(VERIFY) is not None
    assert model.graphs.most_used == [GraphKey(8, True)]
    assert (model.graphs.num_replays, model.graphs.num_padding_rows) == (2, 4)


@torch.inference_mode()
def test_known_sizes_are_captured_first_while_there_is_time(tiny_model_dir: Path) -> None:
    known = read_graph_keys([[8, 1], [8, 0], [7, 1], [99, 1]])
    model = Model(tiny_model_dir, max_rows=16, free_bytes=lambda: 0)
    model.graphs.capture_first(known, budget_s=0.0)
    assert model.graphs.num_graphs == 0
    grid = GraphGrid.build(max_rows=16)
    model.graphs.capture_first(known)
    # Sizes that the grid does not have are those of other limits.
    assert model.graphs.try_outcome(VERIFY) is not None
    assert model.graphs.try_hidden(PREFILL) is not None
    assert model.graphs.num_graphs == len({*known[:2], *grid.usual(), grid.largest})


@torch.inference_mode()
def test_graphs_beyond_the_memory_limit_are_not_captured(tiny_model_dir: Path) -> None:
    free = iter(range(10_000, 0, -700))
    model = Model(tiny_model_dir, max_rows=16, free_bytes=lambda: next(free))
    for _ in range(3):
        model.graphs.try_outcome(VERIFY)
        model.graphs.try_hidden(PREFILL)
        model.graphs.try_outcome(DECODE)
    assert model.graphs.num_graphs == 2  # of 700 bytes each; the limit is 1,000


@torch.inference_mode()
def test_graphs_fit_into_what_the_largest_one_leaves(tiny_model_dir: Path) -> None:
    """All share one pool of memory: the first one takes it, and the others find it there."""
    free = chain([10_000], repeat(3_000))
    model = Model(tiny_model_dir, max_rows=16, free_bytes=lambda: next(free))
    model.graphs.capture_first()
    num_first = model.graphs.num_graphs
    for _ in range(2):
        model.graphs.try_hidden(VERIFY)
    assert model.graphs.num_graphs == num_first + 1


@torch.inference_mode()
def test_a_little_larger_graph_serves_a_size_that_has_none(tiny_model_dir: Path) -> None:
    model = Model(tiny_model_dir, max_rows=16, free_bytes=lambda: 0)
    model.graphs.capture_first([GraphKey(8, False)], budget_s=60.0)
    longer = pack(make_scheduled(tuple(range(10, 17)), start=0, block_ids=(3, 1)))
    model.graphs.try_hidden(longer)
    assert model.graphs.num_replays == 1
