"""The Triton norms, rotation and gate against their references, in odd sizes and strides."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kernels.gpu.rms_norm import add_rms_norm_triton, rms_norm_triton
from kernels.gpu.rotary import rotary_triton
from kernels.gpu.silu_mul import silu_mul_triton
from kernels.rms_norm import add_rms_norm_reference, rms_norm_reference
from kernels.rotary import rotary_reference
from kernels.silu_mul import silu_mul_reference

TOLERANCES = {torch.float32: 2e-6, torch.float16: 4e-3}

dtypes = pytest.mark.parametrize("dtype", list(TOLERANCES))


def make(*shape: int, dtype: torch.dtype, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def compare(ours: Tensor, expected: Tensor) -> None:
    assert ours.dtype == expected.dtype
    tolerance = TOLERANCES[expected.dtype]
    torch.testing.assert_close(ours, expected, atol=tolerance, rtol=tolerance)


@dtypes
@pytest.mark.parametrize(("num_rows", "row_size"), [(1, 16), (3, 48), (5, 300), (2, 1030)])
def test_rms_norm(num_rows: int, row_size: int, dtype: torch.dtype) -> None:
    hidden = make(num_rows, row_size, dtype=dtype)
    weight = make(row_size, dtype=dtype, seed=1)
    ours = rms_norm_triton(hidden, weight, eps=1e-5)
    compare(ours, rms_norm_reference(hidden, weight, eps=1e-5))


@dtypes
def test_rms_norm_of_heads_in_packed_rows(dtype: torch.dtype) -> None:
    heads = make(4, 9 * 16, dtype=dtype)[:, 16:96].unflatten(1, (5, 16))
    weight = make(16, dtype=dtype, seed=1)
    ours = rms_norm_triton(heads, weight, eps=1e-6)
    assert ours.is_contiguous()
    compare(ours, rms_norm_reference(heads, weight, eps=1e-6))


@dtypes
@pytest.mark.parametrize(("num_tokens", "row_size"), [(1, 48), (4, 130)])
def test_add_rms_norm(num_tokens: int, row_size: int, dtype: torch.dtype) -> None:
    hidden = make(num_tokens, row_size, dtype=dtype)
    weight = make(row_size, dtype=dtype, seed=1)
    residual = make(num_tokens, row_size, dtype=dtype, seed=2)
    expected_residual = residual.clone()
    expected = add_rms_norm_reference(hidden, expected_residual, weight, eps=1e-5)
    compare(add_rms_norm_triton(hidden, residual, weight, eps=1e-5), expected)
    assert torch.equal(residual, expected_residual)


@dtypes
@pytest.mark.parametrize("head_dim", [8, 64, 80, 96])
@pytest.mark.parametrize(("num_heads", "num_kv_heads"), [(1, 1), (7, 1), (9, 3)])
def test_rotary_in_place_on_packed_rows(
    num_heads: int, num_kv_heads: int, head_dim: int, dtype: torch.dtype
) -> None:
    packed = make(3, (num_heads + 2 * num_kv_heads) * head_dim, dtype=dtype)
    angles = torch.rand(3, head_dim // 2, generator=torch.Generator().manual_seed(3)) * 6
    cos, sin = (torch.cat([part, part], dim=1).to(dtype) for part in (angles.cos(), angles.sin()))
    expected = packed.clone()
    for rotate, rows in ((rotary_triton, packed), (rotary_reference, expected)):
        heads = rows.unflatten(1, (-1, head_dim))
        rotate(
            heads[:, :num_heads],
            heads[:, num_heads : num_heads + num_kv_heads],
            cos=cos,
            sin=sin,
        )
    compare(packed, expected)
    assert torch.equal(
        packed[:, -num_kv_heads * head_dim :], expected[:, -num_kv_heads * head_dim :]
    )


@dtypes
@pytest.mark.parametrize(("num_tokens", "size"), [(1, 24), (3, 1024), (2, 1500)])
def test_silu_mul(num_tokens: int, size: int, dtype: torch.dtype) -> None:
    gate_up = make(num_tokens, 2 * size, dtype=dtype) * 4
    compare(silu_mul_triton(gate_up), silu_mul_reference(gate_up))
