"""The type of a set of operations: callables with the signatures of the references."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from kernels.verification import Verification


@dataclass(frozen=True, slots=True)
class FusedOps:
    """Operations for decoder layers of a known family, in place of their own modules."""

    rms_norm: Callable[..., Tensor]
    add_rms_norm: Callable[..., Tensor]
    rotary: Callable[..., None]
    silu_mul: Callable[..., Tensor]


@dataclass(frozen=True, slots=True)
class Ops:
    """Operations with the signatures of the references that they are tested against.

    Without `fused` a model keeps its own modules. Without `greedy_head` logits are always written.
    """

    store_kv: Callable[..., None]
    paged_attention: Callable[..., Tensor]
    greedy_verify: Callable[..., Verification]
    rejection_verify: Callable[..., Verification]
    greedy_head: Callable[..., Verification] | None = None
    fused: FusedOps | None = None
