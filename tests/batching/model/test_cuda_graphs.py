"""Graphs off the GPU: their grid, their padding, and that a padded step computes the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from batching.model.cuda_graphs import CudaGraphs, GraphGrid, GraphKey, StaticBatch
from batching.model.forward_batch import ForwardBatch
from batching.model.fused_layers import fuse_decoder
from batching.model.loading import PagedKV, load_model, run_decoder
from batching.request import SamplingParams
from batching.step_plan import ScheduledRequest, StepPlan
from kernels.ops import reference_ops
from lookup.proposer import Draft

CPU = torch.device("cpu")
BLOCK_SIZE = 4
NUM_BLOCKS = 12


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


def test_a_step_gets_the_smallest_graph_that_holds_it() -> None:
    grid = GraphGrid.build(max_rows=512, max_context=8192)
    assert grid.row_sizes == (1, 2, 4, 8, 16, 32, 48, 66, 96, 130, 194, 258, 386, 512)
    assert grid.context_sizes == (1024, 4096, 8192)
    cases = {
        (1, 16): GraphKey(1, 1024),
        (65, 1024): GraphKey(66, 1024),
        (67, 1040): GraphKey(96, 4096),
        (512, 8192): GraphKey(512, 8192),
        (513, 100): None,
        (1, 8208): None,
    }
    for (num_rows, max_context), expected in cases.items():
        assert grid.find(num_rows=num_rows, max_context=max_context) == expected


def test_small_limits_make_a_small_grid() -> None:
    grid = GraphGrid.build(max_rows=2, max_context=64)
    assert grid.all_keys() == [GraphKey(2, 64), GraphKey(1, 64)]


def test_a_static_batch_is_the_batch_and_padding() -> None:
    static = StaticBatch(num_rows=8, max_requests=3, max_blocks=5, device=CPU)
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
    for name in ("block_tables", "cu_query_lens", "context_lens"):
        assert getattr(filled, name).dtype == torch.int32


def test_a_fresh_static_batch_writes_nothing_and_asks_nothing() -> None:
    static = StaticBatch(num_rows=4, max_requests=2, max_blocks=1, device=CPU)
    assert static.batch.slot_mapping.tolist() == [-1] * 4
    assert static.batch.context_lens.tolist() == [0, 0]
    assert static.batch.cu_query_lens.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("num_rows", "max_requests", "can_hold"), [(6, 2, True), (5, 2, False), (6, 1, False)]
)
def test_what_does_not_fit_is_refused(num_rows: int, max_requests: int, can_hold: bool) -> None:
    static = StaticBatch(num_rows=num_rows, max_requests=max_requests, max_blocks=3, device=CPU)
    assert static.can_hold(VERIFY) is can_hold


def test_blocks_that_are_reserved_beyond_the_context_are_left_out() -> None:
    reserved = pack(make_scheduled((30,), start=3, block_ids=(7, 8, 9, 10)))
    static = StaticBatch(num_rows=1, max_requests=1, max_blocks=1, device=CPU)
    static.fill(reserved)
    assert static.batch.block_tables.tolist() == [[7]]
    assert static.batch.context_lens.tolist() == [4]


def capture_by_calling(run: Callable[[], Tensor]) -> tuple[Callable[[], None], Tensor]:
    """What a CUDA graph does, without one: the same call again, into the same result."""
    hidden = run()

    def replay() -> None:
        hidden.copy_(run())

    return replay, hidden


@pytest.mark.parametrize("grid_rows", [6, 16])
@torch.inference_mode()
def test_padded_steps_compute_what_plain_ones_do(tiny_model_dir: Path, grid_rows: int) -> None:
    model, shape = load_model(tiny_model_dir, dtype="float32", device=CPU)
    ops = reference_ops()
    assert ops.fused is not None
    assert fuse_decoder(model, ops.fused)
    cache_shape = (shape.num_layers, NUM_BLOCKS, BLOCK_SIZE, shape.num_kv_heads, shape.head_dim)

    def make_forward() -> tuple[Callable[[ForwardBatch], Tensor], PagedKV]:
        paged_kv = PagedKV(keys=torch.zeros(cache_shape), values=torch.zeros(cache_shape))
        return lambda batch: run_decoder(model, batch, paged_kv=paged_kv, ops=ops), paged_kv

    plain, plain_kv = make_forward()
    forward, paged_kv = make_forward()
    graphs = CudaGraphs(
        forward,
        grid=GraphGrid.build(max_rows=grid_rows, max_context=NUM_BLOCKS * BLOCK_SIZE),
        max_requests=2,
        block_size=BLOCK_SIZE,
        device=CPU,
        capture=capture_by_calling,
    )
    graphs.capture_all()
    assert paged_kv.keys.count_nonzero() == 0
    for batch in (PREFILL, VERIFY, DECODE):
        hidden = graphs.try_run(batch)
        if batch.input_ids.shape[0] > grid_rows:
            assert hidden is None
            hidden = forward(batch)[batch.logits_rows]
        assert hidden is not None
        expected = plain(batch)[batch.logits_rows]
        torch.testing.assert_close(hidden, expected, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(paged_kv.keys, plain_kv.keys, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(paged_kv.values, plain_kv.values, atol=1e-5, rtol=1e-5)
