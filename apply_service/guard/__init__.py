"""What stands between the network and the routes.

Keys: `key_file` (the file), `key_ring` (what a running server knows of it), `caller` (who asks),
`paths` (what is asked for), `authentication` (who may). Limits: `count_store` (counts, here or in Redis),
`rate_limits` (what they allow), `rate_limiting` (the middleware). Browsers: `hosts`, `origins`.
Time: `body_deadline`, `keep_alive`, `connection` (the protocol under the middleware), `draining`.
The rest: `request_ids`, `exposure` (what may be bound without keys), `refusal` (how a middleware
answers), `stack` (all of it, in order).
"""
