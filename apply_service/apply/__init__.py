"""One edit from its request to its outcome.

`run` is the coroutine: plan, then attempt after attempt, then conclude; `run_state` is its state.
`attempt` is one try, by the merge or by the model (`edit_model`, `answer`); `conclusion` judges.
In doubt `choices` says what an edit may mean, and a `judge` which one is meant. A `writer` may
write where the model would; both are `remote`.
`intake` plans an edit and answers what needs no model, with `planning`; `outcome` is the result.
Prompts: `region_prompt`, `engine_requests`. Events: `events`, `event_stream`, `decoding_trace`.
Constraint: `merge_constraint`, `constrained_reading`, `decision`, `confidence`.
Admission: `admission`, `queue_estimate`, `speed_estimate`, `tenant`. `edit_request`, `errors`.
"""
