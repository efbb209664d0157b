"""The tier that processes share: one Redis, the master of a Sentinel, or a cluster.

`tier` reads and writes values over `connection`; `url` says where, `servers` which one has a key,
`host_resolver` finds hosts. `loader` reads within a deadline, `writer` writes, `inventory` counts.
`circuit_breaker` and `known_keys` keep requests from a server that fails, or has the chunk.
"""
