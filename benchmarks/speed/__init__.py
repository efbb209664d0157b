"""End-to-end time of whole answers, ours against rivals.

`command` leads a `race` of `contenders` over `case`s; `run` is one timed answer, `log` keeps it.
Ours: `worker`, `default_worker`. Rivals: `transformers_baseline`, `llama_worker` (`gguf_export`).
`report` counts.
"""
