"""HTTP handlers, one file an endpoint family.

Native: `apply` (one edit or several), `batches`, `hashlines`, `about`.
Other services': `chat`, `responses`, `messages`, `code_apply`, answered by `compat_answer`.
`edit_run` runs one edit, `charged_edits` each of several, `files_run` those of one request.
`disconnect` gives work up when its client leaves.
"""
