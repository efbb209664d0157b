"""Whether the draft budget is ever slower than no drafts.

`command` runs `pairs` of batches of `tasks` on a `batch_engine`.
"""
