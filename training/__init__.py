"""Makes case files from real releases and trains the embedded adapter.

Cases: `corpus` from `releases` (`source_files`, `sdist_backend`), in `case_file`.
Examples (`example`): `examples` cuts cases, `served` asks what the service asks, `mixture` draws
them; `corpus_pack` and `pack` make one small file of them. `cases` holds what rules were fitted to.
Training: `finetune` over `adapter_model` and `cpu_ops`. Merges: `fit_merges` fits their scores
(`merge_scores`) to `merge_examples`, whose right ones `merge_truth` finds; `generated_*` make edits
for it, `blind` builds written ones, `ablation` leaves features out. After the adapter: `decisions`,
`evaluate`, `calibrate` measure; `publish` ships.
"""
