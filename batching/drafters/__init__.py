"""Drafters beside the n-gram proposer: they draft for all requests at once, and never decide.

`drafter` is the interface, `registry` knows all kinds by name; `drafting` asks them between steps,
`payoff` says whether that pays. `target` is what they may use of the model, `checkpoint` reads
weights, `growth` makes trees of what they compute, `last_rows` keeps hidden rows by request,
`shared_head` is a map to the vocabulary that several heads share.
Without weights: `token_recycling`, `history`, `lookahead`. Heads: `medusa`, `hydra`. Recurrent:
`redrafter`.
Models: `draft_model`, `other_tokenizer`, `layer_skip` (the target's own first layers), `mtp` (a
module that came with it); `model_chain` drafts with paged keys and values.
"""
