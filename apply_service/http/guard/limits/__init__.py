"""Limits of a caller: `rate_limits` (rules), `count_store` (counts, here or in Redis),
`rate_limiting` (the middleware), `allowance` (the parts of one request).
"""
