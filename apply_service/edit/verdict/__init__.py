"""Whether a result may be trusted: a status and findings, each with a hint.

`verdict` is the entrance. A hint stands where its finding is made.
`place_checks` ask whether a text is a merge of the plan, and how certain; for other texts
`checks`, `loss_checks`, `reach_checks` and `double_checks` compare original, update and result
(`comparison`). `omission` finds lines that an update leaves out without a word, for the question
whether they stay; `silent_losses` says which lines these are.
"""
