"""The service: HTTP and command line in, merged files and verdicts out.

`http` takes requests and writes answers; `cli` is the command line, `lsp` serves editors.
`apply` runs one edit: plan, attempts, judgement, outcome.
`edit` understands an update as text; `prompts` turns it into tokens for a model.
`models` finds, prepares and loads models; `observe` logs, counts and traces.
`evaluate` measures accuracy, latency and settings on the user's own code; `fleet` runs replicas.
`service` joins them in one server (`service_of_settings`), which `__main__` starts; `config` holds
the settings, `version` names both. `regular_file` reads files that users name, `shown_text` makes
texts safe to show.
"""
