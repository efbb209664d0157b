"""Models on this machine: found, prepared, described and loaded.

`store` prepares the embedded model and finds others; `source` and `hub` say where they come from.
`manifest` describes a prepared folder, `info` prints it; `adapter` is the shipped adapter.
`found_model` names a model without torch, `loading` brings it into memory, `remote_engine` into
that of another process (`engine_main`), and requests wait at `slot`. `cache_keys` sign what Redis
keeps, `torch_environment` has the variables that torch reads.
"""
