"""Keys and values that outlive a request.

`prefix_cache` reuses blocks on the device and asks `lower_tiers` for more (`prefix_load`).
`host_tier` is host memory, `redis` the tier that processes share.
`value` is the format, `kv_namespace` what must be equal to share, `kv_transfer` the copies.
`gate` and `stats` decide and count.
"""
