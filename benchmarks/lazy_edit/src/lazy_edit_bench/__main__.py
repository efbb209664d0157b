"""`python -m lazy_edit_bench` is the command `lazy-edit-bench`."""

from lazy_edit_bench.cli import main

raise SystemExit(main())
