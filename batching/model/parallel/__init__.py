"""One model over several processes, its ranks: each holds some heads, columns and tokens.

`split` says which, `loading` reads them, `layers` compute with them, `rank_group` sums and gathers.
`runner` is a rank, the first of which has the scheduler; `crew` are the others, `worker` is one of
them, and `frames` are what they are told.
"""
