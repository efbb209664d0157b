"""The Triton attention kernel against the reference: sizes in pairs, borders of splits, padding."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
from paged_case import TOLERANCES, PagedCase, make_case
from torch import Tensor

from kernels.gpu.paged_attention import (
    SPLIT_SIZE,
    TilePlan,
    attend_tiles,
    paged_attention_triton,
    plan_tiles,
)
from kernels.paged_attention import paged_attention_reference


@dataclass(frozen=True)
class Shape:
    """One line of the table of sizes."""

    requests: tuple[tuple[int, int], ...]
    num_groups: int = 1
    num_kv_heads: int = 1
    head_dim: int = 16
    block_size: int = 16
    dtype: torch.dtype = torch.float32

    def case(self) -> PagedCase:
        return make_case(
            list(self.requests),
            num_kv_heads=self.num_kv_heads,
            num_groups=self.num_groups,
            head_dim=self.head_dim,
            block_size=self.block_size,
            dtype=self.dtype,
        )


def compare(output: Tensor, case: PagedCase) -> None:
    """Within tolerance of the reference, padding rows zero, nothing left unwritten."""
    expected = paged_attention_reference(case.query, **case.arguments)
    assert output.dtype == expected.dtype
    num_rows = int(case.arguments["cu_query_lens"][-1])
    assert torch.equal(output[num_rows:], torch.zeros_like(output[num_rows:]))
    error = (output.float() - expected.float()).abs().max()
    assert error <= TOLERANCES[case.query.dtype], float(error)


HALF = torch.float16
SHAPES = [
    Shape(((1, 1),), num_groups=1, num_kv_heads=1, head_dim=16),
    Shape(((1, 15), (1, 16), (1, 17)), num_groups=3, num_kv_heads=2, head_dim=64, dtype=HALF),
    Shape(((1, 63), (1, 64), (1, 65)), num_groups=7, num_kv_heads=1, head_dim=80),
    Shape(((2, 2), (3, 128)), num_groups=8, num_kv_heads=2, head_dim=96, dtype=HALF),
    Shape(((17, 40),), num_groups=4, num_kv_heads=2, head_dim=64, block_size=4),
    Shape(((65, 65),), num_groups=7, num_kv_heads=1, head_dim=128, dtype=HALF),
    Shape(((65, 129),), num_groups=1, num_kv_heads=2, head_dim=80, dtype=HALF),
    Shape(((128, 128),), num_groups=1, num_kv_heads=1, head_dim=96),
    Shape(((130, 191),), num_groups=3, num_kv_heads=1, head_dim=16, dtype=HALF),
    Shape(((33, 33), (1, 70), (9, 90)), num_groups=5, num_kv_heads=1, head_dim=32),
    Shape(((1, 511), (2, 512), (1, 513)), num_groups=2, num_kv_heads=1, head_dim=16),
    Shape(((4, 515), (5, 30)), num_groups=6, num_kv_heads=1, head_dim=64, dtype=HALF),
    Shape(((66, 1026),), num_groups=2, num_kv_heads=1, head_dim=16, block_size=32),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_agrees_with_the_reference(shape: Shape) -> None:
    case = shape.case()
    compare(paged_attention_triton(case.query, **case.arguments), case)


@pytest.mark.parametrize("block_m", [16, 64])
@pytest.mark.parametrize(
    "requests",
    [
        ((1, 31), (1, 32), (1, 33)),
        ((5, 64), (1, 1), (3, 65)),
        ((40, 70),),
    ],
)
def test_splits_in_parallel_are_splits_in_turn(
    requests: tuple[tuple[int, int], ...], block_m: int
) -> None:
    case = Shape(requests, num_groups=3, block_size=8).case()
    num_tokens, num_heads, _ = case.query.shape
    split_size = 32
    plan = TilePlan(
        block_m=block_m,
        num_tiles=num_tokens * num_heads // block_m + len(requests) + 1,
        num_splits=-(-case.arguments["block_tables"].shape[1] * 8 // split_size),
        is_parallel=True,
    )
    parallel = attend_tiles(case.query, tiles=plan, split_size=split_size, **case.arguments)
    compare(parallel, case)
    serial = attend_tiles(
        case.query, tiles=replace(plan, is_parallel=False), split_size=split_size, **case.arguments
    )
    compare(serial, case)
    # The interpreter's exp2 may round a vector and a single number differently; nothing else may.
    assert (parallel - serial).abs().max() <= 3e-7


def test_requests_without_rows_are_padding() -> None:
    case = Shape(((3, 20), (1, 9)), num_groups=2).case()
    expected = paged_attention_triton(case.query, **case.arguments)
    arguments = dict(case.arguments)
    arguments["cu_query_lens"] = torch.tensor([0, 3, 4, 4, 4], dtype=torch.int32)
    arguments["context_lens"] = torch.tensor([20, 9, 0, 0], dtype=torch.int32)
    tables = case.arguments["block_tables"]
    arguments["block_tables"] = torch.cat([tables, torch.zeros_like(tables)])
    assert torch.equal(paged_attention_triton(case.query, **arguments), expected)


def test_wider_block_tables_change_no_bit() -> None:
    case = Shape(((2, 40), (1, 9)), num_groups=2).case()
    expected = paged_attention_triton(case.query, **case.arguments)
    tables = torch.nn.functional.pad(case.arguments["block_tables"], (0, 2 * SPLIT_SIZE // 16))
    output = paged_attention_triton(case.query, **{**case.arguments, "block_tables": tables})
    torch.testing.assert_close(output, expected, atol=3e-7, rtol=0)


def test_queries_may_be_views_of_packed_rows() -> None:
    case = Shape(((3, 20),), num_groups=2).case()
    packed = torch.cat([case.query, case.query], dim=1)
    output = paged_attention_triton(packed[:, :2], **case.arguments)
    assert torch.equal(output, paged_attention_triton(case.query, **case.arguments))


@pytest.mark.parametrize("num_groups", range(1, 9))
def test_a_verification_reads_its_context_in_few_tiles(num_groups: int) -> None:
    """65 rows are at most five tiles of a head; one tile a row group would be 33 of them."""
    plan = plan_tiles(
        num_tokens=65, num_requests=1, num_groups=num_groups, num_kv_heads=4, max_context=8192
    )
    assert plan.num_tiles - 1 <= -(-65 * num_groups // plan.block_m) + 1 <= 6
    assert plan.is_parallel
    assert plan.num_splits == 16


@pytest.mark.parametrize("num_requests", [1, 2, 7, 32])
def test_every_row_has_a_tile(num_requests: int) -> None:
    for query_len in range(1, 150, 7):
        for num_groups in (1, 3, 7):
            lens = [query_len + index % 3 for index in range(num_requests)]
            plan = plan_tiles(
                num_tokens=sum(lens) + 5,  # five rows of padding
                num_requests=num_requests,
                num_groups=num_groups,
                num_kv_heads=2,
                max_context=600,
            )
            starts = [0]
            for length in lens:
                starts.append(starts[-1] + length)
            for index, length in enumerate([*lens, 5]):
                first = starts[index] * num_groups // plan.block_m + index
                tiles = -(-length * num_groups // plan.block_m)
                following = (
                    starts[index + 1] * num_groups // plan.block_m + index + 1
                    if index < num_requests
                    else plan.num_tiles
                )
                assert first + tiles <= following


def test_many_tiles_merge_their_splits_themselves() -> None:
    plan = plan_tiles(
        num_tokens=2048, num_requests=4, num_groups=7, num_kv_heads=4, max_context=8192
    )
    assert not plan.is_parallel
