"""The operations a model runner needs, chosen once for its device."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec

import torch

from kernels.greedy_head import greedy_head_reference
from kernels.greedy_verify import greedy_verify_reference
from kernels.op_set import FusedOps, Ops
from kernels.paged_attention import paged_attention_cpu, paged_attention_reference
from kernels.rejection_verify import rejection_verify_reference
from kernels.rms_norm import add_rms_norm_reference, rms_norm_reference
from kernels.rotary import rotary_reference
from kernels.row_grouping import RowGrouping
from kernels.silu_mul import silu_mul_reference
from kernels.store_kv import store_kv_cpu, store_kv_reference


def select_ops(device: torch.device, *, attention_rows: RowGrouping = RowGrouping.ALL) -> Ops:
    """The fastest operations for `device`: Triton's on CUDA, if it is installed.

    On the CPU attention computes its rows in groups of `attention_rows`.
    """
    if device.type == "cpu":
        return Ops(
            store_kv=store_kv_cpu,
            paged_attention=partial(paged_attention_cpu, grouping=attention_rows),
            greedy_verify=greedy_verify_reference,
            rejection_verify=rejection_verify_reference,
        )
    if device.type == "cuda" and find_spec("triton") is not None:
        from kernels.gpu.triton_ops import triton_ops

        return triton_ops()
    return reference_ops()


def reference_ops() -> Ops:
    """The reference operations: torch on any device."""
    return Ops(
        store_kv=store_kv_reference,
        paged_attention=paged_attention_reference,
        greedy_verify=greedy_verify_reference,
        rejection_verify=rejection_verify_reference,
        greedy_head=greedy_head_reference,
        fused=FusedOps(
            rms_norm=rms_norm_reference,
            add_rms_norm=add_rms_norm_reference,
            rotary=rotary_reference,
            silu_mul=silu_mul_reference,
        ),
    )
