"""The gated activation between a block's two matrix products."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


def silu_mul_reference(gate_up: Tensor) -> Tensor:
    """silu(gate) * up: [num_tokens, size], computed in float32 and rounded once.

    gate_up: [num_tokens, 2 * size], the gate in the first half of a row; contiguous
    """
    gate, up = gate_up.float().chunk(2, dim=-1)
    return (functional.silu(gate) * up).to(gate_up.dtype)
