"""A row of linear layers and of attention has the same bits alone, among others, and before others.

The numbers cancel each other but for what rounding leaves, so that a sum in another order shows.
`make test-isa` runs the whole grid at every instruction set that the processor has.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from engine_runs import forced_rows

from kernels import row_bits
from kernels.instruction_set import has_bfloat16, onednn_levels
from kernels.linear import OneDnnLinear
from kernels.row_bits import (
    AttentionShape,
    LinearShape,
    choose_row_bits,
    try_attention,
    try_linear,
)
from kernels.row_grouping import RowBits, RowGrouping

ROW_COUNTS = (1, 2, 7, 8, 17, 65, 129, 300, 512)
CONTEXTS = (
    *(1, 15, 16, 17, 127, 128, 129, 255, 256, 257, 511, 512, 513),
    *(640, 1023, 1024, 1025, 2048, 4097, 8192),
)
DTYPES = [torch.float32, *([torch.bfloat16] if has_bfloat16() else [])]
GROUPINGS = [RowGrouping.ALL, RowGrouping.TILES]

EMBEDDED_ATTENTION = AttentionShape(num_heads=9, num_kv_heads=3, head_dim=64)
LARGE_ATTENTION = AttentionShape(num_heads=8, num_kv_heads=2, head_dim=128)
EMBEDDED_LINEARS = [
    LinearShape(in_features=in_features, out_features=out_features, is_packed=is_packed)
    for in_features, out_features, is_packed in (
        (576, 192, True),
        (576, 576, True),
        (576, 1536, True),
        (1536, 576, True),
        (576, 49152, False),
    )
]

pytestmark = pytest.mark.skipif(
    not torch.backends.mkldnn.is_available(),  # type: ignore[no-untyped-call]
    reason="this torch has no oneDNN",
)
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    """As served: threads share a product in ways that may show."""
    num_threads = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(num_threads)


def parts_of(longest: int, contexts: tuple[int, ...]) -> list[tuple[int, int]]:
    """Every number of rows at the end of every context within the last 512 rows of `longest`."""
    return [
        (num_rows, context)
        for context in contexts
        for num_rows in ROW_COUNTS
        if longest - 512 < context <= longest and num_rows <= context
    ]


def choose(
    dtype: torch.dtype,
    linears: list[LinearShape] = EMBEDDED_LINEARS,
    attention: AttentionShape = EMBEDDED_ATTENTION,
) -> RowBits:
    """The ways that are chosen at start, as the environment allows."""
    mode = forced_rows()
    least = RowGrouping.ALL if mode == "auto" else RowGrouping(mode)
    return choose_row_bits(linears, attention, dtype=dtype, least=least)


@pytest.mark.slow
@each_dtype
@pytest.mark.parametrize("shape", [EMBEDDED_ATTENTION, LARGE_ATTENTION], ids=["64", "128"])
@pytest.mark.parametrize("longest", [512, 640, 1025, 1536, 2048, 2560, 4097, 4608, 8192])
def test_attention_over_all_contexts(
    shape: AttentionShape, longest: int, dtype: torch.dtype
) -> None:
    grouping = choose(dtype, attention=shape).attention
    fault, _ = try_attention(
        shape,
        dtype,
        grouping,
        longest=(min(512, longest), longest),
        parts=parts_of(longest, CONTEXTS),
    )
    assert not fault


@pytest.mark.slow
@each_dtype
@pytest.mark.parametrize("shape", EMBEDDED_LINEARS, ids=str)
def test_linear_layers_over_all_numbers_of_rows(shape: LinearShape, dtype: torch.dtype) -> None:
    grouping = choose(dtype, [shape]).linear
    fault, _ = try_linear(shape, dtype, grouping, num_rows=513, row_counts=ROW_COUNTS)
    assert not fault


@each_dtype
def test_attention_in_any_number_and_before_any_context(dtype: torch.dtype) -> None:
    grouping = choose(dtype).attention
    for longest, contexts in ((257, (1, 15, 17, 129, 256)), (1152, (640, 1023, 1025))):
        parts = [part for part in parts_of(longest, contexts) if part[0] in (1, 2, 8, 65)]
        fault, _ = try_attention(
            EMBEDDED_ATTENTION, dtype, grouping, longest=(min(512, longest), longest), parts=parts
        )
        assert not fault


@each_dtype
def test_linear_layers_in_any_number(dtype: torch.dtype) -> None:
    grouping = choose(dtype).linear
    for shape in EMBEDDED_LINEARS[:4]:
        fault, _ = try_linear(shape, dtype, grouping, num_rows=130, row_counts=(1, 2, 8, 17, 129))
        assert not fault


@each_dtype
def test_a_forced_way_is_taken_unless_it_has_a_fault(dtype: torch.dtype) -> None:
    for least in (RowGrouping.TILES, RowGrouping.SINGLE):
        chosen = choose_row_bits(EMBEDDED_LINEARS[:1], EMBEDDED_ATTENTION, dtype=dtype, least=least)
        assert f"nothing faster than {least} is allowed" in chosen.reason
        for name, way in (("linear layers", chosen.linear), ("attention", chosen.attention)):
            is_faulty = f"{name} by {least} give a row other bits" in chosen.reason
            assert way is (RowGrouping.SINGLE if is_faulty else least)


@each_dtype
@pytest.mark.parametrize("grouping", list(RowGrouping))
def test_every_way_computes_the_same_but_for_rounding(
    grouping: RowGrouping, dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    linear = torch.nn.Linear(64, 48).requires_grad_(False).to(dtype)
    rows = torch.randn(2, 35, 64).to(dtype)
    layer = OneDnnLinear.packed(linear)
    layer.grouping = grouping
    expected = torch.nn.functional.linear(
        rows.double(), linear.weight.double(), linear.bias.double()
    )
    assert layer(rows).shape == expected.shape
    error = (layer(rows).double() - expected).abs()
    assert (error <= 16 * torch.finfo(dtype).eps * expected.abs().clamp(min=1)).all()


def test_a_fault_leads_to_the_next_slower_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor whose products of few rows differ, as a matrix unit's may."""
    multiply = OneDnnLinear._multiply

    def unlike(layer: OneDnnLinear, rows: torch.Tensor) -> torch.Tensor:
        output = multiply(layer, rows)
        return output * (1 + 2**-7) if rows.numel() // rows.shape[-1] < 16 else output

    monkeypatch.setattr(OneDnnLinear, "_multiply", unlike)
    chosen = choose_row_bits(EMBEDDED_LINEARS[:1], EMBEDDED_ATTENTION, dtype=torch.float32)
    assert chosen.linear is RowGrouping.TILES
    assert "linear layers by all give a row other bits" in chosen.reason
    monkeypatch.setattr(row_bits, "attend_tiled", lambda query, *_, **__: query * len(query))
    chosen = choose_row_bits([], EMBEDDED_ATTENTION, dtype=torch.float32)
    assert chosen.attention is RowGrouping.SINGLE


def test_products_of_one_row_are_what_the_trial_is_for() -> None:
    """The trial sees that a row alone is summed in another order, where oneDNN does so."""
    if "AVX512_CORE" not in onednn_levels():
        pytest.skip("seen with AVX-512 alone")
    shape = EMBEDDED_LINEARS[3]
    fault, whole = try_linear(shape, torch.float32, RowGrouping.SINGLE)
    assert not fault
    _, others = try_linear(shape, torch.float32, RowGrouping.ALL)
    assert not torch.equal(whole, others)
