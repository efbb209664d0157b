"""Who answers tasks: `degenerate` (must look bad), `commands` (patch, git), `workers` (libraries in
environments of their own), `endpoints` (HTTP: apply-service, Morph, Relace, OpenAI's chat).

`registry` names them all.
"""
