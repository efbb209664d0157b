"""Many replicas: what runs on Ray, and what a fleet of them needs.

`affinity` names the file of a request to whatever chooses its replica. `serve_app` is the Ray Serve
application: its proxies read that name (`ray_header`), `routing` chooses a replica by it,
`autoscaling` counts replicas by queued tokens, `lost_replicas` answers for dead ones.
`batch` does many edits at once; `capacity` counts the replicas of a load.
`host_program` prepares a worker of Ray.
Ray comes with the extra `ray`, and is imported by nothing else.
"""
