"""Who answers the cases: `contender` (the protocol), `merge`, `pipeline`, `remote`.

`endpoint` is an HTTP address; `wire_formats` are the APIs that it may speak.
"""
