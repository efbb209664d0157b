"""How busy a GPU is, or would be that is not there; see `command`.

`constants` says how long a step takes on a device (`fit` takes them from measured steps), and
`null_runner` waits so long; `measured_runner` has a device. Both know the `answers` of `edits`,
which are real ones.
"""
