"""Tables that say which nodes of each grammar are symbols, one table a language family.

`c_family`, `ecmascript`, `go`, `jvm`, `markup`, `python`, `rust`, `scripting`.
"""
