"""Continuous batching with speculation: `engine` has the loop, `async_engine` the façade.

A step: `scheduler` (`row_planner` for rows and the length of drafts, `service_classes`) makes a
`step_plan`; `model.runner` executes it, `pending_step` is waited for, the scheduler commits.
A request: `request`, `recipes`, `constrained_answer`, `stop_tokens`, `draft_losses`, `guards`,
`live_requests`, `events`, `step_trace`, `errors`. `remote`: an engine in another process.
Memory: `block_pool` (blocks and their hashes), and the tiers of `cache`.
Time: `step_costs`, `cost_measurement`, `machine_file`; `lanes` has one step under way, or two.
`drafters` work beside the model; `config` has limits that a server may set; `stats` and
`answer_counters` count; `fingerprint` tells models apart.
"""
