"""The service: HTTP and command line in, merged files and verdicts out.

`http` takes requests and writes answers; `cli` is the command line, `lsp` serves editors.
`apply` runs one edit: plan, attempts, judgement, outcome.
`edit` understands an update as text; `prompts` turns it into tokens for a model.
`models` finds, prepares and loads models; `observe` logs, counts and traces; `fleet` is what
replicas share.
`evaluate` measures accuracy, latency and settings on the user's own code.
`service` joins them in one server, which `__main__` starts; `config` holds the settings, `version`
names both.
"""
