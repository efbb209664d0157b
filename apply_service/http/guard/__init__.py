"""Middleware between the network and the routes; `stack` puts it in order.

`keys` says who asks and whether they may; `limits` how much they may ask for.
Browsers: `hosts`, `origins`. Time: `body_deadline`.
`paths` says what is asked for, `refusal` how a middleware answers, `from_settings` builds it all.
The rest: `request_ids`, `exposure` (what may be bound without keys).
"""
