"""Many replicas: what runs on Ray, and what a fleet of them needs.

`serve_app` is the Ray Serve application; `routing` sends a file's edits to one replica by the
`affinity_header`, `autoscaling` counts replicas by queued tokens, `lost_replicas` answers for dead
ones.
`batch` does many edits at once; `capacity` counts the replicas of a load.
`host_program` prepares a worker of Ray.
Ray comes with the extra `ray`, and is imported by nothing else.
"""
