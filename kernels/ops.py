"""The operations a model runner needs, chosen once for its device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from kernels.greedy_verify import greedy_verify_reference
from kernels.paged_attention import paged_attention_cpu, paged_attention_reference
from kernels.rejection_verify import rejection_verify_reference
from kernels.store_kv import store_kv_cpu, store_kv_reference
from kernels.verification import Verification


@dataclass(frozen=True, slots=True)
class Ops:
    """Implementations with the signatures of the references that they are tested against."""

    store_kv: Callable[..., None]
    paged_attention: Callable[..., Tensor]
    greedy_verify: Callable[..., Verification]
    rejection_verify: Callable[..., Verification]


def select_ops(device: torch.device) -> Ops:
    """The fastest implementations for `device`; off the CPU that is the torch references so far."""
    if device.type == "cpu":
        return Ops(
            store_kv=store_kv_cpu,
            paged_attention=paged_attention_cpu,
            greedy_verify=greedy_verify_reference,
            rejection_verify=rejection_verify_reference,
        )
    return Ops(
        store_kv=store_kv_reference,
        paged_attention=paged_attention_reference,
        greedy_verify=greedy_verify_reference,
        rejection_verify=rejection_verify_reference,
    )
