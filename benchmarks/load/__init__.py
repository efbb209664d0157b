"""Latency and goodput of a running service at rising rates.

`command` leads through `stages`; `open_loop` sends at fixed times; `plot` draws.
"""
