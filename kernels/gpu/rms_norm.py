"""Root-mean-square normalisation, one program a row."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


def rms_norm_triton(hidden: Tensor, weight: Tensor, *, eps: float) -> Tensor:
    """Do as `rms_norm_reference`."""
    assert hidden.stride(-1) == 1
    output = torch.empty(hidden.shape, dtype=hidden.dtype, device=hidden.device)
    if hidden.dim() == 3:
        outer_stride, inner_stride, num_inner = hidden.stride(0), hidden.stride(1), hidden.shape[1]
    else:
        outer_stride, inner_stride, num_inner = hidden.stride(0), 0, 1
    row_size = hidden.shape[-1]
    _rms_norm[(hidden.numel() // row_size,)](
        hidden,
        output,
        weight,
        output,
        outer_stride,
        inner_stride,
        num_inner,
        eps,
        ROW_SIZE=row_size,
        HAS_RESIDUAL=False,
        BLOCK=triton.next_power_of_2(row_size),
        num_warps=_num_warps(row_size),
    )
    return output


def add_rms_norm_triton(hidden: Tensor, residual: Tensor, weight: Tensor, *, eps: float) -> Tensor:
    """Do as `add_rms_norm_reference`."""
    assert hidden.is_contiguous()
    assert residual.is_contiguous()
    num_tokens, row_size = hidden.shape
    output = torch.empty_like(hidden)
    _rms_norm[(num_tokens,)](
        hidden,
        residual,
        weight,
        output,
        row_size,
        0,
        1,
        eps,
        ROW_SIZE=row_size,
        HAS_RESIDUAL=True,
        BLOCK=triton.next_power_of_2(row_size),
        num_warps=_num_warps(row_size),
    )
    return output


def _num_warps(row_size: int) -> int:
    return 1 if row_size <= 256 else 4 if row_size <= 2048 else 8


@triton.jit
def _rms_norm(
    hidden_ptr,
    residual_ptr,
    weight_ptr,
    output_ptr,
    outer_stride,
    inner_stride,
    num_inner,
    eps,
    ROW_SIZE: tl.constexpr,
    HAS_RESIDUAL: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    is_inside = columns < ROW_SIZE
    row_ptr = hidden_ptr + (row // num_inner) * outer_stride + (row % num_inner) * inner_stride
    hidden = tl.load(row_ptr + columns, mask=is_inside, other=0.0)
    if HAS_RESIDUAL:
        residual_at = residual_ptr + row * ROW_SIZE + columns
        residual = tl.load(residual_at, mask=is_inside, other=0.0)
        # Rounded before it is normalised, as in a sum that is written and read again.
        hidden = (hidden.to(tl.float32) + residual.to(tl.float32)).to(hidden.dtype)
        tl.store(residual_at, hidden, mask=is_inside)
    values = hidden.to(tl.float32)
    mean_square = tl.sum(values * values, 0) / ROW_SIZE
    rounded = (values * tl.rsqrt(mean_square + eps)).to(hidden.dtype)
    weight = tl.load(weight_ptr + columns, mask=is_inside, other=0.0)
    normed = weight.to(tl.float32) * rounded.to(tl.float32)
    tl.store(output_ptr + row * ROW_SIZE + columns, normed.to(hidden.dtype), mask=is_inside)
