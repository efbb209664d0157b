"""Small edits as language models make them daily, over the files of pinned packages.

Each is made as an old and a new file, and shown as a snippet: the headers around it, the new code,
and markers for what stays. A package's cases are all in `fit` or all in `report`, as
`training/small_edit_packages.toml` says. Both parts use some wordings of markers that everybody
writes; besides, each has wordings that the other never uses.

`places` finds the blocks of a file in its syntax tree. `statements`, `branches`, `members` and
`headers` make edits of them, with `code` and `tables.toml` for what is added; `edit` is their form.
`snippet` shows an edit, `cases` checks it, and `releases` fetches the packages.
"""
