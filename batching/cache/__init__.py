"""Keys and values that outlive a request.

`prefix_cache` reuses blocks on the device and asks `lower_tiers` for more (`prefix_load`).
`host_tier` is host memory. Redis: `redis_tier` over `redis_connection` (`redis_url`,
`host_resolver`). `redis_loader` reads within a deadline, `redis_writer` writes, `redis_inventory`
counts.
`value` is the format, `kv_namespace` what must be equal to share, `kv_transfer` the copies.
`gate`, `circuit_breaker`, `known_keys`, `stats` decide and count.
"""
