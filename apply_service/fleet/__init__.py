"""Many replicas: what runs on Ray, and what a fleet of them needs.

`serve_app` is the Ray Serve application; `routing` sends a file's edits to one replica,
`autoscaling` counts replicas by queued tokens.
Only these import Ray, which comes with the extra `ray`.
"""
