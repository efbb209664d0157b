"""Cases: `case_file` reads them, `git_cases` makes them from a repository (`git_history`),
`planned_case` plans one, `case_result` compares, `misses` writes what went wrong.
"""
