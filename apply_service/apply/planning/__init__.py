"""The text side of an edit, before a model is asked.

`edit_plan` holds the facts that the texts alone give.
`text_work` shares the work among processes of `text_worker`, fairly by `fair_queue`.
`plan_memory` keeps the plans of the last edits.
"""
