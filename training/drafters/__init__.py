"""Trains heads that draft for a target model, in the formats that `batching.drafters` loads.

`python -m training.drafters collect | train | evaluate`. `documents` cuts source files of pinned
packages, `collect` runs the target over them, `features` stores what it says. `frozen_target` is
what heads read of the target, `token_counts` counts. `heads` (Medusa, Hydra) and `eagle` are
trained by `train`, judged by `evaluate` and written by `drafter_file`.
"""
