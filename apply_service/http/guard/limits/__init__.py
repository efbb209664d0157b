"""Limits of a caller: `rate_limits` (rules, and the 429 beyond them), `count_store` (counts, here
or in a Redis with a timeout of its own, whose replies `reply_bounds` keeps small), `guarded_counts`
(when that Redis is asked), `rate_limiting` (the middleware), `allowance` (the parts of one
request).
"""
