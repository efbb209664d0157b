"""The APIs that clients of other services already speak, on the same pipeline as `/v1/apply`.

In: `chat_schemas`, `code_apply_schemas` (the wire formats), `parameters` (what is supported),
`messages`, `morph_message` (the edit in one), `compacted_code` (a large file in that), `edits`
(from requests to edits). Out: `review` (which results may be used), `answers` (whole, or in
chunks), `error_shapes`. Plain chat: `chat_run`, `chat_answer`, `stop_texts`. `settings` is what an
operator chooses.
"""
