"""The APIs that clients of other services speak, on the same run as `/v1/apply`.

Out of every body comes a `conversation`; an `answer_form` writes the answer as its API has it.
OpenAI's chat: `schemas`, `chat_reading`, `chat_form`. OpenAI's newer API: `responses`.
Anthropic's: `anthropic`.
Reading: `messages`, `parameters`, `edits`.
Morph: `morph_message` reads a message, `compacted_code` a large file in it.
Verdicts: `review` (which results may be used), `error_shapes`.
Plain chat: `chat_run`, `chat_answer`, `stop_texts`. `settings` is what an operator chooses.
"""
