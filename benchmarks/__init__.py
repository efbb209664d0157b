"""Benchmarks for this project's developers: `python -m benchmarks NAME`. Not in the wheel.

Against others: `speed` (engines), `drafters`, `speculators` (drafters on a real model). Of the
engine: `gpu`, `kernels`, `device_model`, `host`, `concurrency`, `cache`.
Of the service: `load`, `growth`, `fleet`. Of the repository: `weight`, `house`, `picture`.
Each is a package with a `command`; `__main__` finds them by name.
"""
