"""Tokens per target pass of our drafter and of others, without a model.

`command` replays cases (`replay_case`, `replay`) with `baseline_drafters`, also on harder cases
(`ablation`). `constraint_figures` counts what the constraint forces, by an `oracle_run`.
"""
