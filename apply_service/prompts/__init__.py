"""Texts to prompt tokens and back, one file a profile: `embedded`, `fastapply`, `chat`.

`profile` is what they share, `prompt` one request as tokens, `answer` the text that comes back.
Tokens: `tokenizer`, `canonical`, `substitution`, `chat_template`, `merge_form`. `calibration` says
how far a model's word counts; `errors` what can go wrong.
"""
