"""The APIs that clients of other services speak, on the same run as `/v1/apply`.

In: `schemas`, `parameters`, `messages`, `edits`.
Morph: `morph_message` reads a message, `compacted_code` a large file in it.
Out: `review` (which results may be used), `answers` (whole or in chunks), `error_shapes`.
Plain chat: `chat_run`, `chat_answer`, `stop_texts`. `settings` is what an operator chooses.
"""
