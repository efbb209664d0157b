"""Continuous batching with speculation: `engine` has the loop, `async_engine` the façade.

A step: `scheduler` (`row_planner`, `token_budget`, `service_classes`, `victims`) makes a
`step_plan`; `model.runner` executes it (`pending_step`); `scheduler.commit` reads the result.
A request: `request`, `constrained_answer`, `draft_losses`, `events`, `errors`.
Memory: `block_pool`, `block_hash`, and the tiers of `cache`. Time: `step_costs`,
`cost_measurement`, `machine_file`. `config` and `stats` are the two ends.
"""
