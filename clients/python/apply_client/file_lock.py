"""A lock on an open file that ends with the process, however that ends; Windows has none of it."""

from __future__ import annotations

import sys

if sys.platform == "win32":

    def lock_file(descriptor: int) -> bool:
        """Always true: two runs at once are not noticed here."""
        return True

else:
    import fcntl

    def lock_file(descriptor: int) -> bool:
        """Whether the lock could be had."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
