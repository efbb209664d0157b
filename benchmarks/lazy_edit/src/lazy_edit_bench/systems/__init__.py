"""Who answers tasks. `system` is what each of them is, `registry` names them all.

`degenerate` must look bad; `exact_replace`; `commands` (patch, git); `workers` (libraries in
environments of their own, run by `worker_scripts`); `endpoints` (HTTP: apply-service, Morph,
Relace, OpenAI's chat).
"""
