"""What stands between the network and the routes.

Everything here is ASGI middleware inside the app, which is asked for HTTP alone, or serves it.

Keys: `key_file` (the file), `key_ring` (what a running server knows of it), `key_commands`,
`caller` (who asks), `paths` (what is asked for), `authentication` (who may). Limits: `count_store`
(counts, here or in Redis), `rate_limits` (what they allow), `rate_limiting` (the middleware).
Browsers: `hosts`, `origins`, `response_headers`. Time: `body_deadline`, `keep_alive`, `connection`
(the protocol under the middleware), `draining`, `graceful_server`. The rest: `request_ids`,
`root_path`, `exposure` (what may be bound without keys), `refusal` (how a middleware answers),
`stack` (all of it, in order).
"""
