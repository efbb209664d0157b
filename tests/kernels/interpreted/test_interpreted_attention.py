"""The Triton attention kernel against the reference: sizes in pairs, borders of splits, padding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from paged_case import TOLERANCES, PagedCase, make_case
from torch import Tensor

from kernels.attention_work import SPLIT_SIZE, AttentionHeads, AttentionWork, list_work
from kernels.gpu.paged_attention import paged_attention_triton
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


@pytest.mark.parametrize(
    "requests",
    [
        ((1, 31), (1, 32), (1, 33)),
        ((5, 64), (1, 1), (3, 65)),
        ((40, 70),),
    ],
)
def test_splits_in_parallel_are_splits_in_turn(requests: tuple[tuple[int, int], ...]) -> None:
    case = Shape(requests, num_groups=3, block_size=8).case()
    split_size = 32
    spread = plan(case, split_size=split_size)
    assert len(spread.merges)
    whole = plan(case, split_size=split_size, num_slots=0)
    assert not len(whole.merges)
    outputs = [
        paged_attention_triton(case.query, **case.arguments, work=work, split_size=split_size)
        for work in (spread, whole)
    ]
    for output in outputs:
        compare(output, case)
    # The interpreter's exp2 may round a vector and a single number differently; nothing else may.
    assert (outputs[0] - outputs[1]).abs().max() <= 3e-7


def plan(case: PagedCase, *, split_size: int, num_slots: int | None = None) -> AttentionWork:
    """The lists of a case, perhaps with room for fewer parts."""
    lens = case.arguments["cu_query_lens"].diff().numpy()
    contexts = case.arguments["context_lens"].numpy()
    num_heads, num_kv_heads = case.query.shape[1], case.arguments["key_cache"].shape[2]
    arguments: dict[str, Any] = {
        "num_tokens": case.query.shape[0],
        "table_width": case.arguments["block_tables"].shape[1],
        "heads": AttentionHeads(
            num_groups=num_heads // num_kv_heads,
            num_kv_heads=num_kv_heads,
            head_dim=case.query.shape[2],
        ),
        "split_size": split_size,
    }
    work = AttentionWork.plan(lens, contexts, **arguments)
    if num_slots is None:
        return work
    limits = replace(work.limits, num_slots=num_slots)
    items, merges = list_work(lens.astype("int64"), contexts, limits=limits, **arguments)
    return replace(
        work,
        items=torch.from_numpy(items),
        merges=torch.from_numpy(merges),
        counts=torch.tensor([len(items), len(merges)], dtype=torch.int32),
        limits=replace(limits, max_items=len(items), max_merges=len(merges)),
    )


def test_lines_behind_the_counts_are_not_walked() -> None:
    """A captured graph has room for more lines than most steps have."""
    case = Shape(((2, 70), (1, 9)), num_groups=2, block_size=8).case()
    work = plan(case, split_size=32)
    limits = work.limits
    roomy = replace(
        work,
        items=torch.nn.functional.pad(work.items, (0, 0, 0, 3), value=1 << 20),
        merges=torch.nn.functional.pad(work.merges, (0, 0, 0, 2), value=1 << 20),
        limits=replace(limits, max_items=limits.max_items + 3, max_merges=limits.max_merges + 2),
    )
    outputs = [
        paged_attention_triton(case.query, **case.arguments, work=one, split_size=32)
        for one in (work, roomy)
    ]
    assert torch.equal(*outputs)


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
    assert torch.equal(output, expected)


def test_queries_may_be_views_of_packed_rows() -> None:
    case = Shape(((3, 20),), num_groups=2).case()
    packed = torch.cat([case.query, case.query], dim=1)
    output = paged_attention_triton(packed[:, :2], **case.arguments)
    assert torch.equal(output, paged_attention_triton(case.query, **case.arguments))
