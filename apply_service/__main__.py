"""`python -m apply_service` is `apply-service`."""

from __future__ import annotations

import sys

from apply_service.cli.main import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
