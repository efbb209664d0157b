"""Tests at start if a row of this processor's products has the same bits in any batch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import dropwhile

import torch
from torch import Tensor, nn

from kernels.instruction_set import instruction_set
from kernels.linear import OneDnnLinear
from kernels.paged_attention import has_stacked_attention
from kernels.row_grouping import RowBits, RowGrouping
from kernels.stacked_attention import attend_stacked
from kernels.tiled_attention import attend_tiled

# Larger layers are tried with fewer outputs, as trying must take no time to speak of.
_MAX_WEIGHTS = 1 << 19
_NUM_LINEAR_ROWS = 65
_LINEAR_ROW_COUNTS = (1, 2, 7, 17, 33)
_MAX_KV_HEADS = 4
# (rows, context) of a request beyond what oneDNN adds up in one piece, and of its parts.
_LONGEST = (256, 880)
_PARTS = ((1, 640), (7, 640), (1, 768), (65, 768), (1, 880), (8, 880), (17, 879))
# Keys come twice in such a period, with values that cancel each other.
_PERIOD = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearShape:
    """The properties of a linear layer by which oneDNN chooses its product."""

    in_features: int
    out_features: int
    is_packed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionShape:
    """The properties that the products of attention depend on, apart from the context."""

    num_heads: int
    num_kv_heads: int
    head_dim: int


def choose_row_bits(
    linears: Iterable[LinearShape],
    attention: AttentionShape,
    *,
    dtype: torch.dtype,
    least: RowGrouping = RowGrouping.ALL,
) -> RowBits:
    """The fastest groupings, from `least` on, in which no row depends on its neighbours."""
    digest = hashlib.sha256()
    reasons = [] if least is RowGrouping.ALL else [f"nothing faster than {least} is allowed"]
    shapes = sorted(set(linears), key=repr)
    checks: list[tuple[str, Callable[[RowGrouping], tuple[str, Tensor]]]] = [
        ("linear layers", lambda grouping: _try_linears(shapes, dtype, grouping)),
        ("attention", lambda grouping: try_attention(attention, dtype, grouping)),
    ]
    chosen = []
    for name, check in checks:
        for grouping in dropwhile(lambda one: one is not least, RowGrouping):
            if grouping is RowGrouping.SINGLE:
                break  # nothing is computed beside a row that could change it
            fault, output = check(grouping)
            if not fault:
                digest.update(output.float().numpy().tobytes())
                break
            reasons.append(f"{name} by {grouping} give a row other bits among others: {fault}")
        chosen.append(grouping)
    return RowBits(
        instruction_set=instruction_set(),
        linear=chosen[0],
        attention=chosen[1],
        reason="; ".join(reasons),
        digest=digest.hexdigest()[:16],
    )


@torch.inference_mode()
def try_linear(
    shape: LinearShape,
    dtype: torch.dtype,
    grouping: RowGrouping,
    *,
    num_rows: int = _NUM_LINEAR_ROWS,
    row_counts: Sequence[int] = _LINEAR_ROW_COUNTS,
) -> tuple[str, Tensor]:
    """Compute rows in groups of several sizes; a text on the first that changes them, and all rows.

    The text is empty if no row changes.
    """
    layer = _cancelling_layer(shape, dtype)
    layer.grouping = grouping
    rows = torch.rand(num_rows, shape.in_features // 2, generator=_generator()) + 0.5
    rows = torch.cat([rows, rows, torch.zeros(num_rows, shape.in_features % 2)], dim=1).to(dtype)
    whole = layer(rows)
    for count in row_counts:
        is_same = torch.equal(layer(rows[:count]), whole[:count])
        if not is_same or not torch.equal(layer(rows[-count:]), whole[-count:]):
            text = f"{count} of {num_rows} rows, {shape.in_features} by {shape.out_features}"
            return text, whole
    return "", whole


@torch.inference_mode()
def try_attention(
    shape: AttentionShape,
    dtype: torch.dtype,
    grouping: RowGrouping,
    *,
    longest: tuple[int, int] = _LONGEST,
    parts: Sequence[tuple[int, int]] = _PARTS,
) -> tuple[str, Tensor]:
    """Do as `try_linear`, for requests of (rows, context) that are parts of the `longest`."""
    num_kv_heads = min(shape.num_kv_heads, _MAX_KV_HEADS)
    num_heads = shape.num_heads // shape.num_kv_heads * num_kv_heads
    num_rows, context_len = longest
    keys, values = _cancelling_context(context_len, num_kv_heads, shape.head_dim, dtype)
    query = torch.randn(context_len, num_heads, shape.head_dim, generator=_generator()).to(dtype)
    attend = attend_stacked if has_stacked_attention(dtype) else attend_tiled

    def rows_of(count: int, stop: int) -> Tensor:
        return attend(
            query[stop - count : stop],
            keys[:, :stop],
            values[:, :stop],
            scale=shape.head_dim**-0.5,
            grouping=grouping,
        )

    whole = rows_of(num_rows, context_len)
    first = context_len - num_rows
    for count, stop in parts:
        start = max(first, stop - count)
        part = rows_of(count, stop)[start - stop :]
        if not torch.equal(part, whole[start - first : stop - first]):
            return f"{count} rows that end at {stop} of {context_len}", whole
    return "", whole


def _try_linears(
    shapes: Sequence[LinearShape], dtype: torch.dtype, grouping: RowGrouping
) -> tuple[str, Tensor]:
    outputs = [torch.empty(0)]
    for shape in shapes:
        small = LinearShape(
            in_features=shape.in_features,
            out_features=min(shape.out_features, max(1, _MAX_WEIGHTS // shape.in_features)),
            is_packed=shape.is_packed,
        )
        fault, output = try_linear(small, dtype, grouping)
        if fault:
            return fault, output
        outputs.append(output.float().flatten())
    return "", torch.cat(outputs)


def _cancelling_layer(shape: LinearShape, dtype: torch.dtype) -> OneDnnLinear:
    """A layer whose outputs cancel up to rounding errors, which show the order of a sum."""
    half = shape.in_features // 2
    drawn = _spread(shape.out_features + half)
    weight = drawn.unfold(0, half, 1)[: shape.out_features]
    odd = torch.zeros(shape.out_features, shape.in_features % 2)
    linear = nn.Linear(shape.in_features, shape.out_features, bias=False, device="meta")
    linear.weight = nn.Parameter(torch.cat([weight, -weight, odd], dim=1).to(dtype), False)
    return OneDnnLinear.packed(linear) if shape.is_packed else OneDnnLinear.in_place(linear)


def _cancelling_context(
    context_len: int, num_kv_heads: int, head_dim: int, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Keys and values [num_kv_heads, context_len, head_dim] that cancel up to each period's end."""
    num_periods = -(-context_len // _PERIOD)
    halves = (num_periods, 1, _PERIOD // 2, num_kv_heads, head_dim)
    signs = torch.tensor([1.0, -1.0]).view(1, 2, 1, 1, 1)
    keys = torch.randn(halves, generator=_generator()).expand(-1, 2, -1, -1, -1)
    values = _spread(*halves) * signs
    keys, values = (part.flatten(0, 2)[:context_len].to(dtype) for part in (keys, values))
    return keys.transpose(0, 1), values.transpose(0, 1)


def _spread(*shape: int) -> Tensor:
    """Numbers of many magnitudes, so that their sums round."""
    generator = _generator()
    sizes = torch.randint(-8, 9, shape, generator=generator)
    return torch.randn(shape, generator=generator).ldexp(sizes)


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(1)
