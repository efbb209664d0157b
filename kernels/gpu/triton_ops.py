"""The Triton kernels as the operations of a model runner."""

from __future__ import annotations

from kernels.gpu.greedy_head import greedy_head_triton
from kernels.gpu.greedy_verify import greedy_verify_triton
from kernels.gpu.paged_attention import paged_attention_triton
from kernels.gpu.rejection_verify import rejection_verify_triton
from kernels.gpu.rms_norm import add_rms_norm_triton, rms_norm_triton
from kernels.gpu.rotary import rotary_triton
from kernels.gpu.silu_mul import silu_mul_triton
from kernels.gpu.store_kv import store_kv_triton
from kernels.op_set import FusedOps, Ops


def triton_ops() -> Ops:
    """The operations for NVIDIA GPUs; for CPU tensors only in a process with TRITON_INTERPRET=1."""
    return Ops(
        store_kv=store_kv_triton,
        paged_attention=paged_attention_triton,
        greedy_verify=greedy_verify_triton,
        rejection_verify=rejection_verify_triton,
        greedy_head=greedy_head_triton,
        fused=FusedOps(
            rms_norm=rms_norm_triton,
            add_rms_norm=add_rms_norm_triton,
            rotary=rotary_triton,
            silu_mul=silu_mul_triton,
        ),
    )
