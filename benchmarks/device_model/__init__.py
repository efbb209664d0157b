"""How busy a GPU would be that is not there; see `command`.

`constants` says how long a step takes on a device (`fit` takes them from measured steps),
`null_runner` waits so long and knows what requests write, `edits` are real ones with their answers.
"""
