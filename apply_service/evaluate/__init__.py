"""What users measure on their own code: `accuracy`, `latency`, `tune` (`tune_search`), `judging`.

`cases` reads edits with expected answers; `contenders` answer them (merge, pipeline, endpoint).
`edit_session` runs the pipeline here, `edit_worker` in another process (`worker_process`).
Reports: `accuracy_report`, `latency_report`, `case_statistics`, `machine`, `run_log`.
"""
