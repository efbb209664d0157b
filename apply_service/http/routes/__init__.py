"""HTTP handlers, one file an endpoint family: `apply`, `batches`, `hashlines`, `about`.

Addresses of other services: `chat`, `code_apply`, with `compat_answer`. `disconnect` ends the work
of a client that leaves.
"""
