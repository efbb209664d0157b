"""Continuous batching with speculation: `engine` has the loop, `async_engine` the façade.

A step: `scheduler` (`row_planner`, `service_classes`) makes a
`step_plan`; `model.runner` executes it (`pending_step`); `scheduler.commit` reads the result.
A request: `request`, `constrained_answer`, `draft_losses`, `events`, `errors`.
Memory: `block_pool`, and the tiers of `cache`. Time: `step_costs`,
`cost_measurement`, `machine_file`. `config` and `stats` are the two ends.
"""
