"""Drafters beside the n-gram proposer: they draft for all requests at once, and never decide.

`drafter` is the interface, `registry` has all kinds by name; `drafting` asks them between steps,
where that pays (`payoff`). They use `target`, `checkpoint` (weights), `growth` (makes trees),
`last_rows` (hidden rows by request), `shared_head` (a map to the vocabulary), and `own_layers` or
`model_chain`, which have paged keys and values.
Without weights: `token_recycling`, `history`, `lookahead`. Heads: `medusa`, `hydra`, `redrafter`.
Layers: `eagle`, `mtp`, `layer_skip` (the model's first). Models: `draft_model`, `other_tokenizer`.
"""
