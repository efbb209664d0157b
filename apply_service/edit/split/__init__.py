"""Updates of several files: `split` tells whose they are; `patch_sections`, `diff_sections`."""
