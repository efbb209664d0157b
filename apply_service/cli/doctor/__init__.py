"""`apply-service doctor`: is everything in place to serve, and what to do where it is not.

`command` runs the checks and prints them; `check` is what each of them comes to. `package_checks`,
`machine_checks`, `model_checks`, `place_checks` and `redis_checks` look at one thing
each, `self_test` merges an edit without the model and with it.
"""
