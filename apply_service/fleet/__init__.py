"""Many replicas: what runs on Ray, and what a fleet of them needs.

`affinity` names the file of a request to whatever chooses its replica. `serve_app` is the Ray Serve
application; `routing` chooses a replica by that name, `autoscaling` counts replicas by queued
tokens, `lost_replicas` answers for dead ones.
`batch` does many edits at once.
Ray comes with the extra `ray`, and is imported by nothing else.
"""
