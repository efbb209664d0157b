"""The gated activation, one program a token and a block of its columns."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

_BLOCK = 1024


def silu_mul_triton(gate_up: Tensor) -> Tensor:
    """Do as `silu_mul_reference`."""
    assert gate_up.is_contiguous()
    num_tokens, size = gate_up.shape[0], gate_up.shape[1] // 2
    output = torch.empty((num_tokens, size), dtype=gate_up.dtype, device=gate_up.device)
    _silu_mul[(num_tokens, triton.cdiv(size, _BLOCK))](gate_up, output, size, BLOCK=_BLOCK)
    return output


@triton.jit
def _silu_mul(gate_up_ptr, output_ptr, size, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    is_inside = columns < size
    gate_ptr = gate_up_ptr + token * 2 * size + columns
    gate = tl.load(gate_ptr, mask=is_inside, other=0.0).to(tl.float32)
    up = tl.load(gate_ptr + size, mask=is_inside, other=0.0).to(tl.float32)
    product = gate * (1.0 / (1.0 + tl.exp(-gate))) * up
    output = product.to(output_ptr.dtype.element_ty)
    tl.store(output_ptr + token * size + columns, output, mask=is_inside)
