"""Contenders answer the cases: `contender` (protocol and merge), `pipeline`, `remote`.

`endpoint` is an HTTP address; `wire_formats` are the APIs that it may speak.
"""
