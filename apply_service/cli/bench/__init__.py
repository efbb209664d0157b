"""`apply-service bench accuracy|latency|tune`: flags in, options of `apply_service.evaluate` out.

`session_flags` has the flags that more than one of them takes.
"""
