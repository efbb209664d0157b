"""The model on its device: the only room that knows transformers.

`loading` reads weights (`weight_format`, `conversion`), and `model_probe` tries them;
`random_model` makes some.
`runner` executes a step: `forward_batch` (`staging`) → `fused_layers` → `head_choice` →
`verifier`.
`cuda_graphs` replays steps in a `static_batch`; `turning_buffers` lie on the host;
`taps` are hidden rows that drafters read; `row_bits_choice` picks kernels with stable bits.
`parallel` has one model in several processes.
"""
