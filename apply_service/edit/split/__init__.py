"""Updates of several files: `split` cuts one into a `section` for each file.

Formats: `patch_sections`, `diff_sections`.
"""
