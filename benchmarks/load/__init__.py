"""Latency and goodput of a running service at rising rates; `command` leads."""
