"""Several replicas: what they cost, what they hold and what a plan of them is worth.

`command` runs one of the parts. `overhead` times Ray Serve beside the service alone, on the cluster
of `ray_cluster`. `simulation` has a thousand replicas; `plan_error` sets a plan beside real edits.
"""
