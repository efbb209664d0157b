"""Tensor operations by torch, the references of those in `gpu`; imports nothing of ours.

`ops` chooses an `op_set` for a device. Attention: `paged_attention`, `stacked_attention`,
`tiled_attention`, `attention_work` (lists for `gpu`), `store_kv`, `rotary`.
Layers: `linear`, `int8_linear`, `rms_norm`, `silu_mul`.
Verification: `greedy_head`, `greedy_verify`, `rejection_verify`, `lossy_verify`, `verification`,
`philox`.
Stable bits: `row_bits` (the trial at start), `row_grouping`, `instruction_set`.
"""
