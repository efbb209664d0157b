"""The model on its device: the only room that knows transformers.

`loading` reads weights (`weight_format`, `conversion`); `random_model` makes them.
`runner` executes a step: `forward_batch` → `fused_layers` → `head_choice` → `verifier`.
`cuda_graphs` replays steps; `row_bits_choice` picks kernels with stable bits.
"""
