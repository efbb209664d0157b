"""Texts to prompt tokens and back, one file a profile: `embedded`, `fastapply`, `chat`.

`profile` is their interface, `prompt` is one request as tokens, `answer` is the text that returns.
Tokens: `tokenizer`, `canonical`, `substitution`, `chat_template`, `merge_form`. `calibration` says
how reliable a model's probabilities are; `errors` holds the errors.
"""
