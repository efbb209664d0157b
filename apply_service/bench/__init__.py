"""The user's own measuring tools: `accuracy`, `drafters`, `speed`; case files are in `cases`.

An accuracy run: a case file or `git_cases` gives cases, a `contender` (the merge alone, the
pipeline, an endpoint) answers them, `case_result` compares, `accuracy_report` counts and `misses`
shows what went wrong.
"""
