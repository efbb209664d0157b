"""One edit under way, from a request to an outcome.

`edit_request` in, `outcome` out; `planning` does the text side before a model is asked.
`pipeline` submits the `attempt`s of a plan, `apply_run` runs them, `conclusion` judges the result.
Prompts and answers of a region: `region_prompt`, `region_answer`, `engine_requests`.
Constraint: `merge_constraint`, `constrained_reading`, `decision`, `confidence`.
The door: `admission`, `queue_estimate`, `speed_estimate`, `tenant`. `errors`, `run_events`.
"""
