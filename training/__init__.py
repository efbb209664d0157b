"""Makes case files from real releases and trains the embedded adapter.

Cases: `corpus` from `releases` (`source_files`, `sdist_backend`), in `case_file`.
Examples (`example`): `examples` cuts cases, `served` asks what the service asks, `mixture` draws
them; `corpus_pack` and `pack` make one small file of them. `cases` holds what rules were fitted to.
Training: `finetune` over `adapter_model` and `cpu_ops`. After the adapter: `decisions`,
`evaluate`, `calibrate` measure; `publish` ships.
Merges: `fit_merges` fits their scores to `merges`; `generated` makes edits for it, `blind` builds
written ones, `ablation` leaves features out.
`drafters` trains heads that draft for a model.
"""
