"""Benchmarks for this project's developers: `python -m benchmarks NAME`. Not in the wheel.

Against others: `speed` (engines), `drafters`. Of the engine: `gpu`, `concurrency`, `cache`.
Of the service: `load`, `growth`.
"""
