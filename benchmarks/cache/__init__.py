"""What the prefix cache saves over one process and over several.

`command` asks replicas (`job`, `worker`) for `edits` of one file. `link` reads from Redis alone,
`throttled_proxy` is a slow way to it.
"""
