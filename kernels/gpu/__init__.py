"""Triton kernels, each with the signature and the meaning of the torch reference of its name.

`triton_ops` gathers them: `paged_attention`, `store_kv`, `rotary`, `rms_norm`, `silu_mul`; of the
verifier `greedy_head`, `greedy_verify`, `rejection_verify`, `count_accepted`. They are compiled for
NVIDIA GPUs, or run on the CPU by Triton's interpreter if the environment says TRITON_INTERPRET=1
before triton is first imported.
"""
